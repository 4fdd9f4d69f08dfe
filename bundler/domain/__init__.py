"""What we know: frozen types that do no I/O."""
