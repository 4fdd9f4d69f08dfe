"""The outside things that the connected half uses, as one value that is handed through."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bundler.build.store import ContentStore
    from bundler.ports import (
        Clock,
        Downloader,
        EngineAdapter,
        ModelSource,
        Progress,
        VolumeFormat,
        WheelReader,
        WheelResolver,
    )


@dataclass(frozen=True)
class BuildTools:
    """Adapters that `wiring` chose, and the store."""

    sources: Mapping[str, Callable[[], ModelSource]]
    resolver: WheelResolver
    downloader: Downloader
    form: VolumeFormat
    engine: EngineAdapter
    wheels: WheelReader
    store: ContentStore
    clock: Clock
    progress: Progress
