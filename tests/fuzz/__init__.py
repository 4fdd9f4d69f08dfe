"""Fuzzing of every parser that touches bytes from outside: `python -m tests.fuzz --help`."""
