"""Ollama: `ollama serve`."""
