"""What is in a model: its card, its licence, and what in it can run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import yaml

from bundler.domain.inventory import (
    RANKS,
    CheckKind,
    Executable,
    FileCheck,
    LicenceFacts,
    LicenceText,
    ModelCard,
    Rank,
)
from bundler.domain.manifest import Entry
from bundler.errors import MissingVolumeError
from bundler.format.contents import Contents
from bundler.format.gguf import read_gguf
from bundler.format.remotecode import mapped_modules
from bundler.format.safetensors import HeaderFault, read_tensors
from bundler.format.untrusted import NotAnObject, parse_object, shown
from bundler.format.weightsafety import HEAD_BYTES, can_hold_code, is_program
from bundler.review.licences import model_licence
from bundler.review.licencetexts import MAX_TEXT
from bundler.review.pickles import read_pickles
from bundler.review.secondscan import scanner
from bundler.review.templates import MAX_TEMPLATE, suspicious
from bundler.review.wheelcontents import is_licence_file, pickle_finding

Result = Literal["passed", "found", "not checked"]
_MAX_JSON = 32 * 2**20
_MAX_VALUES = 4_000_000
_MAX_CARD = 2**20
_MAX_FRONT = 64 * 2**10
_MAX_LICENCES = 20
_ARCHIVES = (".zip", ".tar", ".gz", ".tgz", ".xz", ".bz2", ".zst", ".7z", ".rar", ".whl")
_SCRIPTS = (".sh", ".bash", ".bat", ".cmd", ".ps1", ".exe", ".dll", ".jar", ".js", ".vbs")
_TEMPLATE_TEXTS = (".jinja", ".jinja2")
_TEMPLATE_KEYS = ("tokenizer_config.json", "chat_template.json", "processor_config.json")


@dataclass(frozen=True)
class ModelContents:
    """What a model's files say, and what was seen in them."""

    card: ModelCard
    licence: LicenceFacts
    executes: tuple[Executable, ...]
    checks: tuple[FileCheck, ...] = ()


