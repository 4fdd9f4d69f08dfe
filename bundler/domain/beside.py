"""Observed besides an acceptance run on the same installation, to be shown with it."""

from bundler.domain.ab import ABRecord
from bundler.domain.capacity import CapacityRecord
from bundler.domain.record import Record


class Beside(Record):
    """Other runs of the same bundle: searches for the most users, comparisons of two settings."""

    searches: tuple[CapacityRecord, ...] = ()
    settings: tuple[ABRecord, ...] = ()


NOTHING = Beside()
