from __future__ import annotations

import csv
import io
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from bundler.accept.judge import judge, sample_key
from bundler.accept.ranges import compare_level
from bundler.adapters.report_csv import CsvReport
from bundler.adapters.report_html import timeline
from bundler.adapters.report_html.charts import Limit, bars, lines, nice_top, scatter
from bundler.adapters.report_html.figures import thinned
from bundler.adapters.report_html.glossary import glossary
from bundler.adapters.report_html.ladder import Rung, highest
from bundler.adapters.report_html.page import HtmlReport
from bundler.adapters.report_html.texts import korean, number
from bundler.adapters.report_json import JsonReport
from bundler.adapters.report_junit import JunitReport
from bundler.adapters.report_markdown import MarkdownReport
from bundler.domain.correctness import CorrectnessResult, Outcome
from bundler.domain.facts import AcceptanceRecord, RequestSample, ServiceState
from bundler.domain.profile import Comparison
from bundler.domain.spec import Acceptance, Expected, Slo
from bundler.domain.telemetry import (
    EngineObservation,
    GpuObservation,
    ProcessObservation,
    Span,
    Telemetry,
)
from bundler.domain.verdict import Gate, Verdict, overall
from bundler.format.profiles import profiles_in, shipped_folder
from tests.fakes.acceptance import BESIDE, acceptance, samples, telemetry_of
from tests.unit.accept.known import fingerprint, profile
from tests.unit.accept.levels import failed, level, sample

HOSTILE = "<script>alert('x')</script>\"&"
HANGUL = re.compile("[가-힣]")


def record(
    *samples: RequestSample, key_id: str | None = "0123456789abcdef", plan: Acceptance | None = None
) -> AcceptanceRecord:
    plan = plan or Acceptance(concurrency=(1, 4), slo=Slo(ttft_ms=200))
    levels, kept = [], {}
    for concurrency in plan.concurrency:
        metrics, runs = level(*(samples or (sample(),) * 60), concurrency=concurrency)
        levels.append(metrics)
        kept[sample_key("chat", concurrency)] = runs
    checks, warnings = judge(plan, levels, kept)
    return AcceptanceRecord(
        bundle_id="demo-aaaaaaaaaaaa", manifest_sha256="a" * 64, key_id=key_id, name="demo",
        description="사내 시험", engine_name="vllm", engine_version="0.32.0",
        models=("tiny @ " + "f" * 40,), host={"cores": "2", "gpu 0": "H100"}, plan=plan,
        services=(
            ServiceState(
                service="chat", bundle_id="demo", pid=1, start_ticks=1, boot="b", port=8000,
                url="http://127.0.0.1:8000", argv=("vllm", "serve", "my model"), env={},
                started="2026-01-01T00:00:00Z", ready_after_s=3.5, first_completion="안녕하세요",
            ),
        ),
        began="2026-01-01T00:00:00Z", ended="2026-01-01T00:05:00Z", levels=tuple(levels),
        samples=kept, checks=checks, verdict=overall(checks), warnings=warnings,
    )  # fmt: skip


