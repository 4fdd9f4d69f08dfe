"""ChatClient: the OpenAI API over HTTP, as vLLM, llama.cpp and Ollama serve it."""

from bundler.adapters.chat_openai.client import OpenAIChat

__all__ = ["OpenAIChat"]
