"""What the page's terms mean: a tooltip at each, and all of them as a list, which paper shows too.

A tooltip is text inside its term, shown by the style sheet while the term is pointed at, touched or has the
keyboard's focus. No script is needed, and a screen reader is led to it by `aria-describedby`.
"""

from __future__ import annotations

import re
from html import escape
from typing import NamedTuple

from bundler.adapters.report_html.texts import both


class Term(NamedTuple):
    """A term as the page writes it, what it stands for, and what it means; Korean and English each."""

    ko: str
    en: str
    stands_ko: str
    stands_en: str
    means_ko: str
    means_en: str


def _same(name: str, *words: str) -> Term:
    return Term(name, name, *words)


# Key -> the term. The order is that of the list: figures first, then how they are judged, then the engine.
TERMS: dict[str, Term] = {
    "ttft": _same(
        "TTFT", "첫 토큰 지연", "time to first token",
        "요청을 보낸 시점부터 내용이 있는 첫 토큰(추론 토큰 포함)을 받을 때까지의 시간. 역할만 담긴 빈 조각은 세지 않습니다.",
        "From sending the request to the first non-empty token, reasoning included. Role-only chunks do not count."),
    "tpot": _same(
        "TPOT", "출력 토큰당 시간", "time per output token",
        "(마지막 토큰 시각 − 첫 토큰 시각) ÷ (출력 토큰 수 − 첫 조각의 토큰 수, 모르면 1). TTFT는 포함하지 않습니다.",
        "(last token − first token) ÷ (output tokens − those of the first chunk, one when unknown); excludes TTFT."),
    "itl": _same(
        "ITL", "토큰 간 지연", "inter-token latency",
        "토큰 사이의 간격. 조각 하나에 토큰이 여러 개이면 간격을 토큰 수로 나눕니다. 엔진이 토큰 수를 알려 주지 않으면 조각 사이의 간격이므로 보조 지표로만 봅니다.",
        "Gaps between tokens; a chunk of several tokens shares its gap between them. Where the engine does not say how many there were, these are gaps between chunks: a secondary figure."),
    "e2e": _same(
        "E2E", "전체 응답 시간", "end-to-end latency",
        "요청을 보낸 시점부터 마지막 토큰을 받을 때까지의 시간.",
        "From sending the request to the last token."),
    "rate": _same(
        "tok/s", "초당 출력 토큰", "output tokens a second",
        "합계는 모든 사용자의 출력 토큰을 시간으로 나눈 값, 사용자당은 한 사람이 보는 생성 속도(1000 ÷ TPOT p50)입니다. 입력 토큰은 세지 않습니다.",
        "In total: all users' output tokens over the time. Per user: the speed that one person sees (1000 ÷ TPOT p50). Input tokens do not count."),
    "p95": _same(
        "p50 · p95 · p99", "백분위수", "percentiles",
        "성공한 요청의 50%, 95%, 99%가 이 값 이하입니다(선형 보간). 성공한 요청이 299건보다 적으면 p99는 적지 않고 최댓값만 적습니다.",
        "50 %, 95 %, 99 % of the successful requests are at or below it (linear interpolation). With fewer than 299 successful requests there is no p99, only the maximum."),
    "in_flight": Term(
        "동시 요청 수", "requests in flight", "동시 사용자", "users at once",
        "같은 순간에 처리 중인 요청의 수. 화면을 열어 둔 사람 수가 아니라 응답을 기다리는 사람 수입니다.",
        "Requests being answered at the same moment: people who wait for an answer, not people who have a window open."),
    "load": Term(
        "폐쇄 루프", "closed loop", "부하 방식", "how it is loaded",
        "정해진 수의 요청을 항상 처리 중으로 유지하며, 하나가 끝나면 바로 다음 요청을 보냅니다. 워밍업 요청은 집계에서 뺍니다. 프롬프트마다 첫머리가 달라 프리픽스 캐시의 영향을 받지 않습니다.",
        "A fixed number of requests is kept in flight; the next is sent as one ends. Warm-up requests are not counted. Every prompt begins differently, so the prefix cache does not help."),
    "burst": Term(
        "버스트 · 이후", "burst · steady", "첫 물결과 그 이후", "the first wave and what follows",
        "버스트는 모든 사용자가 거의 동시에 보낸 첫 요청들, 그 뒤는 정상 상태의 요청들입니다. 출근 시간처럼 한꺼번에 몰릴 때의 지연은 버스트에서 드러납니다.",
        "The burst is the first request of every user, sent almost together; steady is all after it. What happens when everybody begins at nine o'clock shows in the burst."),
    "slo": _same(
        "SLO", "서비스 수준 목표", "service-level objective",
        "요청 하나가 지켜야 할 한계(TTFT, TPOT, E2E)와, 전체 요청 가운데 그것을 지켜야 하는 비율. 요청이 성공하고 모든 한계를 지키면 ‘충족’으로 셉니다.",
        "The limits that one request must meet (TTFT, TPOT, E2E) and the share of requests that must meet them. A request is good when it succeeded and met every limit."),
    "bound": Term(
        "신뢰하한 · 신뢰상한", "bounds", "측정한 비율로 말할 수 있는 범위", "what the measured share can prove",
        "측정한 건수로 95% 신뢰할 수 있는 충족 비율의 하한과 상한(단측, Clopper–Pearson). 하한이 목표 이상이면 합격, 상한이 목표 미만이면 불합격입니다.",
        "The good share that so many requests prove at 95 % confidence, at least and at most (one-sided, Clopper–Pearson). PASS when the lower bound reaches the target, FAIL when the upper one is below it."),
    "inconclusive": Term(
        "판정 보류", "INCONCLUSIVE", "측정은 유효하나 결론이 나지 않음", "sound, and undecided",
        "측정은 올바르지만 요청 수로는 합격도 불합격도 증명되지 않습니다. 사유에 적힌 수만큼 요청을 늘려 다시 측정하십시오.",
        "The measurement is right, but so many requests prove neither. Measure again with as many as the reason says."),
    "not_comparable": Term(
        "비교 불가", "NOT COMPARABLE", "측정 자체가 유효하지 않음", "the measurement is not sound",
        "타당성 검사에 걸려 수치를 판정이나 비교에 쓸 수 없습니다. 원인을 없애고 다시 측정해야 합니다.",
        "A gate failed, so the figures judge nothing and compare with nothing. Remove the cause and measure again."),
    "gate": Term(
        "타당성 검사", "gate", "측정이 제대로 되었는지의 검사", "is the measurement what it claims to be",
        "판정에 앞서 토큰 수, 부하, 캐시, 측정 클라이언트의 지연 등을 확인합니다. 하나라도 부적합이면 그 단계는 비교 불가입니다.",
        "Before anything is judged: token counts, load, caches, the client's own lag and more. Where one failed the level is NOT COMPARABLE."),
    "fingerprint": Term(
        "구성 지문", "fingerprint", "수치가 달라지는 조건", "what figures depend on",
        "모델, 엔진과 버전, 커널, KV 캐시 자료형, GPU, 길이 등 수치를 좌우하는 조건의 묶음. 지문이 같은 실행끼리만 비교해 판정합니다.",
        "Model, engine and version, kernel, KV-cache type, GPU, lengths: what decides the figures. Only runs with the same one are judged by each other."),
    "prefix_cache": Term(
        "프리픽스 캐시", "prefix cache", "앞부분이 같은 프롬프트의 재사용", "reuse of equal beginnings",
        "이미 계산한 프롬프트 앞부분을 다시 계산하지 않는 기능. 시험 프롬프트가 캐시에 있으면 실제보다 몇 배 빠르게 측정됩니다.",
        "The engine does not compute again what an earlier prompt began with. With test prompts in the cache a run looks several times faster than it is."),
    "kv_cache": Term(
        "KV 캐시", "KV cache", "문맥을 담는 GPU 메모리", "GPU memory that holds contexts",
        "처리 중인 모든 요청의 문맥이 차지하는 메모리. 가득 차면 요청이 대기하거나 선점되며, 동시 사용자 수의 한계를 정합니다.",
        "Where the contexts of all requests in flight lie. When it is full requests queue or are preempted; it limits the users at once."),
    "preemption": Term(
        "선점", "preemption", "처리 중인 요청을 밀어냄", "a running request is put off",
        "KV 캐시가 모자라 처리 중이던 요청을 내보내고 나중에 다시 계산하는 일. 자주 나오면 동시 요청 수나 문맥 길이를 줄여야 합니다.",
        "With the KV cache full a running request is thrown out and computed again later. Where it happens often, allow fewer users or shorter contexts."),
    "kernel": Term(
        "커널", "kernel", "GPU에서 도는 계산 코드", "the code that computes on the GPU",
        "같은 모델도 어떤 커널(Triton, DeepGEMM 등)로 도는지에 따라 속도가 두 배 이상 달라집니다. 설정이 아니라 엔진이 실제로 보고한 커널을 적습니다.",
        "The same model may be twice as fast or slow by its kernel (Triton, DeepGEMM). The page says which one the engine reported, not which was asked for."),
    "moe": _same(
        "MoE", "전문가 혼합", "mixture of experts",
        "토큰마다 일부 전문가만 계산하는 모델 구조. 35B-A3B는 전체 35B 중 토큰당 3B만 계산합니다. 전문가 계산 커널이 속도를 좌우합니다.",
        "A model that computes only some of its experts for each token: 35B-A3B holds 35B parameters and uses 3B a token. The kernel of the experts decides its speed."),
}  # fmt: skip

