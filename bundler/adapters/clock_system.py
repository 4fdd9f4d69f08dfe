"""Clock: the system's."""

from __future__ import annotations

import datetime
import os
import time


class SystemClock:
    """Real time.

    `SOURCE_DATE_EPOCH` fixes `now`, as reproducible builds expect
    (https://reproducible-builds.org/specs/source-date-epoch/).
    """

    def now(self) -> str:
        """UTC, seconds."""
        epoch = os.environ.get("SOURCE_DATE_EPOCH")
        stamp = (
            datetime.datetime.fromtimestamp(int(epoch), datetime.timezone.utc)
            if epoch and epoch.isdigit()
            else datetime.datetime.now(datetime.timezone.utc)
        )
        return stamp.strftime("%Y-%m-%dT%H:%M:%SZ")

    def monotonic(self) -> float:
        """Seconds."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)
