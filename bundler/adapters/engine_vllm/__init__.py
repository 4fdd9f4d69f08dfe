"""EngineAdapter: vLLM. `adapter.py` is the entry; `wheel.py` reads a wheel, `history.py` knows versions."""
