"""SystemProbe: what Linux tells of this host."""
