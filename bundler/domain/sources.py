"""Where what a bundle carries comes from: models, files, and the engine's wheels."""

from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from bundler.domain import names
from bundler.domain.record import Location, Name, Record, Sha256


class ModelRef(Record):
    """A model to carry."""

    source: Literal["hub", "local", "gguf"] = Field(
        "hub", description="`hub`: Hugging Face Hub; `local`: a folder; `gguf`: one GGUF file."
    )
    name: Name | None = Field(None, description="Folder name in the bundle; from repo or path.")
    repo: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*/[A-Za-z0-9_][A-Za-z0-9_.-]*$",
        max_length=200,
        description="Hub repository, `owner/name`.",
    )
    path: Location | None = Field(None, description="Folder or file, relative to the spec.")
    revision: str | None = Field(
        None, description="Commit, branch or tag on the Hub; the lock pins the commit."
    )
    include: tuple[str, ...] = Field(
        (), max_length=1000, description="Glob patterns of files to take; all if none."
    )
    exclude: tuple[str, ...] = Field(
        (), max_length=1000, description="Glob patterns of files to leave out."
    )

    role: Literal["model", "tokenizer", "draft", "adapter"] = Field(
        "model", description="What it is for; only a `model` must be able to serve by itself."
    )
    allow_pickle: tuple[str, ...] = Field(
        (),
        max_length=1000,
        description="Glob patterns of pickle files that may be carried although they run code.",
    )

    @model_validator(mode="after")
    def _one_origin(self) -> "ModelRef":
        if self.source == "hub":
            if not self.repo or self.path:
                raise ValueError("a model from the hub needs `repo`, and no `path`")
            if not self.revision:
                raise ValueError("a model from the hub needs `revision` (a commit, branch or tag)")
        elif not self.path or self.repo or self.revision:
            raise ValueError(f"a {self.source} model needs `path`, and no `repo` or `revision`")
        if self.source == "gguf" and (self.include or self.exclude):
            raise ValueError(
                "a gguf model is one file: `include` and `exclude` mean nothing for it"
            )
        if not names.is_name(self.label):
            raise ValueError(f"{self.label!r} cannot be a folder name in the bundle; give `name`")
        return self

    @property
    def label(self) -> str:
        """The model's folder name in the bundle."""
        origin = self.repo or self.path or ""
        return self.name or origin.rstrip("/").rsplit("/", 1)[-1]


class _PinnedFile(Record):
    """A file by its place and its digest."""

    path: Location | None = Field(None, description="File, relative to the spec.")
    url: str | None = Field(
        None,
        pattern=r"^https?://[^\x00-\x20\x7f]+$",
        max_length=4096,
        description="Where to download it.",
    )
    sha256: Sha256 = Field(description="The SHA-256 that the file must have.")

    @model_validator(mode="after")
    def _one_origin(self) -> "_PinnedFile":
        if (self.path is None) == (self.url is None):
            raise ValueError("give either `path` or `url`")
        fault = names.fault_of_filename(self.filename)
        if fault:
            raise ValueError(f"{self.filename!r} (end of `path` or `url`) as a file name: {fault}")
        return self

    @property
    def filename(self) -> str:
        """The last part of the path or address; empty when that ends in a slash."""
        origin = self.path if self.path is not None else urlsplit(self.url or "").path
        return origin.rsplit("/", 1)[-1]


class FileRef(_PinnedFile):
    """Any other file to carry: a driver, a Python runtime, a container image, OS packages."""

    role: Literal["driver", "python-runtime", "container-image", "os-package", "other"] = Field(
        "other", description="What it is for. A `python-runtime` is used at install."
    )


class ArchiveRef(_PinnedFile):
    """The engine's own release archive, where it is in no package index."""


class IndexRef(Record):
    """A further package index."""

    url: str = Field(
        pattern=r"^(https?|file)://[^\x00-\x20\x7f]+$", max_length=4096, description="Address."
    )
    packages: tuple[str, ...] = Field(
        (),
        max_length=1000,
        description="Packages that come from this index and from no other (dependency confusion);"
        " when empty, it is asked like any other.",
    )


# Keys that say where wheels come from, and mean nothing for an archive.
_OF_INDEXES = (
    "package", "extras", "index", "indexes", "constraints", "exclude_newer", "build_sdists",
    "requirements", "exclude", "wheels",
)  # fmt: skip


class EngineRef(Record):
    """The inference engine and how its wheels are found."""

    name: Literal["vllm", "llama.cpp", "ollama"] = Field(description="Engine.")
    version: str = Field(
        pattern=r"^[0-9][A-Za-z0-9._+!-]{0,99}$", description="Exact version of its package."
    )
    package: str | None = Field(
        None, description="Distribution that holds the engine; `vllm` for vLLM when left out."
    )
    archive: ArchiveRef | None = Field(
        None,
        description="Linux archive of Ollama's release (`ollama-linux-amd64.tar.zst` or `.tgz`), which"
        " is made into a wheel.",
    )
    extras: tuple[str, ...] = Field((), max_length=100, description="Extras of the package.")
    index: str | None = Field(
        None, pattern=r"^(https?|file)://", description="An index to ask before the host's own."
    )
    indexes: tuple[IndexRef, ...] = Field(
        (), max_length=20, description="Further indexes, each with the packages pinned to it."
    )
    constraints: tuple[str, ...] = Field(
        (), max_length=1000, description="Constraints on the closure, e.g. `numpy<2.3`."
    )
    exclude_newer: str | None = Field(
        None,
        pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9:.]+(Z|[+-][0-9]{2}:[0-9]{2}))?$",
        description="Leave out what was uploaded after this date (`2026-03-20`).",
    )
    build_sdists: bool = Field(
        False,
        description="Build wheels of packages that have none; runs their build code on this host.",
    )
    resolver: Literal["uv", "pip-tools"] = Field(
        "uv", description="`pip-tools` only for a target equal to this host."
    )
    requirements: tuple[str, ...] = Field(
        (),
        max_length=1000,
        description="Further requirements to resolve with it, e.g. `torch==2.13.0+cpu`.",
    )
    exclude: tuple[str, ...] = Field(
        (), max_length=1000, description="Packages to leave out of the closure."
    )
    wheels: tuple[Location, ...] = Field(
        (), max_length=1000, description="Local wheels to add, relative to the spec."
    )

    @model_validator(mode="after")
    def _package(self) -> "EngineRef":
        if self.name == "llama.cpp" and not self.package:
            raise ValueError("llama.cpp needs `package`: the distribution with llama-server in it")
        if self.name != "ollama":
            if self.archive:
                raise ValueError(f"`archive` is for ollama; {self.name} comes as wheels")
            return self
        if not self.archive:
            raise ValueError("ollama needs `archive`: the Linux archive of its release")
        idle = [key for key in _OF_INDEXES if getattr(self, key)]
        if idle:
            raise ValueError(f"ollama comes from `archive` alone; leave out {', '.join(idle)}")
        return self

    @property
    def distribution(self) -> str:
        """The distribution that holds the engine."""
        return self.package or ("ollama-runtime" if self.archive else self.name)