class Page(HTMLParser):
    """Collects tags, and notes every one that is not closed in order."""

    VOID = frozenset({"meta", "input", "br", "link", "img"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.wrong: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.wrong += self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.wrong.append(tag)


def test_the_json_report_is_the_record() -> None:
    made = record()
    text = JsonReport().render(made)
    assert AcceptanceRecord.model_validate_json(text) == made
    assert text.startswith("{\n  ")
    assert "사내 시험" in text


def test_the_page_is_well_formed_and_loads_nothing() -> None:
    text = HtmlReport().render(record())
    page = Page(text)
    assert not page.wrong
    assert not {tag for tag, _ in page.tags} & {"script", "link", "img", "iframe", "object", "base"}
    assert not [
        a for _, attributes in page.tags for a in attributes if a in ("src", "href", "style")
    ]
    assert "http://" not in text
    assert "https://" not in text
    assert "url(" not in text
    assert "@import" not in text


@pytest.mark.parametrize(
    ("samples", "ko", "en"),
    [
        ((sample(),) * 60, "합격", "PASS"),
        ((sample(ttft_ms=900),) * 60, "불합격", "FAIL"),
        ((sample(),) * 20, "판정 보류", "INCONCLUSIVE"),
    ],
)
def test_the_verdict_comes_first_in_both_languages(
    samples: tuple[RequestSample, ...], ko: str, en: str
) -> None:
    text = HtmlReport().render(record(*samples))
    banner = text[text.index('<section class="verdict') : text.index("</section>")]
    assert (
        f'<strong><span class="ko" lang="ko">{ko}</span><span class="en" lang="en">{en}</span>'
        in banner
    )
    assert text.index("<section") < text.index("<h2>")


def test_an_unsigned_bundle_is_called_so_and_a_signed_one_names_its_key() -> None:
    unsigned, signed = HtmlReport().render(record(key_id=None)), HtmlReport().render(record())
    assert 'class="unsigned"' in unsigned
    assert "서명되지 않은 번들" in unsigned
    assert "UNSIGNED bundle" in unsigned
    assert 'class="unsigned"' not in signed
    assert "0123456789abcdef" in signed


def test_the_page_says_what_ran() -> None:
    text = HtmlReport().render(record())
    for told in ("demo-aaaaaaaaaaaa", "a" * 64, "vllm 0.32.0", "tiny @ " + "f" * 40, "H100",
                 "vllm serve &#x27;my model&#x27;", "안녕하세요"):  # fmt: skip
        assert told in text


def test_whatever_comes_from_the_record_is_escaped() -> None:
    hostile = record(
        *[sample()] * 55,
        *[failed(HOSTILE)] * 5,
        plan=Acceptance(
            concurrency=(1, 4),
            slo=Slo(ttft_ms=200),
            expected=(Expected(concurrency=1, metric="e2e_ms_p95", max=1, source=HOSTILE),),
        ),
    )
    state = hostile.services[0].model_copy(update={"argv": (HOSTILE,), "first_completion": HOSTILE})
    names = ("bundle_id", "manifest_sha256", "key_id", "name", "description", "engine_name",
             "engine_version", "began", "ended")  # fmt: skip
    changes = dict.fromkeys(names, HOSTILE)
    text = HtmlReport().render(
        hostile.model_copy(
            update={**changes, "models": (HOSTILE,), "host": {HOSTILE: HOSTILE}, "services": (state,),
                    "warnings": (HOSTILE,)}
        )
    )  # fmt: skip
    page = Page(text)
    assert not page.wrong
    assert "<script" not in text
    assert "alert(" in text


def test_every_request_is_a_dot_and_every_failure_a_cross() -> None:
    text = HtmlReport().render(record(*[sample()] * 7, *[failed()] * 3))
    drawn = [
        path
        for kind in ("dots", "cross")
        for path in re.findall(f'class="{kind}" d="([^"]*)"', text)
    ]
    # Two levels: seven dots and three crosses each; a level's largest TTFT and TPOT are dots too.
    assert sum(path.count("h0") for path in drawn) == 2 * 7 + 4
    assert sum(path.count("l8 8") for path in drawn) == 2 * 3
    assert "Connection refused" in text


def test_the_ladder_names_the_highest_rung_that_passes() -> None:
    text = HtmlReport().render(acceptance(slo_ms=900))
    ladder = text[text.index("수용 능력") : text.index("판정 항목</span>")]
    best = ladder[ladder.index("<tr class=best>") :]
    assert best[: best.index("</tr>")].count("<strong>25</strong>") == 1
    assert ladder.count("<tr class=best>") == 1
    assert "chat: <span" in text[text.index('class="capacity"') :][:60]
    assert "passes up to 25 in flight" in text
    for told in ("bounds %", "/ 900", "tok/s per user"):
        assert told in ladder.lower()


def test_a_level_above_a_failure_is_not_the_highest_that_passes() -> None:
    made = [Rung(level(sample(), concurrency=at)[0], verdict, ())
            for at, verdict in ((1, Verdict.PASS), (8, Verdict.FAIL), (16, Verdict.PASS))]  # fmt: skip
    assert highest(made) == 1
    assert highest(made[1:2]) is None


def test_searches_and_compared_settings_are_shown_with_the_run() -> None:
    text = HtmlReport().render(acceptance(), BESIDE)
    assert "동시 요청 22건에서 합격, 24건에서 불합격(각 2회 측정)" in text
    assert "passes up to 22 in flight" in text
    assert "kernel=triton" in text
    assert "kernel=triton" not in HtmlReport().render(acceptance())
    assert "22" in MarkdownReport().render(acceptance(), BESIDE)


def test_every_term_explains_itself_and_stands_in_the_list() -> None:
    page = Page(HtmlReport().render(acceptance(), BESIDE))
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    told = [a["aria-describedby"] for _, a in page.tags if "aria-describedby" in a]
    assert len(ids) == len(set(ids))
    assert len(told) > 15
    assert set(told) <= set(ids)
    text = glossary()
    for word in ("TTFT", "TPOT", "ITL", "KV cache", "p95", "bounds", "INCONCLUSIVE", "burst", "prefix cache",
                 "preemption", "kernel", "MoE", "판정 보류", "선점"):  # fmt: skip
        assert word in text


def test_marks_that_reorder_text_are_shown_and_not_obeyed() -> None:
    made = acceptance(lost=3, flaw="prefix cache")
    for text in (HtmlReport().render(made, BESIDE), MarkdownReport().render(made, BESIDE)):
        assert "\u202e" not in text
        assert "\\u202e" in text


@pytest.mark.slow
def test_the_page_of_a_large_run_stays_small() -> None:
    users, services = (1, 2, 4, 8, 16, 32, 64, 100, 128, 250), tuple(f"model-{n}" for n in range(8))
    seen = telemetry_of(services, users, gpus=8, looks=1200)
    large = acceptance(levels=users, services=services, requests=299, telemetry=seen, flaw="GPU")
    assert len(HtmlReport().render(large, BESIDE).encode()) < 1_000_000


def test_of_many_levels_the_requests_about_the_edge_are_drawn_and_the_rest_is_said() -> None:
    text = HtmlReport().render(acceptance(levels=tuple(range(1, 41)), slo_ms=700))
    [best] = re.findall(r"passes up to (\d+) in flight</span></h3>", text)
    drawn = [
        int(users) for users in re.findall(r"TTFT of every request, ms \((\d+) in flight\)", text)
    ]
    assert len(drawn) == 24
    assert {int(best), int(best) + 1} <= set(drawn)
    assert "those of the other 16 are in report.json" in text
    assert "those of the other" not in HtmlReport().render(acceptance())


def test_of_too_many_requests_the_slowest_and_the_failed_are_drawn() -> None:
    runs = [*samples(5000, 8), *samples(5, 8, lost=5)]
    drawn = thinned(runs, 300)
    assert len(drawn) == 300
    assert [one for one in drawn if not one.ok] == [one for one in runs if not one.ok]
    assert max(s.ttft_ms or 0 for s in drawn) == max(s.ttft_ms or 0 for s in runs)
    assert thinned(runs[:300], 300) == runs[:300]


def test_a_line_of_too_many_points_keeps_its_peaks() -> None:
    points = [(float(at), 1.0) for at in range(5000)]
    points[1234] = (1234.0, 99.0)
    kept = timeline.peaks(points, 400)
    assert len(kept) <= 400
    assert (1234.0, 99.0) in kept
    assert list(kept) == sorted(kept)


def test_a_run_without_an_answer_still_makes_a_page() -> None:
    text = HtmlReport().render(record(failed(), failed()))
    assert not Page(text).wrong
    assert "표시할 측정값이 없습니다" in text


def test_a_run_that_was_never_judged_still_makes_a_page() -> None:
    empty = record().model_copy(update={"levels": (), "samples": {}, "checks": (), "services": ()})
    assert not Page(HtmlReport().render(empty)).wrong


def test_whatever_the_judge_says_has_a_korean_form() -> None:
    slo = Slo(ttft_ms=200, tpot_ms=20)
    ranges = (
        Expected(concurrency=1, metric="output_tokens_per_s", min=1, max=10**6, source="lab"),
        Expected(concurrency=1, metric="ttft_ms_p95", max=1),
        Expected(concurrency=1, metric="ttft_ms_p50", min=10**6, source="lab"),
    )
    plan = Acceptance(concurrency=(1,), slo=slo, expected=ranges)
    plain, bare = Acceptance(concurrency=(1,)), Acceptance(concurrency=(1,), slo=Slo())
    few = level(*[sample()] * 20, concurrency=8, duration_s=2.0)
    cases = [
        (plan, level(*[sample()] * 60)),
        (plan, level(*[sample()] * 58, sample(ttft_ms=900), failed("boom"))),
        (plan, level(*[sample()] * 30, *[failed("boom")] * 30)),
        (plan, level(failed("boom"))),
        (plan, level(*[sample(input_tokens=0, output_tokens=0, tpot_ms=None)] * 3)),
        (plan, level(*[sample(output_tokens=9)] * 3)),
        (plain, level(sample(), failed("boom"))),
        (plain, level(sample(output_tokens=0, tpot_ms=None))),
        (plain, level(sample(itl_ms=(), input_tokens=200))),
        (plain, few),
        (plain, level(*[sample()] * 60, concurrency=8, duration_s=10.0)),
        (bare, level(*[sample()] * 60)),
    ]
    said: set[str] = {"the bundle is UNSIGNED: nobody vouches for what was measured"}
    for wanted, (metrics, runs) in cases:
        checks, warnings = judge(wanted, [metrics], {sample_key("chat", metrics.concurrency): runs})
        said |= {text for c in checks for text in (c.what, c.measured, c.reason)} | set(warnings)
    numbers = re.compile(r"[-\d.]*")
    untold = [
        text for text in said if not numbers.fullmatch(text) and not HANGUL.search(korean(text))
    ]
    assert not untold
    assert len(said) > 30


def test_what_profiles_say_has_a_korean_form() -> None:
    metrics, _ = level(*[sample()] * 60)
    shipped = profiles_in(shipped_folder())
    said = [
        *compare_level(shipped, fingerprint(), metrics).warnings,
        *compare_level([profile()], fingerprint(), metrics).checks,
        *compare_level([profile(kind="field")], fingerprint(model="x"), metrics).warnings,
    ]
    slow = profile({"metric": "ttft_ms_p50", "concurrency": 1, "runs": [1]}, kind="field")
    said += compare_level([slow], fingerprint(), metrics).warnings
    texts = [text if isinstance(text, str) else text.what for text in said]
    assert len(texts) >= 3
    assert [text for text in texts if not HANGUL.search(korean(text))] == []
    assert "deepgemm 커널로 나온 80에 가까움" in korean(texts[1])
    assert korean("±25 % by default, of 1 run").startswith("기본 범위")


def test_an_engines_own_words_are_not_translated() -> None:
    assert korean("3 failed: load failed <= 4 %") == "3건 실패: load failed <= 4 %"
    assert korean("something new") == "something new"


def test_korean_counts_read_in_korean_order() -> None:
    assert korean("58 of 60") == "60건 중 58건"
    assert korean("too few requests to tell: 34 more are needed if none of them fails"
                  " (acceptance.requests: 93); missed: TTFT 1") == (
        "요청 수가 부족해 판단할 수 없음: 추가 요청이 모두 충족해도 34건이 더 필요"
        " (acceptance.requests: 93); 미충족 건수: TTFT 1"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0, "0.00"),
        (1.234, "1.23"),
        (12.34, "12.3"),
        (1234.5, "1,234"),
        (123456, "123,456"),
    ],
)
def test_numbers_show_the_digits_that_mean_something(value: float | None, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("most", "top"), [(0, 1), (0.07, 0.08), (3.9, 4), (101, 120), (1600, 1600)]
)
def test_axes_end_at_a_round_number(most: float, top: float) -> None:
    assert nice_top(most) == pytest.approx(top)


