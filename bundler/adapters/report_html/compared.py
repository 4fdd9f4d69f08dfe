"""Two runs in one page: what differs between the set-ups first, then each figure beside its like."""

from __future__ import annotations

from html import escape

from bundler.adapters.report_html.glossary import glossary, terms
from bundler.adapters.report_html.page import document
from bundler.adapters.report_html.texts import VERDICT, both, number, said
from bundler.domain.compared import FigureRow, LevelRow, RunHead, RunsCompared, ServicePair
from bundler.domain.verdict import Verdict

_WIDTH, _HEIGHT = 260, 30
_OUTCOMES = {
    "within": ("차이 없음(오차 범위)", "within the noise", "PASS"),
    "worse": ("나빠짐", "worse", "FAIL"),
    "better": ("좋아짐", "better", "PASS"),
    "not judged": ("판정하지 않음", "not judged", "INCONCLUSIVE"),
}
_HEADLINES = {
    "within": ("차이 없음", "No difference", "B의 수치가 모두 A의 오차 범위 안에 있습니다.",
               "Every figure of B is within A's noise.", "PASS"),
    "worse": ("B가 나빠짐", "B is worse", "오차 범위를 넘어 나빠진 수치가 있습니다.",
              "At least one figure of B is worse than A's, beyond the noise.", "FAIL"),
    "better": ("B가 좋아짐", "B is better", "오차 범위를 넘어 좋아진 수치가 있고, 나빠진 수치는 없습니다.",
               "At least one figure of B is better than A's, beyond the noise, and none is worse.", "PASS"),
    "not comparable": ("비교 불가", "NOT COMPARABLE", "서로 판정할 수 없는 실행입니다. 비율은 참고로만 보십시오.",
                       "These runs cannot be judged by each other; the ratios only show what the difference makes.",
                       "NOT_COMPARABLE"),
}  # fmt: skip


class HtmlComparison:
    """For people. Korean, with a switch to English."""

    filename = "compare.html"

    def render(self, compared: RunsCompared) -> str:
        """The whole document."""
        title = f"{compared.a.name} / {compared.b.name} · 실행 비교"
        kind = both(
            "LLM 서비스 반입 승인 시험: 두 실행의 비교", "LLM service acceptance: two runs compared"
        )
        names = dict.fromkeys((compared.a.name, compared.b.name))
        heading = escape(" / ".join(names))
        return document(
            title,
            f'<header class="top"><div><p class="dim">{kind}</p><h1>{heading}</h1></div></header>',
            _headline(compared),
            _setups(compared),
            "".join(_service(pair, place) for place, pair in enumerate(compared.services)),
            glossary(),
        )


def _headline(compared: RunsCompared) -> str:
    ko, en, means_ko, means_en, style = _HEADLINES[compared.outcome]
    why = "".join(f"<li>{said(text)}</li>" for text in compared.not_comparable)
    reasons = f"<ul>{why}</ul>" if why else ""
    return (
        f'<section class="verdict {style}"><strong>{both(ko, en)}</strong>'
        f"<p>{both(means_ko, means_en)}</p>{reasons}</section>"
    )


def _setups(compared: RunsCompared) -> str:
    """Both runs' heads, and everything in which they differ."""
    heads = [
        ("실행", "Run", _code(compared.a.label), _code(compared.b.label)),
        ("측정 시각 (UTC)", "Measured (UTC)", _when(compared.a), _when(compared.b)),
        ("판정", "Verdict", _tag(compared.a.verdict), _tag(compared.b.verdict)),
        ("추론 엔진", "Engine", escape(compared.a.engine), escape(compared.b.engine)),
        ("서명 키", "Signed by key", _key(compared.a), _key(compared.b)),
    ]
    rows = "".join(
        f"<tr><th>{both(ko, en)}</th><td>{a}</td><td>{b}</td></tr>" for ko, en, a, b in heads
    )
    different = "".join(
        f"<tr{' class=differs' if row.decides else ''}><th>{escape(row.what)}"
        + (f" <strong>{both('(구성이 다름)', '(another set-up)')}</strong>" if row.decides else "")
        + f"</th><td>{_said(row.a)}</td><td>{_said(row.b)}</td></tr>"
        for row in compared.setup
    )
    title = both("무엇이 다른가", "What differs between the set-ups")
    alike = both("구성, 시험 계획, 호스트가 모두 같습니다.", "Set-up, plan and host are the same.")
    return (
        f"<h2>{both('두 실행', 'The two runs')}</h2>{_two_columns(rows)}"
        f"<h2>{title}</h2>{terms(('fingerprint', 'kernel', 'kv_cache'), 'setup')}"
        + (_two_columns(different) if different else f"<p>{alike}</p>")
    )


