"""Every failure that we can name: its exit code and what to do next sit on the class.

Codes 1 and 2 are never assigned (a crash and a usage error already use them), 10 and 11 are results
rather than failures: see `bundler.domain.verdict`.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

EXIT_OK = 0
EXIT_FAIL = 10
EXIT_INCONCLUSIVE = 11
EXIT_INTERRUPTED = 130


class BundlerError(Exception):
    """The root of all named failures: one line saying what and where, and a hint saying what to do.

    Args:
        message: what is wrong and where, in one line.
        hint: what to do about it; the class's own hint when left out.
        details: further lines to show, such as the last lines of a log or all findings.
    """

    exit_code: ClassVar[int] = 0
    default_hint: ClassVar[str] = ""

    def __init__(
        self, message: str, *, hint: str | None = None, details: Sequence[str] = ()
    ) -> None:
        super().__init__(" ".join(message.split()))
        self.details = tuple(details)
        self.hint = hint if hint is not None else self.default_hint


class SpecError(BundlerError):
    """The spec file cannot be read or asks for something that does not exist."""

    exit_code = 3
    default_hint = "Correct the spec; `airbundle schema` prints every key and its allowed values."


class ResolveError(BundlerError):
    """No set of wheels satisfies the spec on the target.

    `without_wheel` names the packages for which the index has no wheel that the target accepts.
    """

    exit_code = 4
    default_hint = "Change the version, the target or the index, then run the command again."

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        details: Sequence[str] = (),
        without_wheel: Sequence[str] = (),
    ) -> None:
        super().__init__(message, hint=hint, details=details)
        self.without_wheel = tuple(without_wheel)


class SourceError(BundlerError):
    """A model, a wheel or a file could not be had from where the spec says it is."""

    exit_code = 5
    default_hint = "Check the name, the revision and the connection; a rerun resumes the download."


class SpaceError(BundlerError):
    """A disk or a volume is too small."""

    exit_code = 6
    default_hint = "Free space or choose another place, then run the same command again."


class IntegrityError(BundlerError):
    """The bytes are not the bytes that the manifest promises."""

    exit_code = 7
    default_hint = "Copy the named files again from the source, then run `airbundle verify` again."


class TrustError(BundlerError):
    """No signature, a bad signature, or the wrong key."""

    exit_code = 8
    default_hint = (
        "Do not install. Ask the supplier, by another channel, for the right key and bundle."
    )


class FormatError(BundlerError):
    """The manifest is of a format that this version does not read, or breaks the format's rules."""

    exit_code = 9
    default_hint = "Use the airbundle that the bundle carries, or have the bundle built again."


class InstallError(BundlerError):
    """The release could not be installed; the one before it is untouched."""

    exit_code = 12
    default_hint = "Fix the cause and run the same command again."


class EngineError(BundlerError):
    """The engine died, never got ready, or answered nothing."""

    exit_code = 13
    default_hint = "Read the engine's log: `airbundle logs`."


class ToolError(BundlerError):
    """An outside command is missing or failed."""

    exit_code = 14
    default_hint = "Install the named command or put it on PATH."


class PortInUseError(BundlerError):
    """Another process listens where a service should."""

    exit_code = 15
    default_hint = (
        "Stop that process or give the service another port in the spec (services[].port)."
    )


class MissingVolumeError(BundlerError):
    """A volume that the manifest names is not there."""

    exit_code = 16
    default_hint = "Copy the named volumes beside the others, or import the stick that holds them."


class StateError(BundlerError):
    """The command does not fit what is on disk: nothing imported, not running, already there."""

    exit_code = 17
    default_hint = "`airbundle status` shows what is there."


class HostError(BundlerError):
    """This host lacks something that the bundle or the command needs."""

    exit_code = 18
    default_hint = "Add what is named, then run the same command again."


class KeyFileError(BundlerError):
    """A key file is missing or is not an Ed25519 PEM key."""

    exit_code = 19
    default_hint = "`airbundle keygen` makes a pair of keys."


class FileAccessError(BundlerError):
    """The operating system refused a file: permissions, a read-only mount, a bad disk."""

    exit_code = 20
    default_hint = "Check the owner, the mount and the disk, then run the same command again."


class IncompatibleError(BundlerError):
    """What was resolved cannot work on the target, and that is known before the trip."""

    exit_code = 21
    default_hint = (
        "`airbundle plan SPEC` shows every finding; `airbundle plan --explain CODE` explains one."
    )


class PolicyError(BundlerError):
    """The site's policy file cannot be read or asks for something that cannot be."""

    exit_code = 22
    default_hint = "Correct the policy file; docs/trust.md describes it."


_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextmanager
def disk_errors(doing: str, where: Path) -> Iterator[None]:
    """Turn the operating system's refusal into the error that a user can act on.

    A write that fails for lack of room carries no file name in Python, so the caller gives it.

    Raises:
        SpaceError: the disk or the quota is full, or the file system cannot hold so large a file.
        FileAccessError: any other refusal of the operating system.
    """
    try:
        yield
    except OSError as cause:
        reason = cause.strerror or str(cause)
        if cause.errno in _NO_SPACE:
            raise SpaceError(f"{doing} {where}: {reason}") from cause
        raise FileAccessError(f"{doing} {where}: {reason}") from cause


@contextmanager
def as_error(kind: type[BundlerError], doing: str) -> Iterator[None]:
    """Turn whatever a library raises into the one error that a port promises."""
    try:
        yield
    except BundlerError:
        raise
    except Exception as cause:  # libraries raise anything; the port promises one kind
        text = str(cause) or type(cause).__name__
        raise kind(f"{doing}: {text}") from cause
