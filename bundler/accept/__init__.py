"""Acceptance: load, statistics, judgement."""
