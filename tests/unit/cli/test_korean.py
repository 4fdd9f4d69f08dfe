"""Korean messages: every English one has its own, and what fills a gap stays as it is."""

from __future__ import annotations

import ast
import json
import re
import unicodedata
from pathlib import Path

import pytest

from bundler.bootstrap import airbundle_bootstrap as bootstrap
from bundler.build.pipeline import BOOTSTRAP_FILE
from bundler.cli import language
from bundler.cli.app import run
from bundler.cli.korean import CATALOGUE, cells, translate, word
from bundler.cli.korean.particles import PAIRS, particle
from bundler.cli.streams import ERR, OUT
from bundler.errors import HostError
from scripts.gen_messages import found

GAP = re.compile(r"\{(\d+)(?::([^{}]*))?\}")
HELD = json.loads(CATALOGUE.read_text(encoding="utf-8"))


@pytest.fixture
def _korean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRBUNDLE_LANG", "ko")


def test_every_message_has_korean_and_none_is_stale() -> None:
    wanted = found()
    missing = {kind: sorted(texts - HELD[kind].keys()) for kind, texts in wanted.items()}
    stale = {kind: sorted(HELD[kind].keys() - texts) for kind, texts in wanted.items()}
    assert not any(missing.values()), (
        f"python -m scripts.gen_messages prints what to fill in: {missing}"
    )
    assert not any(stale.values()), f"python -m scripts.gen_messages FILE drops them: {stale}"


def test_every_gap_is_in_both_languages() -> None:
    for english, korean in HELD["messages"].items():
        if korean is None:
            continue
        assert korean, english
        # An English plural, `failure{1}`, has none in Korean.
        gaps = {gap[0] for gap in GAP.findall(re.sub(r"(?<=[a-z])\{\d+\}", "", english))}
        kept = {gap[0] for gap in GAP.findall(korean)}
        assert gaps <= kept <= {gap[0] for gap in GAP.findall(english)}, english
        assert all(form in PAIRS for _, form in GAP.findall(korean) if form), english
        # A terminal is steered by none of them, and a syllable is one sign.
        assert not any(unicodedata.category(sign) == "Cc" for sign in korean), english
        assert unicodedata.is_normalized("NFC", korean), english


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("/media/usb: no such folder", "/media/usb: 폴더가 없습니다"),
        # Gaps in another order, with the particle that the value asks for.
        ("/r: toy is not installed here; installed: a, b", "/r: toy는 설치되어 있지 않습니다. 설치된 릴리스: a, b"),
        # A message within a message.
        ("reading /x: Permission denied", "/x 읽기 실패: 권한 없음"),
        # Nothing of ours: as it was.
        ("Loading weights took 3.1 seconds", "Loading weights took 3.1 seconds"),
        ("", ""),
        ("12.5", "12.5"),
    ],
)  # fmt: skip
def test_a_message_is_known_by_its_shape(said: str, wanted: str) -> None:
    assert translate(said) == wanted


def test_what_fills_a_gap_is_not_translated() -> None:
    """A folder that is called like a message's word keeps its name."""
    for name in ("files", "no such folder of mine", "한글 폴더", "{0}", "a: b", "\x1b[31m"):
        assert translate(f"/m/{name}: no such folder").startswith(f"/m/{name}")
        assert translate(f"/m/{name}: no such folder").endswith("폴더가 없습니다")


def test_white_space_of_a_column_stays_as_wide() -> None:
    said = translate("  could not check    ")
    assert said.startswith("  확인 불가")
    assert cells(said) == cells("  could not check    ")


def test_every_whole_message_is_found_as_itself() -> None:
    for english, korean in HELD["messages"].items():
        if korean and "{" not in english and len(re.findall("[A-Za-z]{2,}", english)) > 1:
            assert translate(english) == korean


def _sample(gap: re.Match[str]) -> str:
    value = f"q{gap[1]}7"
    return value + (particle(value, gap[2]) if gap[2] else "")


def test_every_template_is_found_again_when_it_is_filled() -> None:
    """None is hidden behind another one that fits as well."""
    lost = []
    for english, korean in HELD["messages"].items():
        count = len(GAP.findall(english))
        if not korean or not count:
            continue
        filled = GAP.sub(_sample, english)
        wanted = GAP.sub(_sample, korean)
        if translate(filled) != wanted:
            lost.append((english, translate(filled), wanted))
    assert not lost


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("번들을", "번들"), ("릴리스를", "릴리스"), ("wheel을", "wheel"), ("file을", "file"), ("token을", "token"),
        ("list를", "list"), ("engine을", "engine"), ("lock을", "lock"), ("server를", "server"),
        ("vLLM을", "vLLM"), ("URL을", "URL"), ("GPU를", "GPU"), ("0을", "0"), ("2를", "2"), ("10을", "10"),
        ("9를", "9"), ("3.2 GiB를", "3.2 GiB"), ("'toy'를", "'toy'"), ("서버(5)를", "서버(5)"), ("/를", "/"),
    ],
)  # fmt: skip
def test_object_particle(said: str, wanted: str) -> None:
    assert wanted + particle(wanted, "을") == said


def test_direction_after_rieul() -> None:
    assert particle("서울", "으로") == "로"
    assert particle("8", "으로") == "로"
    assert particle("부산", "으로") == "으로"
    assert particle("대구", "으로") == "로"


