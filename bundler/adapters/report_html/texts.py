"""The report's words: both languages, number formats, and the Korean of what the judge says in English.

The record stores one language. Sentences that the judge composes are rebuilt in Korean from their fixed
patterns; what has no pattern (an engine's own error, a source) is shown as it is.
"""

from __future__ import annotations

import re
from html import escape

from bundler.adapters.report_html.texts_correctness import PATTERNS
from bundler.domain.verdict import Verdict

VERDICT = {
    Verdict.PASS: ("합격", "PASS"),
    Verdict.FAIL: ("불합격", "FAIL"),
    Verdict.INCONCLUSIVE: ("판정 보류", "INCONCLUSIVE"),
    Verdict.NOT_COMPARABLE: ("비교 불가", "NOT COMPARABLE"),
}
MEANING = {
    Verdict.PASS: (
        "모든 판정 항목이 기준을 충족했습니다.",
        "Every check met its criterion.",
    ),
    Verdict.FAIL: (
        "기준을 충족하지 못한 항목이 있습니다. 아래 판정 항목을 확인하십시오.",
        "At least one check failed; see the checks below.",
    ),
    Verdict.INCONCLUSIVE: (
        "측정 결과만으로는 합격 여부를 판단할 수 없습니다. 아래 사유를 조치한 뒤 다시 측정하십시오.",
        "The measurement does not decide; act on the reasons below and measure again.",
    ),
    Verdict.NOT_COMPARABLE: (
        "측정 자체가 유효하지 않아 수치를 비교할 수 없습니다. 아래 원인을 없앤 뒤 다시 측정하십시오.",
        "The measurement itself is not sound; remove the cause below and measure again.",
    ),
}
_ERROR = r"(?P<error>: .*)?"
_PATTERNS: tuple[tuple[str, str], ...] = (
    (r"every request answered", "모든 요청에 응답"),
    (r"at least one request answered", "하나 이상의 요청에 응답"),
    (r"SLO: answered for (?P<share>\S+) %", r"SLO: 요청의 \g<share> % 이상 응답"),
    (r"SLO: (?P<terms>.+) for (?P<share>\S+) %", r"SLO: 요청의 \g<share> % 이상이 \g<terms>"),
    (r"expected: (.+)", r"예상 범위: \1"),
    (r"MoE kernel: (\S+)", r"MoE 커널: \1"),
    (r"KV-cache type: (\S+)", r"KV 캐시 자료형: \1"),
    (r"unknown", "확인 불가"),
    (r"the engine's log does not say; see `airbundle kernels`",
     r"엔진 로그에서 확인되지 않음(`airbundle kernels` 참고)"),
    (r"(\d+) of (\d+)", r"\2건 중 \1건"),
    (r"(\d+) of (\d+) good \((\S+) %\), one-sided (\S+) % bounds (\S+) % and (\S+) %",
     r"\2건 중 \1건 충족(\3 %), 단측 \4 % 신뢰하한 \5 %, 신뢰상한 \6 %"),
    (r"(\d+) of (\d+) good \((\S+) %\), one-sided (\S+) % bounds (\S+) % and (\S+) %;"
     r" good and bad come in waves, so they count as (\d+)",
     r"\2건 중 \1건 충족(\3 %), 단측 \4 % 신뢰하한 \5 %, 신뢰상한 \6 %;"
     r" 충족과 미충족이 몰려서 나타나 \7건으로 환산"),
    (rf"every request failed{_ERROR}", r"모든 요청 실패\g<error>"),
    (r"the answers held no output tokens", "응답에 출력 토큰이 없음"),
    (rf"(\d+) failed{_ERROR}; the other checks count them",
     r"\1건 실패\g<error> (다른 항목에서 미충족으로 집계)"),
    (rf"(\d+) failed{_ERROR}", r"\1건 실패\g<error>"),
    (r"too few requests to tell: (\d+) more are needed if none of them fails"
     r" \(acceptance\.requests: (\d+)\)(?P<rest>.*)",
     r"요청 수가 부족해 판단할 수 없음: 추가 요청이 모두 충족해도 \1건이 더 필요"
     r" (acceptance.requests: \2)\g<rest>"),
    (r"missed: failed (.+)", r"미충족 건수: 실패 \1"),
    (r"missed: (.+)", r"미충족 건수: \1"),
    (r"below (\S+)(?P<source>.*)", r"하한 \1 미만\g<source>"),
    (r"above (\S+)(?P<source>.*)", r"상한 \1 초과\g<source>"),
    (r"profile (.+): (\S+ [<>]= \S+)", r"알려진 수치 \1: \2"),
    (r"(\S+), concurrency (\d+): slower than known: (.+)",
     r"\1, 동시 요청 \2건: 알려진 수치보다 느림: \3"),
    (r"(\S+), concurrency (\d+): better than known, a cache or another model\?: (.+)",
     r"\1, 동시 요청 \2건: 알려진 수치보다 지나치게 빠름(캐시나 다른 모델이 응답했을 가능성): \3"),
    (r"(\S+), concurrency (\d+): (\S+) (\S+) is near (\S+), which kernel (\S+) gave in \w+ profile (\S+);"
     r" kernel (.+) gave (\S+) there; this run's kernel: (.+) \(airbundle kernels\)",
     r"\1, 동시 요청 \2건: \3 \4은(는) \7에서 \6 커널로 나온 \5에 가까움. 같은 조건에서 \8 커널은 \9."
     r" 이번 실행의 커널: \g<10> (airbundle kernels로 확인)"),
    (r"tolerance interval 95/95 of (\d+) runs(?P<rest>.*)",
     r"기준 실행 \1회의 허용구간(95/95)\g<rest>"),
    (r"±(\d+) % by default, of (\d+) runs?(?P<rest>.*)",
     r"기본 범위 ±\1 %(기준 실행 \2회)\g<rest>"),
    (r"range that the source states(?P<rest>.*)", r"출처가 밝힌 범위\g<rest>"),
    (r"there is no such figure(?P<source>.*)", r"측정값 없음\g<source>"),
    (r"passes at (\d+) and fails at (\d+), each measured (\d+) times",
     r"동시 요청 \1건에서 합격, \2건에서 불합격(각 \3회 측정)"),
    (r"passes at (\d+) and is not shown to pass at (\d+), each measured (\d+) times",
     r"동시 요청 \1건에서 합격, \2건에서는 합격이 증명되지 않음(각 \3회 측정)"),
    (r"passes at (\d+), the highest level that was asked for", r"탐색 상한인 동시 요청 \1건에서도 합격"),
    (r"fails at (\d+) already, the lowest level that was asked for", r"탐색 하한인 동시 요청 \1건에서 이미 불합격"),
    (r"not shown to pass even at (\d+)", r"동시 요청 \1건에서도 합격이 증명되지 않음"),
    (r"passed once and missed once at (\d+): the edge does not replicate",
     r"동시 요청 \1건의 결과가 측정할 때마다 달라 한계를 확정할 수 없음"),
    (r"the budget of (\S+) s is used up; (?P<error>.*)", r"탐색 시간 \1초를 다 씀; \g<error>"),
    (r"interrupted; (?P<error>.*)", r"중단됨; \g<error>"),
    (r"another set-up", "구성이 다름"),
    (r"(\S+): the set-ups differ in (?P<error>.*)", r"\1: 구성이 다름: \g<error>"),
    (r"(\S+): a run does not say what it was of \(made by an older airbundle\)",
     r"\1: 무엇을 측정했는지 기록하지 않은 실행(이전 버전의 airbundle)"),
    (r"the engine does not say \(no counters in /metrics, no cached_tokens\)",
     "엔진이 알려 주지 않음(/metrics 카운터, cached_tokens 없음)"),
    (r"the engine has no such counters", "엔진에 해당 카운터가 없음"),
    (r"<= (\S+) % of the prompt tokens", r"프롬프트 토큰의 \1 % 이하"),
    (r"within (\S+) % or (\S+) ms", r"\1 % 또는 \2 ms 이내"),
    (r"source: (.*)", r"근거: \1"),
    (r"(\d+) of (\d+) answers came without token counts \(usage\)",
     r"응답 \2건 중 \1건에 토큰 수(usage)가 없음"),
    (r"(\d+) of (\d+) answers were not of (\d+) output tokens \((\d+) to (\d+)\):"
     r" the engine does not honour ignore_eos",
     r"응답 \2건 중 \1건의 출력 토큰 수가 요청한 \3개와 다름(\4~\5개): 엔진이 ignore_eos를 따르지 않음"),
    (r"(\d+) of (\d+) answers ended without \[DONE\]: something cuts the streams",
     r"응답 \2건 중 \1건이 [DONE] 없이 끝남: 중간에서 스트림이 잘리고 있음"),
    (r"this client was up to (\S+) ms late \(p99\) in reading what had arrived: its processors are busy",
     r"측정 클라이언트가 도착한 데이터를 \1 ms(p99)까지 늦게 읽음: 클라이언트의 CPU가 부족함"),
    (r"(\d+) % of the prompt tokens came from the prefix cache: TTFT measures that cache",
     r"프롬프트 토큰의 \1%를 프리픽스 캐시에서 가져옴: TTFT가 캐시를 잰 값임"),
    (r"the engine answered (\d+) requests while we sent (\d+): others use it",
     r"보낸 요청은 \2건인데 엔진이 응답한 요청은 \1건임: 다른 사용자가 엔진을 쓰고 있음"),
    (r"the engine answered (\d+) requests while we sent (\d+): its counters are not about our requests",
     r"보낸 요청은 \2건인데 엔진이 센 요청은 \1건임: 이 시험의 요청을 센 값이 아님"),
    (r"mean TTFT (\S+) ms there, (\S+) ms here: something between client and engine takes the time",
     r"평균 TTFT가 엔진에서는 \1 ms, 클라이언트에서는 \2 ms임: 그 사이에서 지연이 생김"),
    (r"(\S+) requests in flight there, (\S+) here: something between client and engine holds requests,"
     r" or others use it",
     r"처리 중인 요청이 엔진에서는 평균 \1건, 클라이언트에서는 \2건임: 중간에 대기열이 있거나 다른 사용자가 있음"),
    (r"after (\d+) waves the engine had not settled",
     r"워밍업을 \1회 했는데도 응답 시간이 안정되지 않음"),
    (r"the first (\d+) requests took (\S+) ms at the median, the others (\S+) ms:"
     r" the engine was still compiling or filling pools",
     r"처음 \1건의 중앙값은 \2 ms, 나머지는 \3 ms임: 엔진이 아직 컴파일 중이거나 초기화 중이었음"),
    (r"only (\S+) of (\S+) requests were in flight on average",
     r"동시 처리 중인 요청이 평균 \1건에 그침(목표 \2건)"),
    (r"only (\S+) of (\S+) requests were in flight on average;"
     r" raise acceptance\.requests to (\d+)",
     r"동시 처리 중인 요청이 평균 \1건에 그침(목표 \2건). acceptance.requests를 \3(으)로 늘릴 것"),
    (r"the bundle is UNSIGNED: nobody vouches for what was measured",
     "서명 없는 번들: 무엇을 측정했는지 보증하는 주체가 없음"),
    (r"(\S+), concurrency (\d+): (\d+) requests say nothing of p99, which needs (\d+)",
     r"\1, 동시 요청 \2건: 성공한 요청이 \3건뿐이라 p99를 말할 수 없음(\4건부터 가능)"),
    (rf"(\S+), concurrency (\d+): (\d+) of (\d+) requests failed{_ERROR}",
     r"\1, 동시 요청 \2건: 요청 \4건 중 \3건 실패\g<error>"),
    (r"(\S+), concurrency (\d+): prompts had (\d+) tokens at the median, (\d+) were asked for",
     r"\1, 동시 요청 \2건: 프롬프트 길이 중앙값이 \3토큰으로, 설정한 \4토큰과 차이가 큼"),
    (r"(\S+), concurrency (\d+): answers came in one piece; TPOT and ITL say nothing there",
     r"\1, 동시 요청 \2건: 응답이 한 조각으로 와서 TPOT과 ITL은 의미가 없음"),
)  # fmt: skip
_RULES = tuple(
    (re.compile(pattern, re.DOTALL), korean) for pattern, korean in (*_PATTERNS, *PATTERNS)
)
_INSIDE = (
    (" %", "%"),
    (" and <= ", ", <= "),
    (" <= ", " ≤ "),
    (" >= ", " ≥ "),
    (" (source: ", " (근거: "),
    ("; missed: failed ", "; 미충족 건수: 실패 "),
    ("; missed: ", "; 미충족 건수: "),
    ("good in the first wave ", "충족 건수: 버스트(첫 동시 요청) "),
    ("; about ", "; 지금 비율이면 전체 약 "),
    (" in all at this rate", "건 필요"),
    ("; the share is too near the target for any number at this rate",
     "; 충족 비율이 목표에 너무 가까워 요청을 늘려도 판단하기 어려움"),
    (", after it ", ", 그 이후 "),
)  # fmt: skip


def korean(text: str) -> str:
    """The Korean of a sentence of the judge; the text itself when it is not one of them."""
    for pattern, words in _RULES:
        match = pattern.fullmatch(text)
        if match:
            # An optional group that did not take part is left out by expand().
            said = match.expand(words)
            if not match.groupdict().get("error"):  # an engine's own words stay as they are
                for english, own in _INSIDE:
                    said = said.replace(english, own)
            return said
    return text


def both(ko: str, en: str) -> str:
    """Two languages side by side, of which the page shows one. Both are HTML already."""
    if ko == en:
        return ko
    return f'<span class="ko" lang="ko">{ko}</span><span class="en" lang="en">{en}</span>'


def said(text: str) -> str:
    """A sentence of the judge in both languages, escaped."""
    return both(escape(korean(text)), escape(text))


def number(value: float | None) -> str:
    """A figure with as many decimals as mean something; a dash when there is none."""
    if value is None:
        return "–"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
