"""ModelSource: the Hugging Face Hub. `adapter.py` is the entry; `explain.py` words the errors."""
