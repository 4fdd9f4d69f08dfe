"""The connected half: spec to lock to volumes."""
