"""WheelResolver: uv."""
