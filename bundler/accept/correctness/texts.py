"""The fixed texts: written for this purpose, in the public domain. A change makes golden records stale.

They are short: every engine holds them, and what they prove does not grow with length. Long contexts are
the needle's part.
"""

from __future__ import annotations

import random

# Greedy answers to these are compared token by token.
PROMPTS = {
    "english": "Explain in two sentences why a backup that was never restored is not a backup.",
    "korean": "망분리 환경에서 소프트웨어를 반입할 때 확인해야 할 점을 두 문장으로 설명해 주세요.",
    "code": "Write a Python function that returns the n-th Fibonacci number without recursion.",
    "numbers": "List the squares of the numbers from 1 to 12, separated by commas.",
    "mixed": "다음 문장을 영어로 번역하세요: 서버 점검은 매주 월요일 오전 아홉 시에 시작합니다.",
    "dialogue": "A visitor asks where the meeting room is. Answer politely in one short sentence.",
}
# How likely a model thinks these is measured token by token.
PASSAGES = {
    "english": (
        "The two engineers carried the boxes into the server room and closed the door behind them. Nothing in"
        " the building was connected to the outside, so everything that the machines would need had to be in"
        " those boxes. They read the list aloud, ticked off each item, and signed the form at the bottom."
    ),
    "korean": (
        "점검 담당자는 서버실에 들어가기 전에 반입 목록을 한 줄씩 확인했다. 외부와 연결된 선은 하나도 없었기"
        " 때문에, 필요한 프로그램과 자료는 모두 상자 안에 들어 있어야 했다. 확인이 끝나자 두 사람은 확인서에"
        " 서명하고 설치를 시작했다."
    ),
}
KOREAN_QUESTION = "재택근무의 장점과 단점을 각각 두 가지씩 한국어로 설명해 주세요."
_PLACES = ("Busan", "Daejeon", "Incheon", "Gwangju", "Suwon", "Jeju", "Ulsan", "Sejong")
_THINGS = ("pump", "valve", "printer", "switch", "battery", "sensor", "rack", "filter")
_DOINGS = ("was checked", "was replaced", "was cleaned", "was moved", "was counted", "was sealed")
_WHENS = (
    "in the morning",
    "after lunch",
    "before the audit",
    "during the night shift",
    "on Friday",
)
_FILLER = "요청 응답 서버 점검 결과 보고 일정 확인 the report of each server shows how many people wait for it"


def record_line(number: int, chance: random.Random) -> str:
    """One line of a dull register; long contexts are made of these."""
    return (
        f"Entry {number}: the {chance.choice(_THINGS)} in {chance.choice(_PLACES)}"
        f" {chance.choice(_DOINGS)} {chance.choice(_WHENS)}, and nothing unusual was noted."
    )


def background_prompt(seed: str, words: int) -> str:
    """A prompt of the load that runs beside the probes, unlike every other one from its first word on."""
    chance = random.Random(seed)  # noqa: S311 - filler text, no secret
    filler = _FILLER.split()
    return " ".join(
        [f"{chance.getrandbits(40):010x}", *(chance.choice(filler) for _ in range(words))]
    )
