"""`report --questions`: the five questions of an owner, answered from a root's records."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bundler import wiring
from bundler.cli.console import say, show_json
from bundler.cli.streams import OUT
from bundler.domain.questions import Answers, Told

if TYPE_CHECKING:
    from bundler.deploy.root import Root

_STATE = {"answered": "bold green", "partly": "bold yellow", "open": "bold red"}
_HEAD = {
    "answered": "기록으로 답함 / answered",
    "partly": "일부 답함 / partly",
    "open": "근거 없음 / open",
}
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#|!~&])")


def answer_questions(place: Root, out: Path | None, *, json: bool) -> None:
    """Gather, answer, write `questions.json`, `.html` and `.md`, and show.

    Raises:
        StateError: no release is in use.
        TrustError: its bundle's records were changed.
        SpaceError, FileAccessError: of the disk.
    """
    from bundler.deploy.answers import answers
    from bundler.deploy.evidence import Gatherer
    from bundler.format.codec import to_bytes

    found = Gatherer(place, wiring.gate(), wiring.audit_log(place)).gather()
    told = answers(found, place.path, wiring.clock().now())
    folder = (out or place.acceptance).absolute()
    page = wiring.question_page()
    files = {
        "questions.json": to_bytes(told),
        page.filename: page.render(told).encode(),
        "questions.md": ("\n".join(_markdown(told)) + "\n").encode(),
    }
    for name, data in files.items():
        place.write(folder / name, data)
    written = [str(folder / name) for name in files]
    if json:
        show_json(_as_json(told) | {"files": written})
        return
    _show(told)
    for name in written:
        say(name)


def _as_json(told: Answers) -> dict[str, Any]:
    data = told.model_dump(mode="json")
    for one, answer in zip(data["answers"], told.answers, strict=True):
        one["state"] = answer.state
    return data


def _show(told: Answers) -> None:
    for number, answer in enumerate(told.answers, 1):
        # Both languages: who asks may not be who runs the command.
        both = f"{answer.question.en} {answer.question.ko}"
        asked = answer.question.ko if OUT.korean else both
        say(f"{number}. {asked}: {OUT.word(answer.state)}", _STATE[answer.state])
        for one in answer.statements:
            say(f"   {_spoken(one.said)}")
            say(f"     {one.source.record}, {one.source.at}, SHA-256 {one.source.sha256}", "dim")
        for gap in answer.lacking:
            say(f"   missing: {_spoken(gap.why)}", "yellow")
            say(f"     {gap.command}")
    for unread in told.unread:
        say(f"warning: {_spoken(unread)}", "yellow")


def _spoken(text: Told) -> str:
    """In the reader's language: the records' sentences are made in both."""
    return text.ko if OUT.korean else text.en


def _markdown(told: Answers) -> Iterator[str]:
    yield f"# 도입 기관의 다섯 가지 질문 / The owner's five questions: {_plain(told.bundle_id)}"
    yield ""
    yield f"- manifest SHA-256 `{told.manifest_sha256}`"
    if not told.signed:
        yield "- **서명되지 않은 번들 / unsigned bundle**"
    if told.host:
        yield f"- {_plain(told.host)}"
    for number, answer in enumerate(told.answers, 1):
        yield ""
        yield f"## {number}. {_plain(answer.question.ko)} / {_plain(answer.question.en)}"
        yield ""
        yield f"**{_HEAD[answer.state]}**"
        yield ""
        for one in answer.statements:
            yield f"- {_plain(one.said.ko)} / {_plain(one.said.en)}"
            yield f"  (`{one.source.record}`, {one.source.at}, SHA-256 `{one.source.sha256}`)"
        for gap in answer.lacking:
            yield f"- 필요: {_plain(gap.why.ko)} / missing: {_plain(gap.why.en)}: `{gap.command}`"
    if told.unread:
        yield ""
        yield from (f"- {_plain(one.ko)} / {_plain(one.en)}" for one in told.unread)


def _plain(text: str) -> str:
    """One line in which nothing is markup."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))