def test_a_limit_far_above_the_data_is_not_drawn() -> None:
    near, far = Limit(20, "SLO 20 ms"), Limit(10_000, "SLO 10000 ms")
    assert "SLO 20 ms" in lines([1, 2], [("p50", [10, 12])], near)
    assert "SLO 10000 ms" not in lines([1, 2], [("p50", [10, 12])], far)


def test_charts_of_nothing_say_so() -> None:
    for drawn in (lines([1], [("p50", [None])]), bars([1], [0.0]), scatter([])):
        assert "<svg" not in drawn
        assert "표시할 측정값이 없습니다" in drawn


def test_charts_hold_no_broken_numbers() -> None:
    drawn = (
        lines([1], [("p50", [5.0])]) + bars([1, 2], [0.0, 3.0]) + scatter([(0.0, 4.0), (0.0, None)])
    )
    assert "nan" not in drawn
    assert "inf" not in drawn


def watched(**changes: object) -> Telemetry:
    looks = [
        GpuObservation(t_s=at, gpu=0, memory_used=60 * 2**30, power_w=500 + at, power_limit_w=700,
                       sm_clock_mhz=1900, throttle_reasons=("power cap",) if at == 3 else ())
        for at in range(9)
    ]  # fmt: skip
    engines = [
        EngineObservation(t_s=at, service="chat", kv_usage=at / 10, running=4, waiting=at)
        for at in range(9)
    ]
    uses = [ProcessObservation(t_s=at, service="chat", rss=2**30, cpu_s=at) for at in range(9)]
    values: dict[str, object] = {
        "period_s": 1.0, "gpus": looks, "engines": engines, "processes": uses,
        "spans": (Span(service="chat", what="x1", began_s=0, ended_s=4),
                  Span(service="chat", what="x8", began_s=4, ended_s=9)),
    }  # fmt: skip
    return Telemetry.model_validate(values | changes)


