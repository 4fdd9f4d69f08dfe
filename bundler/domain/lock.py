"""Resolved: every file that will be in the bundle, pinned."""

from pydantic import Field

from bundler.domain.record import Record, Sha256
from bundler.domain.target import Target

LOCK_VERSION = 1


class LockedFile(Record):
    """A model file. At least one of the two digests is known before the download."""

    path: str = Field(description="Relative POSIX path inside the model.")
    size: int = Field(ge=0, description="Bytes.")
    sha256: Sha256 | None = Field(None, description="From the Hub for LFS files; else computed.")
    git_sha1: str | None = Field(None, description="Git blob id, for Hub files outside LFS.")


class LockedModel(Record):
    """A model at one immutable revision."""

    name: str
    source: str
    origin: str = Field(description="Repository, or the path as the spec writes it.")
    revision: str | None = Field(None, description="Commit, 40 hexadecimal digits.")
    licence: str | None = Field(None, description="As the model card states it.")
    files: tuple[LockedFile, ...]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)


class LockedWheel(Record):
    """One wheel of a closure."""

    name: str
    version: str
    filename: str
    url: str = Field(
        description="Where it was found: http(s), file, `self` for airbundle, or `archive` when it is made"
        " from the engine's archive."
    )
    size: int | None = Field(None, ge=0, description="Bytes, when the index tells.")
    sha256: Sha256
    uploaded: str | None = Field(None, description="Upload time by the index, UTC.")
    xxh3: str | None = Field(None, description="XXH3-128, once it was fetched.")
    licence: str | None = Field(None, description="As its metadata states it, once fetched.")
    built: bool = Field(False, description="Built here from an sdist (`build_sdists`).")


class LockedExtra(Record):
    """Another file."""

    filename: str
    role: str
    origin: str
    sha256: Sha256
    size: int | None = None


class Lock(Record):
    """Everything that the bundle will hold, pinned. The same lock gives the same bundle bytes."""

    lock_version: int = LOCK_VERSION
    spec_sha256: Sha256 = Field(description="Digest of the spec that it was resolved from.")
    created: str = Field(description="UTC time of the resolution; the bundle's only date.")
    airbundle_version: str
    engine_only: bool = Field(False, description="Models and files were left out on purpose.")
    target: Target
    engine_name: str
    engine_version: str
    engine_wheels: tuple[LockedWheel, ...]
    engine_archive: LockedExtra | None = Field(
        None, description="Release archive that the engine's wheel is made from."
    )
    tool_wheels: tuple[LockedWheel, ...] = ()
    models: tuple[LockedModel, ...] = ()
    extras: tuple[LockedExtra, ...] = ()
