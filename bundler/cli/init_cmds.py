"""`airbundle init`: a first spec, by questions on a terminal or by options alone."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bundler.cli.console import quote, say, show_json
from bundler.cli.options import DryRunOption, JsonOption
from bundler.cli.streams import ERR
from bundler.domain.gpus import GPUS
from bundler.domain.gpus import gpu as gpu_called
from bundler.domain.sizes import MEDIA
from bundler.errors import SpecError, StateError, disk_errors

if TYPE_CHECKING:
    from bundler.build.starting import Answers

_GPUS = ", ".join(
    dict.fromkeys(
        model.aliases[0] if gpu_called(model.aliases[0]) else model.name for model in GPUS
    )
)


def _gpu_names(incomplete: str) -> list[str]:
    """Names that are certain: `A100` alone is not."""
    names = dict.fromkeys(name for model in GPUS for name in (*model.aliases, model.name))
    return [name for name in names if name.startswith(incomplete) and gpu_called(name)]


def _media(incomplete: str) -> list[str]:
    return [name for name in (*MEDIA, "16GB-usb") if name.startswith(incomplete)]


def init(
    out: Annotated[
        Path | None,
        typer.Argument(help="Spec file to make; NAME.yaml when left out.", show_default=False,
                       readable=False),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", help="Hub repository (owner/name), or ./PATH of a folder or a GGUF file.",
                     show_default=False),
    ] = None,
    revision: Annotated[str, typer.Option("--revision", help="Branch, tag or commit.")] = "main",
    gpu: Annotated[
        str | None,
        typer.Option("--gpu", help=f"GPU of the target: {_GPUS}.", show_default=False,
                     autocompletion=_gpu_names),
    ] = None,
    gpus: Annotated[int, typer.Option("--gpus", help="How many of them.")] = 1,
    engine: Annotated[
        Literal["vllm", "llama.cpp", "ollama"] | None,
        typer.Option("--engine", help="What serves it.", show_default="llama.cpp for GGUF, else vllm"),
    ] = None,
    engine_version: Annotated[
        str, typer.Option("--engine-version", help="Exact version; the one of our manifests when left out.",
                          show_default=False),
    ] = "",
    archive: Annotated[
        Path | None,
        typer.Option("--archive", help="ollama: the Linux archive of its release.", show_default=False,
                     readable=False),
    ] = None,
    quantization: Annotated[
        str, typer.Option("--quantization", help="Which GGUF of a repository.")
    ] = "Q4_K_M",
    python: Annotated[str, typer.Option("--python", help="CPython on the target.")] = "3.12",
    glibc: Annotated[
        str, typer.Option("--glibc", help="glibc of the target (`ldd --version`), e.g. 2.31.")
    ] = "auto",
    cuda: Annotated[
        str, typer.Option("--cuda", help="Newest CUDA of its driver (`nvidia-smi`), e.g. 12.8.",
                          show_default=False),
    ] = "",
    tool: Annotated[
        list[str] | None,
        typer.Option("--tool", help="What it has for compiling (gcc, g++, nvcc, ninja, python-headers,"
                     " none); several times.", show_default="as the engine needs"),
    ] = None,
    medium: Annotated[
        str, typer.Option("--medium", help=f"What carries it: {', '.join(MEDIA)}, or 16GB-usb.",
                          autocompletion=_media),
    ] = "fat32",
    context: Annotated[int, typer.Option("--context", help="Context length, tokens.")] = 32768,
    users: Annotated[int, typer.Option("--users", help="Users at once that it must bear.")] = 10,
    port: Annotated[
        int | None, typer.Option("--port", help="TCP port of the service.", show_default="by engine")
    ] = None,
    name: Annotated[
        str, typer.Option("--name", help="Name of the bundle; of model and GPU when left out.",
                          show_default=False),
    ] = "",
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
    ask: Annotated[
        bool, typer.Option("--ask/--no-ask", help="Ask for what is left out; never without a terminal."),
    ] = True,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
) -> None:  # fmt: skip
    """Write a first spec with a reason beside each key. Asks on a terminal; elsewhere, options say it all."""
    from bundler.build.starting import Answers, check_answers, engine_for, spec_text

    asking = ask and not json and (model is None or gpu is None) and _on_terminal()
    if not asking:
        _refuse_missing({"--model": model, "--gpu": gpu})
    given = Answers(
        model=model or "owner/name", gpu=gpu or GPUS[0].name, revision=revision, gpus=gpus,
        engine=engine or engine_for(model or ""), engine_version=engine_version,
        quantization=quantization, python=python, glibc=glibc, cuda=cuda,
        tools=None if tool is None else tuple(one for one in tool if one != "none"),
        medium=medium, context=context, users=users, port=port, name=name,
    )  # fmt: skip
    if asking:
        given = _asked(given, model=model is None, gpu=gpu is None, engine=engine is None)
    given = _with_archive(given, archive)
    spec = check_answers(given)
    path = out or Path(f"{spec.name}.yaml")
    files = _files(path, spec_text(given), force=force)
    if not dry_run:
        # The spec last: once it is there, the same command refuses to go on.
        for file, text in reversed(files.items()):
            _write(file, text)
    if json:
        show_json({"spec": str(path), "name": spec.name, "written": [str(f) for f in files] if not dry_run
                   else [], "would_write": list(map(str, files)), "text": files[path]})  # fmt: skip
        return
    if dry_run:
        # A document, not a message: never translated.
        quote(files[path].rstrip("\n"))
        ERR.line(f"would write {', '.join(map(str, files))}; nothing was written (--dry-run)")
        return
    say(f"{path}: written", "bold green")
    say(f"look through it, then: airbundle plan {path}")


def _on_terminal() -> bool:
    return bool(sys.stdin and sys.stdin.isatty() and sys.stderr and sys.stderr.isatty())


def _refuse_missing(needed: dict[str, str | None]) -> None:
    missing = [flag for flag, value in needed.items() if not value]
    if missing:
        raise SpecError(
            f"init: without a terminal nobody can be asked, and no value was given for {', '.join(missing)}",
            hint='For example: airbundle init --model owner/name --gpu "NVIDIA H200"',
        )


def _with_archive(given: Answers, archive: Path | None) -> Answers:
    if given.engine != "ollama":
        return given
    from bundler.format.digests import sha256_file

    if archive is None:
        raise SpecError(
            "init: --archive is missing: ollama comes as the archive of its release",
            hint="Download ollama-linux-amd64.tar.zst of the version, and give --archive FILE.",
        )
    with disk_errors("reading", archive):
        digest = sha256_file(archive)
    return replace(given, archive=str(archive), archive_sha256=digest)


def _files(path: Path, text: str, *, force: bool) -> dict[Path, str]:
    """What is to be written where: the spec, and beside it the schema that its first line names."""
    import json

    from bundler.build.starting import SCHEMA_FILE
    from bundler.cli.build_cmds import schema_document

    if path.is_dir():
        raise StateError(
            f"{path}: is a folder", hint="Name the file to write: airbundle init NAME.yaml"
        )
    if path.exists() and not force:
        raise StateError(f"{path}: is there already", hint="Name another file, or give --force.")
    files = {path: text}
    beside = path.with_name(SCHEMA_FILE)
    if force or not beside.exists():
        files[beside] = json.dumps(schema_document(), indent=2, sort_keys=True) + "\n"
    return files


def _write(path: Path, text: str) -> None:
    from bundler.format.atomic import write_atomically

    with disk_errors("writing", path):
        write_atomically(path, text.encode())


def _asked(given: Answers, *, model: bool, gpu: bool, engine: bool) -> Answers:
    """Ask one thing after another; each answer is judged at once, and asked again when it is wrong."""
    from bundler.build.starting import VERSIONS, engine_for

    ERR.line(
        "A first spec. Enter takes what stands in brackets; Ctrl-C leaves, and nothing is written."
    )
    if model:
        given = _question(given, "model", "Model: Hub repository (owner/name), or ./PATH", None)
        if engine:
            given = replace(given, engine=engine_for(given.model))
    if given.source == "hub":
        given = _question(given, "revision", "Revision: branch, tag or commit", given.revision)
    if gpu:
        for number, card in enumerate(GPUS, 1):
            ERR.line(f"  {number:>2}  {card.name}  {card.memory_bytes / 2**30:.0f} GiB")
        given = _question(given, "gpu", "GPU of the target: number or name", "1", _card)
    given = _question(given, "gpus", "How many of them", str(given.gpus), _number)
    if engine:
        given = _question(given, "engine", f"Engine: {', '.join(VERSIONS)}", given.engine, _engine)
    given = _question(given, "engine_version", "Its version", given.version)
    given = _question(given, "python", "CPython on the target", given.python)
    given = _question(given, "glibc", "Its glibc (`ldd --version`)", given.glibc)
    given = _question(given, "cuda", "Newest CUDA of its driver (top right of nvidia-smi; - unknown)",
                      given.cuda or "-", lambda text: "" if text == "-" else text)  # fmt: skip
    given = _question(given, "context", "Context length, tokens", str(given.context), _number)
    given = _question(given, "users", "Users at once", str(given.users), _number)
    given = _question(given, "port", "Port of the service", str(_port(given)), _number)
    given = _question(given, "medium", f"Medium: {', '.join(MEDIA)}, 16GB-usb", given.medium)
    return _question(given, "name", "Name of the bundle", given.bundle)


def _question(
    given: Answers, field: str, prompt: str, default: str | None,
    read: Callable[[str], object] = str,
) -> Answers:  # fmt: skip
    from bundler.build.starting import check_answers

    while True:
        text = typer.prompt(prompt, default=default, err=True).strip()
        try:
            change: dict[str, Any] = {field: read(text)}
            changed = replace(given, **change)
            if changed.engine != "ollama" or changed.archive:
                check_answers(changed)
        except (SpecError, ValueError) as error:
            ERR.line(f"  {str(error).removeprefix('init: ')}", style="yellow")
            continue
        return changed


def _port(given: Answers) -> int:
    from bundler.build.starting import PORTS

    return given.port if given.port is not None else PORTS[given.engine]


def _card(text: str) -> str:
    from bundler.build.starting import known_gpu

    if text.isascii() and text.isdigit() and 1 <= int(text[:4]) <= len(GPUS):
        return GPUS[int(text) - 1].name
    return known_gpu(text).name


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise ValueError(f"{text[:40]!r} is no whole number")
    return int(text)


def _engine(text: str) -> str:
    from bundler.build.starting import VERSIONS

    if text not in VERSIONS:
        raise ValueError(f"{text[:40]!r} is none of {', '.join(VERSIONS)}")
    return text


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(rich_help_panel="Connected side")(init)