def test_what_was_seen_is_drawn_over_one_time_axis() -> None:
    page = timeline.observed(watched())
    assert page.count("<svg") == 1
    for words in (
        "GPU 0 메모리",
        "GPU 0 power, W",
        "SM 클럭",
        "KV 캐시 사용률",
        "chat requests",
        "RSS",
    ):
        assert words in page
    assert page.count('class="band') == 2
    assert page.count('class="brake"') == 1
    assert "power cap" in page
    # All panels share one scale: a look at t=8 of 9 is at the same place in each.
    ends = {
        line.split()[-1].split(",")[0]
        for line in re.findall(r'points="([^"]* [^"]* [^"]* [^"]*)"', page)
    }
    assert len(ends) == 1


def test_nothing_sampled_draws_nothing_and_faults_are_said() -> None:
    assert timeline.observed(Telemetry()) == ""
    page = timeline.observed(Telemetry(period_s=0.5, faults=("NVML: <b>no</b>",)))
    assert "NVML: &lt;b&gt;no&lt;/b&gt;" in page
    assert "<svg" not in page
    hostile = watched(spans=(Span(service=HOSTILE, what=HOSTILE, began_s=0, ended_s=9),))
    assert "<script>" not in timeline.observed(hostile)


def test_the_page_holds_probes_and_telemetry_and_stays_well_formed() -> None:
    probes = tuple(
        CorrectnessResult(
            service="chat", probe="golden", phase="load", outcome=outcome, judged=judged, in_flight=7,
            measured="5 of 6 answers", reason="not offered by this engine: " + HOSTILE,
            evidence=(HOSTILE,),
        )
        for outcome in Outcome
        for judged in (True, False)
    )  # fmt: skip
    whole = record().model_copy(update={"correctness": probes, "telemetry": watched()})
    page = HtmlReport().render(whole)
    assert Page(page).wrong == []
    assert "<script>" not in page
    assert "응답 6건 중 5건 정상" in page
    assert page.count("†") == 6  # four that do not decide, and the note in two languages


