"""The bundle on disk: all that crosses the gap, used by both halves."""