def _two_columns(rows: str) -> str:
    return (
        '<div class="scroll" tabindex="0" role="group" aria-label="A / B"><table class="data pair"><thead><tr>'
        f"<th>{both('항목', 'What')}</th><th>A</th><th>B</th></tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _service(pair: ServicePair, place: int) -> str:
    name = escape(pair.a if pair.a == pair.b else f"{pair.a} / {pair.b}")
    levels = "".join(map(_level, pair.levels))
    names = (
        ("동시 요청", "In flight"), ("지표", "Figure"), ("A", "A"), ("B", "B"), ("B ÷ A", "B over A"),
        ("A(위)와 B(아래), 띠는 A의 오차 범위", "A above, B below; the band is A's noise"), ("결과", "Outcome"),
        ("기준", "By"),
    )  # fmt: skip
    head = "".join(f"<th>{both(*name)}</th>" for name in names)
    rows, last = [], None
    for row in pair.figures:
        rows.append(_figure(row, first=row.concurrency != last))
        last = row.concurrency
    return (
        f"<h2>{name}</h2>{terms(('ttft', 'tpot', 'rate', 'p95', 'not_comparable'), f'pair-{place}')}"
        f"<h3>{both('단계별 판정', 'Verdicts')}</h3>"
        '<div class="scroll" tabindex="0" role="group" aria-label="판정 / verdicts"><table class="data"><thead>'
        f"<tr><th>{both('동시 요청', 'In flight')}</th><th>A</th><th>B</th></tr></thead>"
        f"<tbody>{levels}</tbody></table></div>"
        f"<h3>{both('수치', 'Figures')}</h3>"
        '<div class="scroll" tabindex="0" role="group" aria-label="수치 / figures"><table class="data">'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _level(row: LevelRow) -> str:
    return f"<tr><th>{row.concurrency}</th><td>{_tag(row.a)}</td><td>{_tag(row.b)}</td></tr>"


def _figure(row: FigureRow, *, first: bool) -> str:
    ko, en, style = _OUTCOMES[row.outcome]
    return (
        f"<tr{' class=first' if first else ''}><td class=num>{row.concurrency}</td>"
        f"<td><code class=metric>{escape(row.metric)}</code></td><td class=num>{number(row.a)}</td>"
        f"<td class=num>{number(row.b)}</td><td class=num>{row.ratio:.2f}</td><td>{_bars(row)}</td>"
        f'<td><span class="tag {style}">{both(ko, en)}</span></td><td class="dim">{said(row.basis)}</td></tr>'
    )


def _bars(row: FigureRow) -> str:
    """Two bars on one axis, with A's range behind them."""
    ends = [value for value in (row.worst, row.best) if value is not None]
    most = max([row.a, row.b, *ends]) * 1.05 or 1.0
    band = ""
    if len(ends) == 2 and row.outcome != "not judged":
        left, right = min(ends) / most * _WIDTH, max(ends) / most * _WIDTH
        band = f'<rect class="range" x="{left:.1f}" width="{right - left:.1f}" height="{_HEIGHT}"/>'
    bars = "".join(
        f'<rect class="{kind}" y="{y}" width="{value / most * _WIDTH:.1f}" height="9"/>'
        for kind, y, value in (("bar-a", 4, row.a), ("bar-b", 17, row.b))
    )
    return f'<svg class="range-bar" viewBox="0 0 {_WIDTH} {_HEIGHT}" aria-hidden="true">{band}{bars}</svg>'


def _tag(verdict: Verdict | None) -> str:
    if verdict is None:
        return f'<span class="dim">{both("측정하지 않음", "not measured")}</span>'
    return f'<span class="tag {verdict.name}">{both(*VERDICT[verdict])}</span>'


def _when(head: RunHead) -> str:
    return escape(f"{head.began} – {head.ended}")


def _key(head: RunHead) -> str:
    if head.key_id:
        return _code(head.key_id)
    return f'<span class="red">{both("서명 없음", "UNSIGNED")}</span>'


def _code(text: str) -> str:
    return f"<code>{escape(text)}</code>"


def _said(text: str | None) -> str:
    return escape(text) if text else f'<span class="dim">{both("모름", "unknown")}</span>'
