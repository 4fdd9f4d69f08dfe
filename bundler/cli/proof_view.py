"""A proof as people read it: verdict first, then findings by weight, memory, sizes."""

from __future__ import annotations

from typing import Any

from bundler.cli.console import quote, say, table
from bundler.cli.memory_bars import bars
from bundler.cli.streams import OUT, unicode_out
from bundler.domain.findings import Finding, Kind, Level
from bundler.domain.fit import Fit, Term
from bundler.domain.lock import Lock
from bundler.domain.needs import HostNeeds, needs_lines
from bundler.domain.proof import Answer, Proof
from bundler.domain.sizes import human
from bundler.domain.target import Target

_STYLES = {Level.ERROR: "bold red", Level.WARNING: "yellow", Level.NOTE: "dim"}
_ANSWERS = {Answer.YES: "bold green", Answer.WITH_WARNINGS: "bold yellow", Answer.NO: "bold red"}


def show_kind(kind: Kind) -> None:
    """What `--explain` prints."""
    say(f"{kind.code} ({kind.level.value}): {kind.title}", "bold")
    say(kind.meaning)
    say(f"What to do: {kind.remedy}")


def show_proof(name: str, target: Target, proof: Proof) -> None:
    """Verdict, findings, memory and what the host must have."""
    say(f"{name}: {proof.answer.value}", _ANSWERS[proof.answer])
    say(f"on {describe(target)}")
    for item in proof.findings:
        _show_finding(item)
    if any(item.level is not Level.NOTE for item in proof.findings):
        say("`airbundle plan --explain CODE` says more about each", "dim")
    for fit in proof.fits:
        _show_fit(fit)
    _show_needs(proof.needs)


def describe(target: Target) -> str:
    """The target in one line."""
    gpus = ", ".join(f"{gpu.count}x {gpu.model}" for gpu in target.gpus)
    return (
        f"{target.os} {target.arch}, CPython {target.python}, glibc {target.glibc}"
        + (f", CUDA {target.cuda}" if target.cuda else "")
        + (f", {gpus}" if gpus else "")
    )


def _show_finding(item: Finding) -> None:
    say(f"{item.level.value:<8} {item.code}: {item.line()}", _STYLES[item.level])
    if item.applied:
        say(f"         applied: {item.applied}", "dim")
    if item.level is not Level.NOTE:
        say(f"         -> {item.fix}")


def _show_fit(fit: Fit) -> None:
    say("")
    for line in bars(fit, min(OUT.width, 100), unicode_out()):
        say(line)
    for term in (*fit.terms, fit.per_token, fit.per_request):
        if term.bytes:
            quote(_term(term, term.how))
    for term in fit.host_terms:
        quote(_term(term, f"in the host's RAM: {term.how}"))
    if fit.kv_bytes > 0:
        more = "".join(
            OUT.spoken(f", {count} of {length:,} tokens") for length, count in fit.at.items()
        )
        say(
            f"  longest request {fit.max_context:,} tokens; at once: {fit.requests} of {fit.context:,} tokens{more}"
        )
    for reason in fit.unknown:
        say(f"  {reason}", "dim")


def _term(term: Term, how: str) -> str:
    """Name, size and calculation, each in the reader's language: a line of columns is no sentence."""
    from bundler.cli.korean import cells

    name = OUT.word(term.name)
    return f"  {name}{' ' * (22 - cells(name))} {human(term.bytes):>10}  {OUT.spoken(how)}"


def _show_needs(needs: HostNeeds) -> None:
    wanted = needs_lines(needs)
    if wanted:
        say("")
        say("the host must have" + ("" if needs.checked else " (as far as it was read)"), "bold")
        for line in wanted:
            say(f"  {line}")


def show_sizes(lock: Lock, summary: dict[str, Any]) -> None:
    """What would be carried, and on how many volumes."""
    rows = [
        (kind, f"{summary[kind].get('name', 'airbundle')} {summary[kind]['version']}",
         f"{summary[kind]['count']} wheels", human(summary[kind]["bytes"]))
        for kind in ("engine", "tool")
        if summary[kind]["count"]
    ]  # fmt: skip
    for model in lock.models:
        pinned = f"{model.origin}@{model.revision}" if model.revision else model.origin
        rows.append(("model", pinned, f"{len(model.files)} files", human(model.size)))
    for extra in lock.extras:
        size = human(extra.size) if extra.size is not None else "?"
        rows.append((extra.role, extra.filename, "1 file", size))
    say("")
    table("", ["what", "which", "#count", "#size"], rows)
    volumes, built = summary["volumes"], summary["engine"]["sdists"]
    say(
        f"{volumes['count']} volume(s) of at most {human(volumes['limit'])},"
        f" {human(volumes['bytes'])} in all;"
        + (f" {built} wheel(s) built here from sdists" if built else " no sdist in the closure"),
        "bold",
    )
