"""ModelSource: the Hugging Face Hub, through its own client library.

Names, revisions, credentials, proxies and errors are the library's business. The bytes are streamed
here, over the library's connection, because its own download keeps nothing of a file that was cut:
version 2 deletes it when the call fails, so that a rerun fetches a 5 GB shard from its first byte.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from huggingface_hub import HfApi, constants, get_session, hf_hub_download, hf_hub_url

# The library's stubs do not mark these as exported; its documentation does.
from huggingface_hub.utils import (  # type: ignore[attr-defined]
    build_hf_headers,
    disable_progress_bars,
    filter_repo_objects,
    hf_raise_for_status,
)

from bundler.adapters.source_hub.explain import explained, passing
from bundler.domain.lock import LockedFile, LockedModel
from bundler.domain.sizes import human
from bundler.domain.sources import ModelRef
from bundler.errors import FormatError, SourceError, disk_errors
from bundler.format.safepath import check_path
from bundler.ports import Task

# Else each request states what is installed here, and one more asks for a list of agents.
constants.HF_HUB_DISABLE_TELEMETRY = True

_ATTEMPTS = 4
_TIMEOUT_S = 30.0
_BY_LIBRARY_OVER = constants.MAX_HTTP_DOWNLOAD_SIZE
# What a server without ranges may send in vain before the bytes that are wanted.
_MOST_IN_VAIN = 16 * 2**20
_RANGE = re.compile(r"bytes (\d+)-\d+/")


class HubSource:
    """Pins and fetches repositories.

    Args:
        endpoint: base address of the Hub; None for the library's own (HF_ENDPOINT).
        token: access token; None for the library's own (HF_TOKEN or a login), False for none.
        pause_s: seconds before the second attempt; doubled before each further one.
    """

    def __init__(
        self,
        *,
        endpoint: str | None = None,
        token: str | bool | None = None,
        pause_s: float = 1.0,
    ) -> None:
        self._endpoint = (endpoint or constants.ENDPOINT).rstrip("/")
        self._token = token
        self._pause_s = pause_s

    def pin(self, ref: ModelRef, base: Path) -> LockedModel:
        """Resolve a revision to its commit, and the wanted files to their sizes and digests.

        Raises:
            SourceError: no such repository or revision, no access, no connection, or no file left.
        """
        repo = ref.repo or ""
        what = f"{repo}@{ref.revision}"
        with explained(what, self._endpoint):
            api = HfApi(endpoint=self._endpoint, token=self._token)
            info = self._patiently(
                lambda: api.model_info(
                    repo, revision=ref.revision, files_metadata=True, timeout=_TIMEOUT_S
                )
            )
            if info.gated:
                # Anybody may read its description, so that nothing has been refused so far.
                self._patiently(lambda: api.auth_check(repo))
        wanted = filter_repo_objects(
            info.siblings or [],
            allow_patterns=list(ref.include) or None,
            ignore_patterns=list(ref.exclude) or None,
            key=lambda sibling: sibling.rfilename,
        )
        files = sorted((_locked(what, sibling) for sibling in wanted), key=lambda file: file.path)
        if not files:
            raise SourceError(
                f"{what}: none of its {len(info.siblings or [])} files is left after the filters",
                hint="Correct `include` and `exclude` of the model in the spec.",
            )
        return LockedModel(
            name=ref.label,
            source=ref.source,
            origin=repo,
            revision=info.sha,
            licence=_licence(info),
            files=tuple(files),
        )

    def fetch(
        self, model: LockedModel, file: LockedFile, into: Path, base: Path, task: Task
    ) -> Path:
        """Complete `into/<path>` from where it ends; no request when it has its size already.

        Whether the bytes are right is for the caller to check.

        Raises:
            SourceError: the file cannot be had, or the connection breaks again and again.
            SpaceError: the disk is full.
            FileAccessError: the disk refuses.
        """
        what = f"{model.origin}@{model.revision}/{file.path}"
        path = into / _safe(what, file.path)
        with disk_errors("creating", path.parent):
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists() and path.stat().st_size > file.size:
                path.unlink()
            path.touch()
            task.advance(path.stat().st_size)
        with explained(what, self._endpoint):
            if file.size <= _BY_LIBRARY_OVER:
                self._complete(model, file, path, task)
            elif path.stat().st_size < file.size:
                self._fetch_by_library(model, file, into, path)
                task.advance(file.size)
        if path.stat().st_size > file.size:
            path.unlink()
            raise SourceError(f"{what}: the Hub sent more than the {file.size} bytes of the lock")
        return path

    def read(
        self, model: LockedModel, file: LockedFile, base: Path, start: int, length: int
    ) -> bytes:
        """Bytes of a file by an HTTP range; a server without ranges is read no further than needed.

        Raises:
            SourceError: the file cannot be had, or not from there on.
        """
        what = f"{model.origin}@{model.revision}/{_safe(model.origin, file.path)}"
        wanted = max(0, min(length, file.size - start))
        if not wanted:
            return b""
        url = hf_hub_url(model.origin, file.path, revision=model.revision, endpoint=self._endpoint)
        with explained(what, self._endpoint):
            data: bytes = self._patiently(lambda: self._range(url, start, wanted))
        if len(data) != wanted:
            raise SourceError(f"{what}: the Hub sent {len(data)} of {wanted} bytes from {start} on")
        return data

    def _range(self, url: str, start: int, length: int) -> bytes:
        headers = {
            **build_hf_headers(token=self._token),
            "Accept-Encoding": "identity",
            "Range": f"bytes={start}-{start + length - 1}",
        }
        with get_session().stream("GET", url, headers=headers, timeout=_TIMEOUT_S) as answer:
            hf_raise_for_status(answer)
            vain = start - _first_byte(answer, url)
            if not 0 <= vain <= _MOST_IN_VAIN:
                raise SourceError(
                    f"{url}: the server gives no range from byte {start} on",
                    hint="A proxy in between may drop them; build reads the fetched file instead.",
                )
            got = bytearray()
            # Leaving the block ends the connection: what is not needed is not sent.
            for piece in answer.iter_bytes():
                got += piece
                if len(got) >= vain + length:
                    break
            return bytes(got[vain : vain + length])

    def _complete(self, model: LockedModel, file: LockedFile, path: Path, task: Task) -> None:
        url = hf_hub_url(model.origin, file.path, revision=model.revision, endpoint=self._endpoint)
        have = most = path.stat().st_size
        idle = 0
        while have < file.size:
            trouble: Exception | None = None
            try:
                self._append(url, path, have, task)
            except Exception as cause:
                if not passing(cause):
                    raise
                trouble = cause
            have = path.stat().st_size
            idle = 0 if have > most else idle + 1
            most = max(most, have)
            if idle == _ATTEMPTS:
                raise trouble or SourceError(f"{url}: ends after {have} of {file.size} bytes")
            if have < file.size:
                time.sleep(self._pause_s * 2**idle)

    def _append(self, url: str, path: Path, have: int, task: Task) -> None:
        # Compressed on the way, a range would count other bytes than the file's.
        headers = {**build_hf_headers(token=self._token), "Accept-Encoding": "identity"}
        if have:
            headers["Range"] = f"bytes={have}-"
        with get_session().stream("GET", url, headers=headers, timeout=_TIMEOUT_S) as answer:
            if answer.status_code == 416:
                # What is here is no part of that file; the rerun starts afresh.
                path.unlink()
            hf_raise_for_status(answer)
            resumed = answer.status_code == 206
            if have and not resumed:
                task.advance(-have)
            with disk_errors("writing", path), path.open("ab" if resumed else "wb") as out:
                # Pieces as they arrive: a larger chunk would be lost whole when the line is cut.
                for piece in answer.iter_bytes():
                    out.write(piece)
                    task.advance(len(piece))

    def _fetch_by_library(
        self, model: LockedModel, file: LockedFile, into: Path, path: Path
    ) -> None:
        # The Hub gives files of this size only in its chunk protocol (xet), which the library speaks
        # with hf_xet's help; it begins anew when it was cut.
        if file.size > constants.MAX_HTTP_DOWNLOAD_SIZE and not _speaks_xet():
            raise SourceError(
                f"{model.origin}/{file.path}: {human(file.size)}; the Hub gives files over"
                f" {human(constants.MAX_HTTP_DOWNLOAD_SIZE)} in its chunk protocol only",
                hint="Unset HF_HUB_DISABLE_XET, and install hf_xet if it is missing.",
            )
        disable_progress_bars()
        path.unlink()
        hf_hub_download(
            model.origin,
            file.path,
            revision=model.revision,
            local_dir=into,
            endpoint=self._endpoint,
            token=self._token,
        )

    def _patiently(self, ask: Callable[[], Any]) -> Any:
        for attempt in range(_ATTEMPTS - 1):
            try:
                return ask()
            except Exception as cause:
                if not passing(cause):
                    raise
            time.sleep(self._pause_s * 2**attempt)
        return ask()


def _speaks_xet() -> bool:
    return not constants.HF_HUB_DISABLE_XET and find_spec("hf_xet") is not None


def _first_byte(answer: Any, url: str) -> int:
    """Where the body begins in the file."""
    if answer.status_code != 206:
        return 0
    stated = _RANGE.match(answer.headers.get("Content-Range", ""))
    if stated is None:
        raise SourceError(f"{url}: a part of the file, and not said which")
    return int(stated[1])


def _locked(what: str, sibling: Any) -> LockedFile:
    path = _safe(what, sibling.rfilename)
    size = sibling.lfs.size if sibling.lfs else sibling.size
    sha256 = sibling.lfs.sha256 if sibling.lfs else None
    if size is None or not (sha256 or sibling.blob_id):
        raise SourceError(f"{what}/{path}: the Hub states no size or no digest for it")
    # The blob id of a file in LFS is that of its pointer, not of its bytes.
    return LockedFile(
        path=path, size=size, sha256=sha256, git_sha1=None if sha256 else sibling.blob_id
    )


def _safe(what: str, path: str) -> str:
    try:
        return check_path(path)
    except FormatError as cause:
        raise SourceError(
            f"{what}: {cause}", hint="Leave the file out with `exclude` in the spec."
        ) from cause


def _licence(info: Any) -> str | None:
    card = info.card_data
    stated = getattr(card, "license", None)
    if stated == "other":
        stated = getattr(card, "license_name", None) or stated
    if isinstance(stated, list):
        return ", ".join(map(str, stated))
    return str(stated) if stated else None