_UNSAFE = re.compile(r"[^a-z0-9-]")


def term(key: str, where: str, shown: str = "") -> str:
    """A term with its tooltip.

    Args:
        key: of `TERMS`.
        where: the place on the page; with the key it names the tooltip, so each place has a term once.
        shown: HTML in place of the term's own name, such as one percentile of the three.
    """
    one = TERMS[key]
    name = f"tip-{_UNSAFE.sub('-', where.lower())}-{key.replace('_', '-')}"
    tip = both(
        f"<b>{one.stands_ko}</b> {escape(one.means_ko)}",
        f"<b>{one.stands_en}</b> {escape(one.means_en)}",
    )
    return (
        f'<span class="term" tabindex="0" aria-describedby="{name}">{shown or both(one.ko, one.en)}'
        f'<span class="tip" role="tooltip" id="{name}">{tip}</span></span>'
    )


def terms(keys: tuple[str, ...], where: str) -> str:
    """A line of terms, for tables whose headings have no room for them."""
    return f'<p class="terms">{" ".join(term(key, where) for key in keys)}</p>'


def glossary() -> str:
    """All terms as a list."""
    inside = "".join(
        f"<dt><strong>{both(one.ko, one.en)}</strong><br>{both(one.stands_ko, one.stands_en)}</dt>"
        f"<dd>{both(escape(one.means_ko), escape(one.means_en))}</dd>"
        for one in TERMS.values()
    )
    return f'<h2>{both("용어 풀이", "Glossary")}</h2><dl class="glossary">{inside}</dl>'
