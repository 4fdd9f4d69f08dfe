"""llama.cpp: llama-server."""
