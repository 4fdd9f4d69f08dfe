"""What a security reviewer reads."""
