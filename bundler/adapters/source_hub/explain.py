"""What the Hub's client raises -> errors that say what and where, and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from bundler.errors import BundlerError, SourceError

# The root of its HTTP library's errors: httpx for version 1, httpx2 for version 2.
_HttpError = next(base for base in HfHubHTTPError.__mro__ if base.__name__ == "HTTPError")
_RETRY_STATUS = {408, 429, 500, 502, 503, 504}

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


@contextmanager
def explained(what: str, endpoint: str) -> Iterator[None]:
    """Turn whatever the library raises into a SourceError about `what`."""
    try:
        yield
    except BundlerError:
        raise
    except Exception as cause:
        parts = urlsplit(endpoint)
        where = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        raise _source_error(f"{what} at {where}", cause) from cause


def passing(error: Exception) -> bool:
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
