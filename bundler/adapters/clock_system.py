"""Clock: the system's."""

from __future__ import annotations

import datetime
import os
import time

from bundler.errors import HostError

_FORM = "%Y-%m-%dT%H:%M:%SZ"


def wall_time() -> str:
    """UTC, seconds, whatever the environment says."""
    return datetime.datetime.now(datetime.timezone.utc).strftime(_FORM)


class SystemClock:
    """Real time.

    `SOURCE_DATE_EPOCH` fixes `now`, as reproducible builds expect
    (https://reproducible-builds.org/specs/source-date-epoch/).
    """

    def now(self) -> str:
        """UTC, seconds."""
        epoch = os.environ.get("SOURCE_DATE_EPOCH")
        if not epoch:
            return wall_time()
        try:
            stamp = datetime.datetime.fromtimestamp(int(epoch), datetime.timezone.utc)
        except (ValueError, OverflowError, OSError) as cause:
            raise HostError(
                f"SOURCE_DATE_EPOCH={epoch[:40]} is no time", hint="Unset it, or give seconds."
            ) from cause
        return stamp.strftime(_FORM)

    def monotonic(self) -> float:
        """Seconds."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)
