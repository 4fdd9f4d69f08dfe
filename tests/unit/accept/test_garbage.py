"""Good and bad answers, in Korean and English: what real models write, and what broken ones have written."""

from __future__ import annotations

import pytest

from bundler.accept.correctness import garbage
from bundler.accept.correctness.schema import mismatch, parsed
from tests.fakes.oracle_engine import KOREAN

GOOD = {
    "prose": "A backup that was never restored is a hope, not a backup. Restore it on a spare machine first.",
    "korean": KOREAN,
    "mixed": "vLLM 0.32에서 `--kv-cache-dtype fp8`을 쓰면 KV 캐시가 절반으로 줄어듭니다. GPU는 H200입니다.",
    "code": "def fib(n):\n    a, b = 0, 1\n    for _ in range(n):\n        a, b = b, a + b\n    return a\n",
    "table": "| item | count |\n|--------------------|--------------------|\n| paper | 3 |\n| toner | 4 |\n",
    "ruled": "결과 요약\n========================================\n1. 정상\n2. 정상\n",
    "numbers": "1, 4, 9, 16, 25, 36, 49, 64, 81, 100, 121, 144",
    "list": "\n".join(
        f"{n}. 서버 {n}번의 점검 결과는 정상이며 추가 조치는 필요하지 않습니다."
        for n in range(1, 9)
    ),
    "laughter": "ㅋㅋㅋㅋㅋㅋ 정말 재미있네요. 다음에도 함께 가요.",
    "cut": "마지막 글자가 잘린 답변입니다\N{REPLACEMENT CHARACTER}",
    "chinese": "这台服务器每周一早上九点进行检查，结果正常。",
    "short": "네.",
    "greek": "The angle α is twice β, so sin α = 2 sin β cos β holds.",
}
BAD = {
    "bangs": ("!" * 64, "'!' repeats 64 times"),
    "late bangs": ("The capital of France is" + "!" * 40, "'!' repeats 40 times"),
    "zeros": ("답변: " + "0" * 30, "'0' repeats 30 times"),
    "word loop": ("The answer is " + "good " * 30, "loop of"),
    "phrase loop": ("우선 서버를 확인합니다. " * 12, "loop of"),
    "sentence loop": ("I think that we should check it again. " * 8, "loop of"),
    "few words": (" ".join(["wou", "wer", "that", "mak", "justm"][n * n % 5] for n in range(80)) + " x", "different"),
    "broken bytes": ("안\ufffd\ufffd\ufffd녕\ufffd하\ufffd세요", "are no text"),
    "control": ("hello\x00\x01 there", "control characters"),
    "alphabet soup": ("Привет мир это проверка สวัสดี مرحبا שלום the", "scripts"),
    "only rules": ("-" * 100, "nothing but"),
}  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_sensible_text_passes(name: str) -> None:
    assert garbage.fault(GOOD[name]) == ""


@pytest.mark.parametrize("name", BAD)
def test_broken_text_is_named(name: str) -> None:
    text, words = BAD[name]
    assert words in garbage.fault(text)


def test_korean_is_told_from_what_is_not() -> None:
    assert garbage.not_korean(KOREAN) == ""
    assert garbage.not_korean(GOOD["mixed"] + KOREAN) == ""
    assert "only 0 Hangul syllables" in garbage.not_korean(GOOD["prose"])
    assert "letters are Hangul" in garbage.not_korean(KOREAN[:40] + GOOD["prose"] * 2)
    assert "loose jamo" in garbage.not_korean(KOREAN[:60] + "ㄱㅏㄴㅡㅎㅐㅇ" * 3)
    assert "repeats" in garbage.not_korean(KOREAN + "!" * 30)


def test_hostile_lengths_end_soon() -> None:
    for text in ("a" * 2_000_000, "ab" * 1_000_000, "가나다" * 500_000, " " * 2_000_000):
        garbage.fault(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"a": 1}', ""),
        (' {"a": 1}\n', ""),
        ('{"a": "x', "cut off"),
        ('{"a": ', "cut off"),
        ("no", "it is no JSON"),
        ("[" * 100_000, "it is nested too deeply"),
    ],
)
def test_json_is_parsed_or_said_why_not(text: str, why: str) -> None:
    assert parsed(text)[1] == why


def test_values_against_our_schemas() -> None:
    schema = {
        "type": "object",
        "properties": {
            "n": {"type": "integer", "minimum": 1, "maximum": 9},
            "who": {"type": "string", "enum": ["a", "b"]},
            "many": {"type": "array", "items": {"type": "boolean"}, "maxItems": 2},
        },
        "required": ["n"],
        "additionalProperties": False,
    }
    good = {"n": 3, "who": "a", "many": [True]}
    assert mismatch(good, schema) == ""
    for wrong, why in (
        ([], "no object"), ({}, "lacks n"), ({"n": True}, "no integer"), ({"n": 10}, "out of range"),
        ({"n": 1.0}, "no integer"), ({"n": 1, "who": "c"}, "allowed values"), ({"n": 1, "x": 1}, "keys"),
        ({"n": 1, "many": [1]}, r"many[0] is no boolean"), ({"n": 1, "many": [True] * 3}, "3 items"),
    ):  # fmt: skip
        assert why in mismatch(wrong, schema)
