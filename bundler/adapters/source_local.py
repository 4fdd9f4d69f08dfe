"""ModelSource: what lies on this machine already, a folder of model files or a GGUF file.

Nothing is copied: the files are packed from where they lie.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from bundler.domain.lock import LockedFile, LockedModel
from bundler.domain.sources import ModelRef
from bundler.errors import FormatError, SourceError
from bundler.format.globs import wanted
from bundler.format.ingest import digest_file
from bundler.format.safepath import check_path
from bundler.ports import Task

# Histories and download records, not the model's own files.
_SKIPPED_FOLDERS = {".git", ".cache"}
_GGUF_MAGIC = b"GGUF"
# Version 1 is refused by llama.cpp itself since 2023; 3 is the newest
# (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).
_GGUF_VERSIONS = (2, 3)
_SPLIT = re.compile(r"(?P<stem>.+)-(?P<index>\d{5})-of-(?P<count>\d{5})\.gguf")
# A card's front matter is small; what is larger is none.
_MAX_CARD_BYTES = 2**20
_MAX_LICENCE = 200
_LINK_HINT = "Copy the folder with `cp -rL`, which puts files in place of links, and name the copy."


class LocalSource:
    """A folder: every regular file in it that the filters leave."""

    def pin(self, ref: ModelRef, base: Path) -> LockedModel:
        """Size and digest of each file.

        Raises:
            SourceError: no such folder, a link that leads out of it, or no file left.
        """
        origin = ref.path or ""
        root = base / origin
        with _readable():
            if not root.is_dir():
                raise SourceError(
                    f"models: {root}: no such folder",
                    hint="Correct `path` of the model in the spec.",
                )
            files = tuple(_lock(root, path) for path in sorted(_files(root, ref)))
        if not files:
            raise SourceError(
                f"models: {root}: no file is left after the filters",
                hint="Correct `path`, `include` and `exclude` of the model in the spec.",
            )
        return LockedModel(
            name=ref.label,
            source=ref.source,
            origin=origin,
            licence=_card_licence(root / "README.md"),
            files=files,
        )

    def fetch(
        self, model: LockedModel, file: LockedFile, into: Path, base: Path, task: Task
    ) -> Path:
        """The file's own place; `into` stays untouched.

        Raises:
            SourceError: it is gone or has another size than in the lock.
        """
        return _unchanged(base / model.origin, file)

    def read(
        self, model: LockedModel, file: LockedFile, base: Path, start: int, length: int
    ) -> bytes:
        """Bytes of the file where it lies.

        Raises:
            SourceError: it is gone, cannot be read, or has another size than in the lock.
        """
        return _read(_unchanged(base / model.origin, file), start, length)


class GgufSource:
    """A GGUF file; of a split one, all the parts."""

    def pin(self, ref: ModelRef, base: Path) -> LockedModel:
        """Size and digest of the file or of each part.

        Raises:
            SourceError: a part is missing, or a file is no GGUF of a version in use.
        """
        origin = ref.path or ""
        first = base / origin
        with _readable():
            parts = _parts(first)
            for part in parts:
                _check_gguf(first.parent / part)
            files = tuple(_lock(first.parent, part) for part in parts)
        return LockedModel(name=ref.label, source=ref.source, origin=origin, files=files)

    def fetch(
        self, model: LockedModel, file: LockedFile, into: Path, base: Path, task: Task
    ) -> Path:
        """The file's own place; `into` stays untouched.

        Raises:
            SourceError: it is gone or has another size than in the lock.
        """
        return _unchanged((base / model.origin).parent, file)

    def read(
        self, model: LockedModel, file: LockedFile, base: Path, start: int, length: int
    ) -> bytes:
        """Bytes of the file where it lies.

        Raises:
            SourceError: it is gone, cannot be read, or has another size than in the lock.
        """
        return _read(_unchanged((base / model.origin).parent, file), start, length)


def _read(path: Path, start: int, length: int) -> bytes:
    with _readable(), path.open("rb") as file:
        file.seek(start)
        return file.read(length)


@contextmanager
def _readable() -> Iterator[None]:
    try:
        yield
    except OSError as cause:
        raise SourceError(
            f"models: {cause.filename}: {cause.strerror}",
            hint="Check the owner and the rights of the file.",
        ) from cause


def _files(root: Path, ref: ModelRef) -> Iterator[str]:
    inside = _carried_folders(root.resolve())

    def refuse(error: OSError) -> None:
        raise error

    for folder, folders, names in os.walk(root, onerror=refuse):
        folders[:] = [name for name in folders if name not in _SKIPPED_FOLDERS]
        here = Path(folder)
        # A linked folder is not entered; its name with a `/` says whether the filters want it.
        links = [f"{name}/" for name in folders if (here / name).is_symlink()]
        for name in (*names, *links):
            path = here / name
            relative = path.relative_to(root).as_posix() + "/" * name.endswith("/")
            if not wanted(relative, ref.include, ref.exclude):
                continue
            if path.is_symlink():
                _check_link(path, inside)
            if path.is_file():
                yield relative


def _carried_folders(root: Path) -> tuple[Path, ...]:
    """Where a link may lead: the folder itself, and of a Hugging Face cache the model's blobs.

    A snapshot in that cache is links only: models--owner--name/snapshots/COMMIT/file leads to
    models--owner--name/blobs/DIGEST (https://huggingface.co/docs/huggingface_hub/guides/manage-cache).
    """
    model = root.parent.parent
    if root.parent.name == "snapshots" and model.name.startswith("models--"):
        return (root, model / "blobs")
    return (root,)


def _check_link(path: Path, inside: tuple[Path, ...]) -> None:
    if not path.exists():
        raise SourceError(f"models: {path}: the link leads to nothing", hint=_LINK_HINT)
    target = path.resolve()
    if target.is_dir():
        raise SourceError(f"models: {path}: a link to a folder", hint=_LINK_HINT)
    if not any(target.is_relative_to(folder) for folder in inside):
        raise SourceError(f"models: {path}: the link leads out of the folder", hint=_LINK_HINT)


def _lock(root: Path, relative: str) -> LockedFile:
    try:
        check_path(relative)
    except FormatError as cause:
        raise SourceError(f"models: {root}: {cause}", hint=cause.hint) from cause
    digests = digest_file(root / relative)
    return LockedFile(path=relative, size=digests.size, sha256=digests.sha256)


def _unchanged(root: Path, file: LockedFile) -> Path:
    try:
        path = root / check_path(file.path)
        size = path.stat().st_size
    except FormatError as cause:
        raise SourceError(f"models: {root}: {cause}") from cause
    except OSError as cause:
        raise SourceError(
            f"models: {root / file.path}: {cause.strerror}",
            hint="Put the file back, or make a new lock with --relock.",
        ) from cause
    if size != file.size:
        raise SourceError(
            f"models: {path}: has {size} bytes, the lock says {file.size}",
            hint="Put the right file back, or make a new lock with --relock.",
        )
    return path


def _parts(path: Path) -> list[str]:
    """Names of all parts of a split GGUF; the one name of any other."""
    split = _SPLIT.fullmatch(path.name)
    names = [path.name]
    if split:
        count = int(split["count"])
        names = [f"{split['stem']}-{part:05d}-of-{count:05d}.gguf" for part in range(1, count + 1)]
    missing = [name for name in names if not (path.parent / name).is_file()]
    if missing:
        raise SourceError(
            f"models: {path.parent}: no file {', '.join(missing[:3])}"
            + (f" and {len(missing) - 3} more" if len(missing) > 3 else ""),
            hint="Name a .gguf file in `path`; of a split one, put all the parts beside it.",
        )
    return names


def _check_gguf(path: Path) -> None:
    with path.open("rb") as file:
        head = file.read(8)
    if head[:4] != _GGUF_MAGIC:
        raise SourceError(
            f"models: {path}: not a GGUF file (begins with {head[:4]!r})",
            hint="A git-lfs pointer or an error page in its place begins with text: fetch it again.",
        )
    version = int.from_bytes(head[4:8], "little")
    if len(head) < 8 or version not in _GGUF_VERSIONS:
        raise SourceError(
            f"models: {path}: GGUF version {version}, can carry {_GGUF_VERSIONS}",
            hint="Convert the model again with a present llama.cpp.",
        )


class _CardLoader(yaml.SafeLoader):
    """Without aliases, of which a few lines can stand for billions of values."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("an alias")
        return super().compose_node(parent, index)


def _card_licence(card: Path) -> str | None:
    """`license` of the front matter, when there is a model card."""
    try:
        with card.open("rb") as file:
            head = file.read(_MAX_CARD_BYTES)
        match = re.match(rb"---\r?\n(.*?\n)---", head, re.DOTALL)
        data = yaml.load(match[1].decode(), Loader=_CardLoader) if match else None  # noqa: S506
    # The card is for people: without a readable one the model is of unknown licence. PyYAML lets
    # out whatever its converters run into.
    except (
        OSError, RecursionError, yaml.YAMLError,
        ArithmeticError, AttributeError, LookupError, TypeError, ValueError,
    ):  # fmt: skip
        return None
    stated = data.get("license") if isinstance(data, dict) else None
    names = stated if isinstance(stated, list) else [stated]
    text = ", ".join(name for name in names if isinstance(name, str))
    return text if text.isprintable() and 0 < len(text) <= _MAX_LICENCE else None