@pytest.mark.parametrize(
    ("env", "korean"),
    [
        ({}, False),
        ({"LANG": "ko_KR.UTF-8"}, True),
        ({"LANG": "ko_KR.UTF-8", "LC_ALL": "C"}, False),
        ({"LANG": "ko_KR.UTF-8", "LC_MESSAGES": "en_US.UTF-8"}, False),
        ({"LANG": "en_US.UTF-8", "LC_MESSAGES": "ko_KR.eucKR"}, True),
        ({"LANG": "kok_IN"}, False),
        ({"LANG": "ko_KR.UTF-8", "TERM": "linux"}, False),
        ({"AIRBUNDLE_LANG": "ko", "LANG": "en_US.UTF-8", "TERM": "linux"}, True),
        ({"AIRBUNDLE_LANG": "en", "LANG": "ko_KR.UTF-8"}, False),
        ({"AIRBUNDLE_LANG": "", "LANG": "ko_KR.UTF-8"}, True),
    ],
)
def test_which_language(env: dict[str, str], korean: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AIRBUNDLE_LANG", "LC_ALL", "LC_MESSAGES", "LANG", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert language.korean() is korean


def test_another_language_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AIRBUNDLE_LANG", "fr")
    assert run(["status"]) == HostError.exit_code
    said = capsys.readouterr().err
    assert "'fr'" in said
    assert "en or ko" in said


@pytest.mark.parametrize(
    ("encoding", "can"), [("utf-8", True), ("euc-kr", True), ("ascii", False), ("latin-1", False)]
)
def test_an_encoding_without_hangul_gets_english(encoding: str, can: bool) -> None:
    assert language.can_show(encoding) is can


@pytest.mark.usefixtures("_korean")
def test_errors_are_korean_and_json_is_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = tmp_path / "nowhere"
    assert run(["verify", str(gone), "--json"]) == 17
    captured = capsys.readouterr()
    assert captured.err == f"오류: {gone}: 폴더가 없습니다\n조치: 번들이 든 폴더를 지정하십시오.\n"
    told = json.loads(captured.out)
    assert told["error"] == f"{gone}: no such folder"
    assert told["hint"] == "Name the folder with the bundle."


@pytest.mark.usefixtures("_korean")
def test_help_and_usage_errors_are_korean(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["keygen", "--help"]) == 0
    said = capsys.readouterr().out
    assert "사용법:" in said
    assert "Ed25519 키 쌍을 만듭니다" in said
    assert "이 도움말을 표시하고 끝냅니다" in said
    assert run(["keygen", "--bogus"]) == 2
    assert "없는 옵션입니다: --bogus" in capsys.readouterr().err


@pytest.mark.usefixtures("_korean")
def test_help_loses_no_syllable_where_a_line_ends(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Lines of wide signs are wrapped by cells: at every width each word is there in whole."""
    for width in range(78, 86):
        monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", width)
        assert run(["init", "--help"]) == 0
        said = capsys.readouterr().out
        assert "…" not in said
        flowing = re.sub(r"[\s│]+", " ", said)
        assert "여러 번 지정할 수 있습니다." in flowing
        assert "예: airbundle init" in flowing
        assert "[기본값: (엔진별 기본값)]" in flowing


@pytest.mark.usefixtures("_korean")
def test_an_engines_words_are_quoted(capsys: pytest.CaptureFixture[str]) -> None:
    OUT.verbatim("nothing differs")
    OUT.line("nothing differs")
    assert capsys.readouterr().out == "nothing differs\n차이가 없습니다\n"


@pytest.mark.usefixtures("_korean")
def test_words_of_tables() -> None:
    assert word("#size") == "#크기"
    assert word("signed by") == "서명 키"
    assert ERR.word("verify") == "검증"
    assert word("TTFT") == "TTFT"


def _bootstrap_texts() -> tuple[set[str], set[str]]:
    """All strings of the bootstrap outside of its table, and those of its hints."""
    tree = ast.parse(BOOTSTRAP_FILE.read_text(encoding="utf-8"))
    texts: set[str] = set()
    hints: set[str] = set()
    for top in tree.body:
        if isinstance(top, ast.Assign) and getattr(top.targets[0], "id", "") == "KOREAN":
            continue
        for node in ast.walk(top):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.add(node.value)
            is_error = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Error"
            given = node.args[2:] if is_error else []
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "hint":
                given = [node.value]
            hints |= {one.value for one in given if isinstance(one, ast.Constant)}
    return texts, hints


def test_the_bootstraps_hints_are_korean_too() -> None:
    texts, hints = _bootstrap_texts()
    table = dict(bootstrap.KOREAN)
    assert hints <= table.keys()
    said = "\n".join(texts)
    for english, korean in table.items():
        assert english.count("{}") == korean.count("{}"), english
        # "Free space." and what follows are put together as the script runs.
        assert all(piece in said for piece in re.split(r"\{\}|(?<=\.) ", english)), english
    wanted = "/m: a.whl: 잘렸습니다. 현재 3바이트, 원래 9바이트"
    assert bootstrap.told("/m: a.whl: truncated, 3 bytes of 9") == wanted
    assert bootstrap.told("none of ours") == "none of ours"