class ModelReader:
    """Looks into one model. `prefix` is its folder in the bundle."""

    def __init__(self, contents: Contents, prefix: str, entries: Sequence[Entry]) -> None:
        self._contents = contents
        self._files = {entry.path.removeprefix(prefix): entry for entry in entries}
        self._parsed: dict[str, dict[str, Any]] = {}
        self._unread: list[Executable] = []
        self._checks: list[FileCheck] = []
        self._scanner = scanner()

    def read(self, recorded: str | None, *, trusted_code: bool) -> ModelContents:
        """Look at everything.

        Args:
            recorded: the licence that the supplier's lock has.
            trusted_code: whether a service is started with --trust-remote-code.

        Raises:
            IntegrityError: bytes are not what the manifest promises.
        """
        front = self._front_matter()
        executes = [
            *self._remote_code(trusted=trusted_code),
            *(found for path in self._files for found in self._of_file(path)),
            *self._templates(),
        ]
        return ModelContents(
            card=self._card(front),
            licence=model_licence(front, tuple(self._licences()), recorded),
            executes=(*executes, *self._unread),
            checks=tuple(self._checks),
        )

    def _bytes(self, path: str, length: int) -> bytes:
        return self._contents.read(self._files[path], 0, length)

    def _json(self, path: str) -> dict[str, Any]:
        if path not in self._parsed:
            self._parsed[path] = self._object(path)
        return self._parsed[path]

    def _object(self, path: str) -> dict[str, Any]:
        entry = self._files.get(path)
        if entry is None:
            return {}
        try:
            if entry.size > _MAX_JSON:
                raise NotAnObject(f"has {entry.size} bytes")
            return parse_object(self._bytes(path, entry.size), values=_MAX_VALUES)
        except NotAnObject as fault:
            self._unread.append(_unread(path, f"was not looked into: it {fault}"))
            return {}

    def _remote_code(self, *, trusted: bool) -> Iterator[Executable]:
        how = (
            "a service is started with --trust-remote-code, so that it runs"
            if trusted
            else "runs only with --trust-remote-code, which no service here has"
        )
        named = mapped_modules(self._json)
        for name in named:
            if "--" in name:
                what = f"auto_map names code of another repository; {how}"
            elif name not in self._files:
                what = f"auto_map names this file, which is not in the bundle; {how}"
            else:
                what = f"Python that auto_map names; {how}"
            digest = self._files[name].sha256 if name in self._files else None
            yield Executable(
                rank="attention", kind="remote-code", where=name, what=what, digest=digest
            )
        for path, entry in self._files.items():
            if path.endswith(".py") and path not in named:
                yield Executable(
                    rank="attention", kind="remote-code", where=path, digest=entry.sha256,
                    what="Python among the model's files; auto_map does not name it",
                )  # fmt: skip

    def _of_file(self, path: str) -> Iterator[Executable]:
        entry = self._files[path]
        low = path.lower()
        head = self._bytes(path, HEAD_BYTES)
        if head.startswith((b"\x7fELF", b"MZ")):
            yield Executable(rank="attention", kind="native", where=path, digest=entry.sha256,
                             what="machine code among the model's files")  # fmt: skip
        elif is_program(path, entry.size, partial(bytes, head)):
            yield from self._pickle(path, entry)
        elif low.endswith(".safetensors"):
            self._tensors(path, entry)
        elif can_hold_code(path):
            yield _unread(path, "a format with room for code (layers, graphs); not looked into")
        elif low.endswith(_SCRIPTS) or head.startswith(b"#!"):
            yield Executable(rank="attention", kind="install-script", where=path,
                             digest=entry.sha256, what="a script; nothing here calls it")  # fmt: skip
        elif low.endswith(_ARCHIVES):
            yield _unread(path, "an archive; not looked into")

    def _pickle(self, path: str, entry: Entry) -> Iterator[Executable]:
        with self._contents.open(entry) as file:
            found = read_pickles(file, entry.size, second=bool(self._scanner))
        ours = pickle_finding(path, found, entry.sha256)
        yield ours
        self._note("pickle", path, "passed" if ours.rank == "usual" else "found", ours.what)
        opinion = found.second
        if opinion is None:
            self._note("pickle", path, "not checked", "it is not installed", by="picklescan")
        elif opinion.dangerous or opinion.suspicious:
            names = ", ".join(opinion.dangerous or opinion.suspicious)
            rank: Rank = "alarm" if opinion.dangerous else "attention"
            what = f"picklescan names {'dangerous' if opinion.dangerous else 'suspicious'}: {names}"
            self._note("pickle", path, "found", what, by=self._scanner)
            if RANKS.index(rank) < RANKS.index(ours.rank):
                yield Executable(
                    rank=rank, kind="pickle", where=path, what=what, digest=entry.sha256
                )
        elif opinion.fault:
            self._note("pickle", path, "not checked", opinion.fault, by=self._scanner)
        else:
            self._note("pickle", path, "passed", by=self._scanner)

    def _tensors(self, path: str, entry: Entry) -> None:
        try:
            read_tensors(partial(self._contents.read, entry), entry.size)
        except HeaderFault as fault:
            self._unread.append(_unread(path, f"its header was not read: it {fault}"))
            self._note("safetensors header", path, "found", str(fault))
        else:
            self._note("safetensors header", path, "passed")

    def _note(
        self, check: CheckKind, where: str, result: Result, said: str = "", *, by: str = "airbundle"
    ) -> None:
        self._checks.append(FileCheck(check=check, where=where, by=by, result=result, said=said))

    def _templates(self) -> Iterator[Executable]:
        for where, text in self._template_texts():
            found, fault = suspicious(text)
            self._note(
                "chat template", where, "found" if found else "not checked" if fault else "passed",
                "; ".join(found[:6]) or fault,
            )  # fmt: skip
            if found:
                yield Executable(
                    rank="alarm", kind="template", where=where,
                    what=f"chat template {'; '.join(found[:6])}"
                    + (f"; it {fault}" if fault else ""),
                )  # fmt: skip
            elif fault:
                yield Executable(
                    rank="attention", kind="template", where=where, what=f"chat template {fault}"
                )
            else:
                yield Executable(
                    rank="usual", kind="template", where=where,
                    what="chat template: a Jinja program that the engine runs for each request",
                )  # fmt: skip

    def _template_texts(self) -> Iterator[tuple[str, str]]:
        for path, entry in self._files.items():
            if path.lower().endswith(_TEMPLATE_TEXTS):
                yield path, self._bytes(path, MAX_TEMPLATE + 1).decode("utf-8", "replace")
            elif path.rsplit("/", 1)[-1] in _TEMPLATE_KEYS:
                yield from _in_value(path, self._json(path).get("chat_template"))
            elif path.lower().endswith(".gguf"):
                yield from self._in_gguf(path, entry)

    def _in_gguf(self, path: str, entry: Entry) -> Iterator[tuple[str, str]]:
        try:
            header = read_gguf(partial(self._contents.read, entry), entry.size)
        except HeaderFault as fault:
            self._unread.append(_unread(path, f"its header was not read: it {fault}"))
            self._note("GGUF header", path, "found", str(fault))
            return
        self._note("GGUF header", path, "passed")
        for key, value in header.metadata.items():
            if key.startswith("tokenizer.chat_template"):
                yield from _in_value(f"{path}: {shown(key, 60)}", value)

    def _front_matter(self) -> dict[str, Any]:
        """The YAML at the head of README.md; of it only texts and lists of texts are used."""
        if "README.md" not in self._files:
            return {}
        text = self._bytes("README.md", _MAX_CARD).decode("utf-8", "replace")
        lines = text.lstrip("\ufeff").split("\n")
        if lines[0].strip() != "---":
            return {}
        end = next((at for at, line in enumerate(lines[1:], 1) if line.strip() == "---"), 0)
        front = "\n".join(lines[1:end])
        try:
            if len(front) > _MAX_FRONT or any(
                isinstance(token, yaml.AliasToken) for token in yaml.scan(front)
            ):
                raise ValueError("too long, or with aliases")
            value = yaml.safe_load(front)
        except (yaml.YAMLError, ValueError, RecursionError) as cause:
            what = f"the card's head was not read: {shown(' '.join(str(cause).split()))}"
            self._unread.append(_unread("README.md", what))
            return {}
        return value if isinstance(value, dict) else {}

    def _licences(self) -> Iterator[LicenceText]:
        named = [path for path in self._files if is_licence_file(path)]
        for path in sorted(named, key=lambda name: (name.count("/"), name))[:_MAX_LICENCES]:
            text = self._bytes(path, MAX_TEXT).decode("utf-8", "replace")
            yield LicenceText(path=path, text=text)

    def _card(self, front: dict[str, Any]) -> ModelCard:
        config = self._json("config.json")
        inner = config.get("text_config")
        inner = inner if isinstance(inner, dict) else {}
        quantized = config.get("quantization_config")
        quantization = quantized.get("quant_method") if isinstance(quantized, dict) else ""
        architectures = _texts(config.get("architectures"))
        dtype = next(
            (
                value
                for value in (
                    config.get("dtype"), config.get("torch_dtype"), inner.get("dtype"),
                    inner.get("torch_dtype"),
                )
                if isinstance(value, str)
            ),
            "",
        )  # fmt: skip
        gguf = {} if architectures else self._gguf_facts()
        return ModelCard(
            architecture=architectures[0] if architectures else gguf.get("architecture", ""),
            model_type=_text(config.get("model_type")),
            quantization=_text(quantization) or gguf.get("quantization", ""),
            dtype=_text(dtype),
            task=_text(front.get("pipeline_tag")),
            languages=_texts(front.get("language")),
            datasets=_texts(front.get("datasets")),
            base_models=_texts(front.get("base_model")),
            tags=_texts(front.get("tags")),
        )

    def _gguf_facts(self) -> dict[str, str]:
        path = next((path for path in self._files if path.lower().endswith(".gguf")), None)
        if path is None:
            return {}
        entry = self._files[path]
        try:
            header = read_gguf(partial(self._contents.read, entry), entry.size)
        except HeaderFault:
            return {}
        sizes: dict[str, int] = {}
        for tensor in header.tensors:
            sizes[tensor.dtype] = sizes.get(tensor.dtype, 0) + tensor.size
        return {
            "architecture": _text(header.metadata.get("general.architecture")),
            "quantization": f"GGUF {max(sizes, key=sizes.__getitem__)}" if sizes else "",
        }


def absent(path: str, cause: MissingVolumeError) -> Executable:
    """What is said of a component whose bytes are not here."""
    return _unread(path, f"was not looked into: {shown(str(cause), 200)}")


def _in_value(path: str, value: object) -> Iterator[tuple[str, str]]:
    """A template, or a list of named ones."""
    for one in value if isinstance(value, list) else [value]:
        text = one.get("template") if isinstance(one, dict) else one
        if isinstance(text, str):
            yield path, text


def _text(value: object) -> str:
    return shown(value, 200) if isinstance(value, str) else ""


def _texts(value: object) -> tuple[str, ...]:
    values = value if isinstance(value, list) else [value]
    return tuple(_text(one) for one in values[:100] if isinstance(one, str) and one)


def _unread(where: str, what: str) -> Executable:
    return Executable(rank="attention", kind="unreadable", where=where, what=what)
