"""The composition root of the connected half: where models and wheels come from.

As in `wiring`, each adapter is imported where it is made.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from bundler import wiring

if TYPE_CHECKING:
    from bundler.build.tools import BuildTools
    from bundler.domain.hostindex import HostIndex
    from bundler.domain.sources import EngineRef
    from bundler.domain.target import Target
    from bundler.ports import Advisories, ModelSource, Progress, Reacher, WheelReader, WheelResolver


def _hub() -> ModelSource:
    with _connected_half():
        from bundler.adapters.source_hub.adapter import HubSource

        return HubSource()


def _local() -> ModelSource:
    from bundler.adapters.source_local import LocalSource

    return LocalSource()


def _gguf() -> ModelSource:
    from bundler.adapters.source_local import GgufSource

    return GgufSource()


def _uv(index: Callable[[], HostIndex]) -> WheelResolver:
    with _connected_half():
        from bundler.adapters.wheels_uv.resolver import UvResolver
        from bundler.build.tags import best_wheel

    return UvResolver(
        runner=wiring.runner(),
        uv=wiring.uv_program(),
        python=sys.executable,
        index=index(),
        choose=best_wheel,
        host=_this_host(),
    )


def _piptools(index: Callable[[], HostIndex]) -> WheelResolver:
    with _connected_half():
        from bundler.adapters.wheels_piptools import PipToolsResolver

    return PipToolsResolver(
        runner=wiring.runner(), python=sys.executable, host=_this_host(), other=_uv(index)
    )


def _this_host() -> Target | None:
    """This host as a target, None when it could be none: not Linux, no glibc, another Python."""
    import platform

    from pydantic import ValidationError

    from bundler.domain.target import Target

    try:
        return Target.model_validate(
            {
                "os": platform.system().lower(),
                "arch": platform.machine(),
                "python": ".".join(platform.python_version_tuple()[:2]),
                "glibc": platform.libc_ver()[1],
            }
        )
    except ValidationError:
        return None


SOURCES: dict[str, Callable[[], ModelSource]] = {"hub": _hub, "local": _local, "gguf": _gguf}
RESOLVERS: dict[str, Callable[[Callable[[], HostIndex]], WheelResolver]] = {
    "uv": _uv,
    "pip-tools": _piptools,
}


def reading_host() -> Callable[[], HostIndex]:
    """Begin to read what pip and uv are configured with; what is given waits for the answer.

    pip takes a third of a second to say it. A command asks first, and loads the rest meanwhile.

    Raises:
        HostError: the connected half's libraries are not installed.
    """
    with _connected_half():
        from bundler.adapters.host_index import read_host_index

    pool = ThreadPoolExecutor(1)
    reading = pool.submit(read_host_index, wiring.runner())
    pool.shutdown(wait=False)
    return reading.result


def build_tools(
    engine: EngineRef,
    progress: Progress,
    cache: Path,
    host: Callable[[], HostIndex] | None = None,
) -> BuildTools:
    """What the connected half uses.

    Args:
        engine: says which adapters.
        progress: told of long work.
        cache: folder of the store.
        host: what `reading_host` gave, where it was asked before.

    Raises:
        HostError: the connected half's libraries are not installed.
        ToolError: the host's configuration cannot be read.
    """
    reading = host or reading_host()
    with _connected_half():
        from bundler.adapters.fetch_http.download import HttpDownloader
        from bundler.build.store import ContentStore
        from bundler.build.tools import BuildTools
    chosen = RESOLVERS[engine.resolver](reading)
    index = reading()
    if index.cert:
        # The Hub's client reads this variable, and pip's configuration not at all.
        os.environ.setdefault("SSL_CERT_FILE", str(index.cert))
    store = ContentStore(cache)
    return BuildTools(
        sources=SOURCES,
        resolver=chosen,
        downloader=HttpDownloader(index),
        form=wiring.volume_format(),
        engine=wiring.ENGINES[engine.name](),
        wheels=wheel_reader(index, store.file),
        store=store,
        clock=wiring.clock(),
        progress=progress,
    )


def advisories(index: HostIndex) -> Advisories:
    """Asks the host's index for known vulnerabilities."""
    with _connected_half():
        from bundler.adapters.fetch_http.advisories import IndexAdvisories

    return IndexAdvisories(index)


def reacher(index: HostIndex, timeout_s: float) -> Reacher:
    """Asks servers whether they are there."""
    with _connected_half():
        from bundler.adapters.fetch_http.reaching import Reach

    return Reach(index, timeout_s)


def hub_access() -> tuple[str, bool]:
    """The Hub's address as its library takes it (HF_ENDPOINT), and whether there is a token for it."""
    with _connected_half():
        from bundler.adapters.source_hub.access import hub_access as access

    return access()


def wheel_reader(index: HostIndex, stored: Callable[[str], Path | None]) -> WheelReader:
    """Looks into wheels: in the store, else on the index."""
    from bundler.adapters.fetch_http.wheels import WheelArchives

    return WheelArchives(index, stored)


def _connected_half() -> AbstractContextManager[None]:
    return wiring.with_extra("the connected half", "pip install 'airbundle[connected]'")
