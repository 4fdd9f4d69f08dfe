"""Shipped: what the bundle is, file by file and byte by byte. Signed."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from bundler.domain.needs import HostNeeds, Line
from bundler.domain.record import Name, Record, Sha256
from bundler.domain.sizes import MAX_BLOCK, MIN_BLOCK
from bundler.domain.spec import Acceptance, Service
from bundler.domain.target import Target

FORMAT_VERSION = 1
MAX_BYTES = 2**62
Xxh128 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
Kind = Literal["lock", "spec", "requirements", "wheel", "model", "file", "parity"]
MAX_SHARES = 256


class Block(Record):
    """A run of `Manifest.block_size` bytes of a file; the last one may be shorter.

    Damage is located to a block, and blocks are hashed on all cores at once.
    """

    sha256: Sha256
    xxh3: Xxh128


class Part(Record):
    """A run of an entry's blocks, stored as one member of one volume."""

    volume: str = Field(description="Volume file name.")
    member: str = Field(description="Name of the ZIP member.")
    offset: int = Field(
        ge=0, lt=MAX_BYTES, description="Where its data starts in the volume, bytes."
    )
    size: int = Field(ge=0, lt=MAX_BYTES, description="Bytes.")
    crc32: int = Field(ge=0, lt=2**32, description="CRC-32 as ZIP stores it.")


class Entry(Record):
    """A file of the bundle."""

    path: str = Field(description="Relative POSIX path in the bundle.")
    kind: Kind
    size: int = Field(ge=0, lt=MAX_BYTES)
    sha256: Sha256 = Field(description="Of the whole file, as its origin states it.")
    origin: str = Field("", description="Where it came from.")
    blocks: tuple[Block, ...] = Field(
        min_length=1, description="Every block of the file, in order; an empty file has one."
    )
    parts: tuple[Part, ...] = Field(
        description="In order; together they are the file. Each starts where a block does. None when"
        " the bundle that this one builds on holds the file.",
    )


class Base(Record):
    """The bundle that this one builds on: what it holds is not carried again."""

    name: Name
    manifest_sha256: Sha256

    @property
    def bundle_id(self) -> str:
        """As `VerifiedManifest.bundle_id`."""
        return f"{self.name}-{self.manifest_sha256[:12]}"


class ParitySet(Record):
    """Volumes that protect each other: as many of them may be lost as there are `parity` files.

    Share *i* of a code of n = len(volumes) + len(parity) is volume *i*, filled up with zeros to the
    length of the longest, then the parity files. `xor`: the parity is the exclusive or of all volumes.
    `zfec`: a systematic Reed-Solomon code over GF(2^8) (https://github.com/tahoe-lafs/zfec).
    """

    code: Literal["xor", "zfec"]
    volumes: tuple[str, ...] = Field(min_length=1, max_length=MAX_SHARES)
    parity: tuple[str, ...] = Field(
        min_length=1, max_length=MAX_SHARES, description="Paths of entries of kind `parity`."
    )


class Waived(Record):
    """An error of the proof that the supplier declared to be no obstacle."""

    code: Line
    what: Annotated[Line, StringConstraints(max_length=4000)]
    reason: Line


class VolumeEntry(Record):
    """One volume file."""

    name: str
    size: int = Field(ge=0, lt=MAX_BYTES)
    sha256: Sha256
    open: bool = Field(
        False,
        description="Holds only what a bare host starts the tool from, and is carried unencrypted.",
    )


class LooseFile(Record):
    """A file that lies beside the volumes: the bootstrap, the READ-ME."""

    name: str
    size: int = Field(ge=0, lt=MAX_BYTES)
    sha256: Sha256


class ShippedModel(Record):
    """A model as the closed side needs to know it."""

    name: Name
    source: str
    origin: str
    revision: str | None = None
    licence: str | None = None


class ShippedEngine(Record):
    """The engine as the closed side needs to know it."""

    name: Literal["vllm", "llama.cpp", "ollama"]
    version: str
    distribution: str
    requirements: str = Field(description="Entry path of its hashed requirements file.")
    exclude: tuple[str, ...] = Field((), description="Dependencies that were left out on purpose.")


class ShippedTool(Record):
    """airbundle itself, carried across."""

    version: str
    requirements: str = Field(description="Entry path of its hashed requirements file.")
    uv_wheel: str = Field(description="Entry path of uv's wheel.")


class RuntimeFile(Record):
    """A carried file that `files` in the spec named."""

    path: str
    role: str


class Manifest(Record):
    """The bundle. Its SHA-256 names it; the signature is over its exact bytes."""

    format_version: int = FORMAT_VERSION
    block_size: int = Field(ge=MIN_BLOCK, le=MAX_BLOCK, description="Bytes; a power of two.")
    name: Name
    sequence: int = Field(
        ge=1, lt=MAX_BYTES, description="Of two bundles of one name, the higher one is newer."
    )
    description: str = ""
    created: str
    target: Target
    engine: ShippedEngine
    tool: ShippedTool
    models: tuple[ShippedModel, ...]
    services: tuple[Service, ...]
    acceptance: Acceptance
    files: tuple[RuntimeFile, ...] = ()
    needs: HostNeeds = Field(HostNeeds(), description="What the host must have.")
    waived: tuple[Waived, ...] = Field((), max_length=1000)
    base: Base | None = Field(None, description="Of a delta.")
    volumes: tuple[VolumeEntry, ...]
    parity: tuple[ParitySet, ...] = Field(
        (), description="Each data volume is in one set, or none is."
    )
    loose: tuple[LooseFile, ...]
    entries: tuple[Entry, ...]

    @property
    def payload(self) -> tuple[Entry, ...]:
        """The entries that are imported and installed: all but parity, which serves the journey."""
        return tuple(entry for entry in self.entries if entry.kind != "parity")

    @property
    def held(self) -> tuple[Entry, ...]:
        """The entries that the base holds."""
        return tuple(entry for entry in self.entries if not entry.parts)

    @property
    def size(self) -> int:
        """Bytes of the payload."""
        return sum(entry.size for entry in self.payload)


class VerifiedManifest(Record):
    """A manifest whose signature was checked before it was parsed. Only `format.trust` makes one."""

    manifest: Manifest
    digest: Sha256 = Field(description="SHA-256 of the manifest's bytes: the bundle's identity.")
    key_id: str | None = Field(description="Key that signed; None under the `unsigned` policy.")

    @property
    def bundle_id(self) -> str:
        """Short unique name: the bundle's name and the first 12 digits of its digest."""
        return f"{self.manifest.name}-{self.digest[:12]}"

    @property
    def signed(self) -> bool:
        """Whether a trusted key signed it."""
        return self.key_id is not None

    @property
    def vouched(self) -> str:
        """Who vouches for it, in words."""
        return f"signed by key {self.key_id}" if self.signed else "UNSIGNED (policy: --unsigned)"
