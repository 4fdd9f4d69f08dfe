"""Prompts of a wanted length, each unlike every other from its first word on.

A prompt that shares its beginning with an earlier one is answered from the prefix cache and measures
nothing, so each begins with a nonce. The words are plain Korean and English: no tokenizer is needed on
the closed side, the length is set from the token counts that the engine itself reports.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from bundler.domain.spec import Language

_KOREAN = (
    "오늘 회의 자료 점검 서버 설치 결과 보고서 작성 요청 업무 절차 확인 보안 망분리 담당자 승인 일정 변경 사항"
    " 정리 데이터 분석 모델 응답 시간 측정 기준 운영 환경 구성 장비 교체 계획 검토 의견 회신 바랍니다 다음 주"
    " 월요일 오전 본사 지점 고객 문의 처리 현황 통계 예산 집행 내역 시스템 장애 원인 조치 완료 백업 복구 훈련"
)
_ENGLISH = (
    "the report shows how each server answers when many people ask at once and what the team should do"
    " about it before the next release because a slow reply costs time while a wrong one costs trust so we"
    " measure both under the same load with the same settings on every machine that will carry the service"
)
_LANGUAGES: dict[str, list[str]] = {"korean": _KOREAN.split(), "english": _ENGLISH.split()}
# Before the first answer: between English (about 1.3 tokens a word) and Korean (about 3).
_GUESS_TOKENS_PER_WORD = 2.0
_LEAST_TOKENS_PER_WORD = 0.2
_MOST_TOKENS_PER_WORD = 40.0


@dataclass(frozen=True)
class Length:
    """How prompt tokens grow with words: `fixed` (template and nonce) + `per_word` * words."""

    per_word: float = _GUESS_TOKENS_PER_WORD
    fixed: float = 0.0

    def words(self, tokens: int) -> int:
        """Words that give about this many tokens; at least one."""
        return max(1, round((tokens - self.fixed) / self.per_word))


def probe_words(tokens: int) -> tuple[int, int]:
    """Two lengths to calibrate with: far enough apart to tell, far below a long prompt's length.

    A byte-level tokenizer may need ten tokens for a Korean word; a probe as long as the prompt itself
    could overflow the context and would then tell nothing.
    """
    wanted = Length().words(tokens)
    return max(8, wanted // 8), max(32, wanted // 4)


def calibrated(few: tuple[int, int], many: tuple[int, int]) -> Length:
    """The line through two measured (words, tokens); a guess when the engine counted nothing."""
    per_word = (many[1] - few[1]) / (many[0] - few[0])
    if not few[1] or not _LEAST_TOKENS_PER_WORD <= per_word <= _MOST_TOKENS_PER_WORD:
        return Length()
    return Length(per_word, few[1] - per_word * few[0])


def corrected(length: Length, words: int, tokens: float) -> Length:
    """The same slope moved to go through one better measured point."""
    return Length(length.per_word, tokens - length.per_word * words)


def prompt(seed: str, words: int, language: Language = "mixed") -> str:
    """A nonce and `words` words; the same seed gives the same prompt."""
    chance = random.Random(seed)  # noqa: S311 - filler text, no secret
    nonce = f"{chance.getrandbits(40):010x}"
    if language != "mixed":
        return " ".join([nonce, *chance.choices(_LANGUAGES[language], k=words)])
    # The languages take turns: their words differ so much in tokens that a random mix would vary a lot.
    said = [nonce] + [""] * words
    said[1::2] = chance.choices(_LANGUAGES["korean"], k=(words + 1) // 2)
    said[2::2] = chance.choices(_LANGUAGES["english"], k=words // 2)
    return " ".join(said)
