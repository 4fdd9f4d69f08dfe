"""Plug points: one file for each outside thing."""