def test_a_record_of_before_is_still_read() -> None:
    old = record().model_dump(mode="json", exclude={"correctness", "telemetry"})
    assert AcceptanceRecord.model_validate(old).telemetry == Telemetry()


@pytest.mark.parametrize(
    "text",
    [
        "golden answers, under load",
        "with idle: 6 prompts, 192 tokens alike, mean difference 0.0000 nats",
        "the golden record: english: token 4 is 'a' here and 'b' there, and not among the 5 likeliest of both",
        "idle: log-probabilities of the same tokens differ by 0.600 nats on average, over 0.25",
        "idle: korean: 3.1000 nats for each token, 2.0000 there",
        "m: tool call: not offered by this engine: no parser",
        "m: likelihood of fixed texts: english 5.9: as unlikely as random words: is the model trained, and are its"
        " weights whole?",
        "m: answers are text, idle: 2 of 6 answers; '4' repeats 31 times (acceptance.correctness does not name"
        " garbage, so it is not judged)",
        "3 of 3 found in 16500 tokens",
        "'!' repeats 64 times",
    ],
)
def test_what_the_probes_say_is_said_in_korean(text: str) -> None:
    assert HANGUL.search(korean(text))
    assert "\\" not in korean(text)


def doubtful(of: AcceptanceRecord) -> AcceptanceRecord:
    """The record with a gate that failed, and hostile words wherever an engine may put some."""
    gate = Gate(
        service="chat", concurrency=4, name="client lag", state="failed", measured="p99 90.0 ms",
        limit="p99 <= 5.0 ms", reason=f"late {HOSTILE}",
    )  # fmt: skip
    checks = tuple(
        check.model_copy(
            update={"verdict": Verdict.NOT_COMPARABLE, "reason": f"=1+1 | `{HOSTILE}\x1b"}
        )
        for check in of.checks
    )
    return of.model_copy(
        update={"gates": (gate,), "checks": checks, "verdict": Verdict.NOT_COMPARABLE}
    )


