"""The page's sections of figures: charts over the levels, every request, and the table of all numbers."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from bundler.adapters.report_html import charts
from bundler.adapters.report_html.charts import Limit
from bundler.adapters.report_html.glossary import term
from bundler.adapters.report_html.ladder import highest, rungs
from bundler.adapters.report_html.texts import both, number
from bundler.domain.facts import (
    AcceptanceRecord,
    LevelMetrics,
    Quantiles,
    RequestSample,
    Stretch,
)
from bundler.domain.spec import Slo

# Requests drawn on the whole page, and at least of each level.
_MOST_DOTS, _LEAST_DOTS = 6_000, 60
# Charts of single requests on the whole page, and at least of each service.
_MOST_CHARTS, _LEAST_CHARTS = 24, 2
# Levels beside each other in a table that still fits on paper.
_COLUMNS = 8


def measured(record: AcceptanceRecord) -> str:
    """For each service: charts over the levels, every request's TTFT, and all numbers."""
    parts = []
    charts_each = max(_LEAST_CHARTS, _MOST_CHARTS // max(len(record.services), 1))
    drawn = sum(
        min(charts_each, sum(level.service == one.service for level in record.levels))
        for one in record.services
    )
    dots = max(_LEAST_DOTS, _MOST_DOTS // max(drawn, 1))
    for place, state in enumerate(record.services):
        levels = [level for level in record.levels if level.service == state.service]
        if not levels:
            continue
        name, shown = escape(state.service), _edge(record, levels, charts_each)
        parts.append(
            f"<h2>{both(f'측정 결과: {name}', f'Measured: {name}')}</h2>"
            f'<div class="grid">{_over_levels(record, levels, place)}{_spreads(record, levels)}'
            f"{_requests(record, shown, dots)}</div>{_left_out(len(levels) - len(shown))}"
            f"<h2>{both(f'전체 수치: {name}', f'All numbers: {name}')}</h2>{_numbers(levels)}"
        )
    return "".join(parts)


def _over_levels(record: AcceptanceRecord, levels: list[LevelMetrics], place: int) -> str:
    slo = record.plan.slo or Slo()
    counts = [level.concurrency for level in levels]
    latencies = (
        ("ttft", "첫 토큰 지연(TTFT), ms", "Time to first token (TTFT), ms",
         [level.ttft for level in levels], slo.ttft_ms),
        ("tpot", "출력 토큰당 시간(TPOT), ms", "Time per output token (TPOT), ms",
         [level.tpot for level in levels], slo.tpot_ms),
        ("e2e", "전체 응답 시간(E2E), ms", "End-to-end latency (E2E), ms",
         [level.e2e for level in levels], slo.e2e_ms),
    )  # fmt: skip
    drawn = [
        _figure(
            (key, ko, en, f"{place}"),
            charts.lines(counts, _series(items), _slo_line(limit)),
            _slo_note(limit),
        )
        for key, ko, en, items, limit in latencies
    ]
    rates = charts.bars(counts, [level.output_tokens_per_s for level in levels])
    drawn.insert(
        1, _figure(("rate", "출력 처리량, tok/s", "Output throughput, tok/s", f"{place}"), rates)
    )
    return "".join(drawn)


def _spreads(record: AcceptanceRecord, levels: list[LevelMetrics]) -> str:
    """How the requests' times are spread, level beside level."""
    slo = record.plan.slo or Slo()
    counts = [level.concurrency for level in levels]
    samples = [record.samples.get(f"{x.service}@{x.concurrency}", ()) for x in levels]
    note = both(
        "선은 p5–p95, 상자는 가운데 절반, 가로선은 p50, 점은 최댓값",
        "line: p5 to p95, box: the middle half, bar: p50, dot: the largest",
    )
    drawn = []
    for name, limit in (("ttft", slo.ttft_ms), ("tpot", slo.tpot_ms)):
        values = [
            [value for s in some if s.ok and (value := getattr(s, f"{name}_ms")) is not None]
            for some in samples
        ]
        title = ("", f"{name.upper()} 분포, ms", f"Spread of {name.upper()}, ms", "")
        drawn.append(_figure(title, charts.boxes(counts, values, _slo_line(limit)), note))
    return "".join(drawn)


def _left_out(levels: int) -> str:
    """A word on the levels whose requests are not drawn."""
    if not levels:
        return ""
    told = both(
        f"요청별 그림은 합격 한계에 가까운 단계만 그렸습니다(나머지 {levels}단계의 요청은 report.json에 있음).",
        f"Single requests are drawn of the levels about the edge; those of the other {levels} are in report.json.",
    )
    return f'<p class="dim">{told}</p>'


def _edge(record: AcceptanceRecord, levels: list[LevelMetrics], most: int) -> list[LevelMetrics]:
    """At most so many levels: those about the highest that passes, where the answer is decided."""
    if len(levels) <= most:
        return levels
    best = highest(rungs(record, levels[0].service))
    edge = next((at for at, one in enumerate(levels) if one.concurrency == best), len(levels) - 1)
    first = min(max(edge - most // 2 + 1, 0), len(levels) - most)
    return levels[first : first + most]


def _requests(record: AcceptanceRecord, levels: list[LevelMetrics], most: int) -> str:
    slo = record.plan.slo or Slo()
    parts = []
    for level in levels:
        samples = record.samples.get(f"{level.service}@{level.concurrency}", ())
        drawn = thinned(samples, most)
        points = [(s.started_s, s.ttft_ms if s.ok else None) for s in drawn]
        note = both(
            "점 하나가 요청 하나, × 표시는 실패", "a dot is a request, a cross a failed one"
        )
        if len(drawn) < len(samples):
            note += "; " + both(
                f"요청 {len(samples):,}건 중 {len(drawn):,}건(느린 요청은 모두 포함)",
                f"{len(drawn):,} of {len(samples):,} requests, the slowest among them",
            )
        parts.append(
            _figure(
                (
                    "",
                    f"요청별 TTFT, ms (동시 요청 {level.concurrency}건)",
                    f"TTFT of every request, ms ({level.concurrency} in flight)",
                    "",
                ),
                charts.scatter(points, _slo_line(slo.ttft_ms)),
                note,
            )
        )
    return "".join(parts)


def thinned(samples: Sequence[RequestSample], most: int) -> list[RequestSample]:
    """At most so many of the requests, in their order: the slowest fifth of these, the rest evenly.

    A page of every request of a large run would be too large to open; what went wrong must not get lost.
    """
    if len(samples) <= most:
        return list(samples)
    order = sorted(
        range(len(samples)),
        key=lambda at: float("inf") if not samples[at].ok else samples[at].ttft_ms or 0.0,
    )
    slow = order[-(most // 5) :]
    rest = sorted(order[: -len(slow)])
    left = most - len(slow)
    even = [rest[index * len(rest) // left] for index in range(left)]
    return [samples[at] for at in sorted({*slow, *even})]


def _series(quantiles: list[Quantiles]) -> list[tuple[str, list[float | None]]]:
    series: list[tuple[str, list[float | None]]] = [
        ("p50", [item.p50 for item in quantiles]),
        ("p95", [item.p95 for item in quantiles]),
    ]
    if any(item.p99 is not None for item in quantiles):
        series.append(("p99", [item.p99 for item in quantiles]))
    return series


def _slo_line(value: float | None) -> Limit | None:
    return None if value is None else Limit(value, f"SLO {value:g} ms")


def _slo_note(value: float | None) -> str:
    return "" if value is None else both(f"SLO 한계 {value:g} ms", f"SLO limit {value:g} ms")


def _figure(title: tuple[str, str, str, str], drawn: str, note: str = "") -> str:
    """A chart below its title: the term that it is of (none: empty), both languages, where it stands."""
    key, ko, en, where = title
    told = term(key, f"figure-{where}", both(ko, en)) if key else both(ko, en)
    caption = f"<figcaption>{note}</figcaption>" if note else ""
    return f"<figure><h3>{told}</h3>{drawn}{caption}</figure>"


def _numbers(levels: list[LevelMetrics]) -> str:
    """All numbers; levels beyond what paper holds go on in a table below."""
    return "".join(
        _some_numbers(levels[at : at + _COLUMNS]) for at in range(0, len(levels), _COLUMNS)
    )


def _some_numbers(levels: list[LevelMetrics]) -> str:
    head = "".join(
        f'<th class="num">{both(f"동시 {level.concurrency}", f"{level.concurrency} in flight")}</th>'
        for level in levels
    )
    rows = [
        ("요청 / 성공", "requests / succeeded", "", [f"{x.requests} / {x.succeeded}" for x in levels]),
        ("성공률", "success rate", "%", [number(x.success_rate * 100) for x in levels]),
        ("소요 시간", "duration", "s", [number(x.duration_s) for x in levels]),
        ("출력 처리량", "output throughput", "tok/s",
         [number(x.output_tokens_per_s) for x in levels]),
        *_quantile_rows("TTFT", [x.ttft for x in levels]),
        *_stretch_rows("버스트(첫 동시 요청)", "first wave", [x.burst for x in levels]),
        *_stretch_rows("버스트 이후", "after it", [x.steady for x in levels]),
        *_quantile_rows("TPOT", [x.tpot for x in levels]),
        *_quantile_rows("ITL", [x.itl for x in levels]),
        *_quantile_rows("E2E", [x.e2e for x in levels]),
        ("출력 토큰 합계", "output tokens", "", [f"{x.output_tokens:,}" for x in levels]),
        ("입력 토큰 p50", "input tokens p50", "", [number(x.input_tokens_p50) for x in levels]),
        ("달성 동시 요청 수", "achieved requests in flight", "",
         [number(x.achieved_concurrency) for x in levels]),
    ]  # fmt: skip
    body = "".join(
        f"<tr{' class=first' if ko.endswith('p50') else ''}><th>{both(ko, en)}</th><td>{unit}</td>"
        + "".join(f'<td class="num">{cell}</td>' for cell in cells)
        + "</tr>"
        for ko, en, unit, cells in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="group" aria-label="전체 수치 / all numbers">'
        f'<table class="data numbers"><thead><tr><th>{both("지표", "Figure")}</th>'
        f"<th>{both('단위', 'Unit')}</th>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _quantile_rows(name: str, items: list[Quantiles]) -> list[tuple[str, str, str, list[str]]]:
    return [
        (f"{name} {ko}", f"{name} {en}", "ms", [number(getattr(item, key)) for item in items])
        for key, ko, en in (
            ("p50", "p50", "p50"),
            ("p95", "p95", "p95"),
            ("p99", "p99", "p99"),
            ("most", "최댓값", "maximum"),
        )
    ]


def _stretch_rows(
    ko: str, en: str, items: list[Stretch | None]
) -> list[tuple[str, str, str, list[str]]]:
    """TTFT of the first wave or of what came after it, and how many met the SLO."""
    good = [
        "–" if item is None or item.good is None else f"{item.good} / {item.requests}"
        for item in items
    ]
    times = [number(None if item is None else item.ttft.p95) for item in items]
    return [
        (f"{ko} TTFT p95", f"{en} TTFT p95", "ms", times),
        (f"{ko} SLO 충족", f"{en} good by the SLO", "", good),
    ]
