"""ModelSource: the Hugging Face Hub, through its own client library.

Names, revisions, credentials, proxies and errors are the library's business. The bytes are streamed
here, over the library's connection, because its own download keeps nothing of a file that was cut:
version 2 deletes it when the call fails, so that a rerun fetches a 5 GB shard from its first byte.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from huggingface_hub import HfApi, constants, get_session, hf_hub_download, hf_hub_url
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

# The library's stubs do not mark these as exported; its documentation does.
from huggingface_hub.utils import (  # type: ignore[attr-defined]
    build_hf_headers,
    disable_progress_bars,
    filter_repo_objects,
    hf_raise_for_status,
)

from bundler.domain.lock import LockedFile, LockedModel
from bundler.domain.sources import ModelRef
from bundler.errors import BundlerError, FormatError, SourceError, disk_errors
from bundler.format.safepath import check_path
from bundler.ports import Task

# Else each request states what is installed here, and one more asks for a list of agents.
constants.HF_HUB_DISABLE_TELEMETRY = True

# The root of its HTTP library's errors: httpx for version 1, httpx2 for version 2.
_HttpError = next(base for base in HfHubHTTPError.__mro__ if base.__name__ == "HTTPError")
_RETRY_STATUS = {408, 429, 500, 502, 503, 504}
_ATTEMPTS = 4
_TIMEOUT_S = 30.0
_BY_LIBRARY_OVER = constants.MAX_HTTP_DOWNLOAD_SIZE

# The first line that fits counts, so that a subclass stands before its base.
_KNOWN: tuple[tuple[type[BaseException], str, str], ...] = (
    (
        GatedRepoError,
        "access is restricted, and no token that opens it was sent",
        "Accept the terms on the model's page, then set HF_TOKEN or run `hf auth login`.",
    ),
    (
        RepositoryNotFoundError,
        "no such repository, or it is private",
        "Check `repo` in the spec; for a private repository set HF_TOKEN.",
    ),
    (
        RevisionNotFoundError,
        "no such revision",
        "Check `revision` in the spec, then make a new lock with --relock.",
    ),
    (EntryNotFoundError, "no such file at this revision", "Make a new lock with --relock."),
    (
        OfflineModeIsEnabled,
        "not asked, because the Hub client is set to offline",
        "Unset HF_HUB_OFFLINE and TRANSFORMERS_OFFLINE.",
    ),
)


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
        with self._explained(what):
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
        with self._explained(what):
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
            SourceError: the file cannot be had.
        """
        wanted = max(0, min(length, file.size - start))
        if not wanted:
            return b""
        what = f"{model.origin}@{model.revision}/{_safe(model.origin, file.path)}"
        url = hf_hub_url(model.origin, file.path, revision=model.revision, endpoint=self._endpoint)
        with self._explained(what):
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
            skip = 0 if answer.status_code == 206 else start
            got = bytearray()
            for piece in answer.iter_bytes():
                got += piece
                if len(got) >= skip + length:
                    break
            return bytes(got[skip : skip + length])

    def _complete(self, model: LockedModel, file: LockedFile, path: Path, task: Task) -> None:
        url = hf_hub_url(model.origin, file.path, revision=model.revision, endpoint=self._endpoint)
        have = most = path.stat().st_size
        idle = 0
        while have < file.size:
            trouble: Exception | None = None
            try:
                self._append(url, path, have, task)
            except Exception as cause:
                if not _passing(cause):
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
        # The Hub gives files of this size only in its chunk protocol, which the library speaks.
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
                if not _passing(cause):
                    raise
            time.sleep(self._pause_s * 2**attempt)
        return ask()

    @contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        try:
            yield
        except BundlerError:
            raise
        except Exception as cause:
            parts = urlsplit(self._endpoint)
            where = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
            raise _source_error(f"{what} at {where}", cause) from cause


def _passing(error: Exception) -> bool:
    """Whether the same request may succeed a moment later."""
    if isinstance(error, HfHubHTTPError):
        return error.response.status_code in _RETRY_STATUS
    return isinstance(error, _HttpError)


def _source_error(what: str, error: BaseException) -> BundlerError:
    if isinstance(error, LocalEntryNotFoundError) and error.__cause__ is not None:
        # The library looked for a local copy after the request failed; the request is what matters.
        error = error.__cause__
    for kind, reason, hint in _KNOWN:
        if isinstance(error, kind):
            return SourceError(f"{what}: {reason}", hint=hint)
    text = str(error) or type(error).__name__
    if isinstance(error, HfHubHTTPError):
        code = error.response.status_code
        token = "Check HF_TOKEN: the Hub refused it." if code in (401, 403) else None
        stated = error.server_message or error.response.reason_phrase
        return SourceError(f"{what}: HTTP {code} {stated}", hint=token)
    if isinstance(error, _HttpError):
        return SourceError(
            f"{what}: {text}",
            hint="Check the connection, the proxy and HF_ENDPOINT; a rerun resumes the download.",
        )
    return SourceError(f"{what}: {text}")


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
