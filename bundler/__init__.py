"""airbundle: carry an LLM service across an air gap and prove that it works there."""
