"""Reviewed: what a bundle is made of, whose it is, under which licence, and what in it can run."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field

from bundler.domain.record import Record, Sha256

# What a reviewer looks at first: `alarm` is made to do harm or is built like it, `attention` runs by
# itself or could not be read, `usual` is code of the sort that every such package has.
Rank = Literal["alarm", "attention", "usual"]
RANKS: tuple[Rank, ...] = ("alarm", "attention", "usual")
ExecutableKind = Literal[
    "pickle", "path-file", "remote-code", "template", "install-script", "unreadable",
    "script", "native", "python", "entry-point",
]  # fmt: skip
CheckKind = Literal["pickle", "safetensors header", "GGUF header", "chat template"]
ComponentKind = Literal["wheel", "model", "file", "tool", "spec"]
Source = Literal["expression", "licence-field", "classifier", "licence-file", "card", "manifest"]


class Executable(Record):
    """Something that can run, or that could not be looked into."""

    rank: Rank
    kind: ExecutableKind
    where: str = Field(description="File of the component; the first one when there are many.")
    what: str = Field(description="What it would do, in plain words; English.")
    count: int = Field(1, ge=1, description="How many files the line stands for.")
    digest: Sha256 | None = Field(None, description="Of the one file, where it was read whole.")


class FileCheck(Record):
    """A file of a model that was looked at by one reader, whatever it found."""

    check: CheckKind
    where: str
    by: str = Field(description="Who looked: `airbundle`, or another scanner and its version.")
    result: Literal["passed", "found", "not checked"]
    said: str = Field("", description="What was found, or why nobody looked; English.")


class LicenceEvidence(Record):
    """What one place says of the licence; `spdx` is empty where it names none that is known."""

    source: Source
    said: str = Field(description="The place's own words, cut to a line.")
    spdx: str = Field("", description="As an SPDX expression.")


class LicenceText(Record):
    """A licence file that is carried along."""

    path: str
    text: str


class LicenceFacts(Record):
    """The licence as all evidence together has it."""

    expression: str = Field("", description="SPDX expression; empty: unknown.")
    evidence: tuple[LicenceEvidence, ...] = ()
    conflict: bool = Field(False, description="Places name licences that are not the same.")
    texts: tuple[LicenceText, ...] = ()

    @property
    def known(self) -> bool:
        """Whether any place names a licence that is known."""
        return bool(self.expression)


class CarriedFile(Record):
    """A file of a component, as the signed manifest has it."""

    path: str
    size: int = Field(ge=0)
    sha256: Sha256
    origin: str = ""


class ModelCard(Record):
    """What a model's own files state of it."""

    architecture: str = ""
    model_type: str = ""
    quantization: str = ""
    dtype: str = ""
    task: str = Field("", description="`pipeline_tag` of the card.")
    languages: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()
    base_models: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


class Component(Record):
    """One thing that is brought in, with an origin of its own."""

    kind: ComponentKind
    name: str
    version: str = ""
    revision: str = ""
    origin: str = ""
    supplier: str = Field("", description="Who made it, as its own metadata states.")
    summary: str = ""
    size: int = Field(ge=0, description="Bytes of all its files.")
    files: tuple[CarriedFile, ...]
    licence: LicenceFacts = LicenceFacts()
    requires: tuple[str, ...] = Field((), description="Names of the components that it needs.")
    executes: tuple[Executable, ...] = ()
    checks: tuple[FileCheck, ...] = ()
    card: ModelCard | None = None

    @property
    def package(self) -> str:
        """The name as `requires` has it: lower case, runs of `-_.` as one `-` (PEP 503)."""
        return re.sub(r"[-_.]+", "-", self.name).lower()

    @property
    def sha256(self) -> str:
        """Of the one file; empty when there are several."""
        return self.files[0].sha256 if len(self.files) == 1 else ""

    @property
    def worst(self) -> Rank | None:
        """The highest rank of what can run in it."""
        return min((e.rank for e in self.executes), key=RANKS.index, default=None)


class Inventory(Record):
    """Everything in a bundle. Made from verified bytes alone."""

    components: tuple[Component, ...]

    def of(self, *kinds: ComponentKind) -> tuple[Component, ...]:
        """Components of these kinds, in order."""
        return tuple(one for one in self.components if one.kind in kinds)

    def needed(self, component: Component) -> tuple[Component, ...]:
        """The wheels that one needs; of a name that is carried in two versions, both."""
        return tuple(
            one
            for one in self.of("wheel")
            if one.package in component.requires and one != component
        )

    @property
    def findings(self) -> tuple[tuple[Component, Executable], ...]:
        """All that can run, what matters most first."""
        rows = [(one, found) for one in self.components for found in one.executes]
        return tuple(sorted(rows, key=lambda row: RANKS.index(row[1].rank)))