def test_the_page_shows_the_gates_that_failed_first() -> None:
    page = HtmlReport().render(doubtful(record()))
    assert "측정의 타당성" in page
    assert "측정 클라이언트 지연" in page
    assert "부적합" in page
    assert HOSTILE not in page


def test_known_figures_stand_beside_the_measured_ones() -> None:
    known = Comparison(
        service="chat", concurrency=4, metric="output_tokens_per_s", measured=81.0,
        profile="field-h200", kind="field", worst=120.0, best=None, outcome="worse", basis="told",
    )  # fmt: skip
    page = HtmlReport().render(record().model_copy(update={"comparisons": (known,)}))
    assert "알려진 수치와의 비교" in page
    assert "현장 보고" in page
    assert "120" in page


def test_junit_has_a_case_for_each_check() -> None:
    good = record()
    suite = ElementTree.fromstring(JunitReport().render(good))[0]
    assert int(suite.attrib["tests"]) == len(good.checks) == len(suite.findall("testcase"))
    assert not suite.findall(".//failure")
    bad = record(*[failed("refused")] * 60)
    suite = ElementTree.fromstring(JunitReport().render(bad))[0]
    assert len(suite.findall(".//failure")) == int(suite.attrib["failures"]) > 0
    open_ = doubtful(good)
    suite = ElementTree.fromstring(JunitReport().render(open_))[0]
    assert len(suite.findall(".//skipped")) == len(open_.checks)
    assert "NOT COMPARABLE" in suite.findall(".//skipped")[0].attrib["message"]


def test_csv_has_a_line_for_each_level_and_computes_nothing() -> None:
    made = record().model_copy(update={"engine_name": "=cmd|' /C calc'!A0"})
    rows = list(csv.DictReader(io.StringIO(CsvReport().render(made))))
    assert [row["concurrency"] for row in rows] == ["1", "4"]
    assert float(rows[0]["ttft_ms_p50"]) > 0
    assert rows[0]["ttft_ms_p99"] == ""
    assert rows[0]["engine"].startswith("'=")
    assert {row["verdict"] for row in rows} == {"PASS"}
    assert [row["gates_failed"] for row in csv.DictReader(io.StringIO(CsvReport().render(doubtful(made))))] == [
        "", "client lag",
    ]  # fmt: skip


def test_markdown_says_the_verdict_first_and_lets_no_markup_in() -> None:
    text = MarkdownReport().render(doubtful(record()))
    assert text.splitlines()[0] == "# demo: NOT COMPARABLE"
    assert "측정이 타당하지 않은 이유" in text
    assert "<script>" not in text
    rows = [line for line in text.splitlines() if line.startswith("| NOT COMPARABLE")]
    # A bar inside a cell would make columns of its own.
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {7}
    assert "서명되지 않은" in MarkdownReport().render(record(key_id=None))
