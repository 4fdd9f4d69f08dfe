"""`accept --ab`: the same release measured with two settings, started anew for each run."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from bundler import wiring
from bundler.cli.console import say, table
from bundler.cli.measuring import measured
from bundler.domain.ab import ABRecord, Arm, ArmName, ArmRun
from bundler.domain.correctness import Outcome
from bundler.domain.verdict import Verdict
from bundler.errors import EngineError, SpecError, StateError

if TYPE_CHECKING:
    from bundler.deploy.root import Root
    from bundler.domain.facts import ReleaseRecord
    from bundler.domain.manifest import VerifiedManifest
    from bundler.ports import Progress

AB_RECORD = "ab.json"


def parse_arms(text: str) -> tuple[Arm, Arm]:
    """`KEY=A,B` -> the two arms.

    Raises:
        SpecError: it is not of that form, or both are the same.
    """
    key, equals, values = text.partition("=")
    found = values.split(",")
    if not equals or not key or len(found) != 2 or found[0] == found[1]:
        raise SpecError(
            f"--ab {text}: wants KEY=A,B with two different values",
            hint="For instance: --ab kernel=deepgemm,triton",
        )
    return (
        Arm(name="A", changes={key: found[0].strip()}),
        Arm(name="B", changes={key: found[1].strip()}),
    )


@dataclass
class Comparer:
    """Runs both arms in turns. What was measured is on the disk after each run."""

    place: Root
    folder: Path
    record: ReleaseRecord
    verified: VerifiedManifest
    arms: tuple[Arm, Arm]
    shown: Progress
    timeout_s: float
    pairs: int
    only: str | None = None
    _runs: list[ArmRun] = field(default_factory=list)
    _began: str = ""

    def run(self) -> tuple[ABRecord, Path]:
        """Start, measure and stop each arm so many times; gives the comparison and where it lies.

        Raises:
            SpecError: an arm cannot be run.
            StateError: services run already.
            SpaceError, FileAccessError: the record cannot be written.
        """
        from bundler.accept.ab import order
        from bundler.deploy.variants import variant

        engine = wiring.ENGINES[self.record.engine_name]()
        releases = {
            arm.name: variant(self.record, arm.changes, engine, self.only) for arm in self.arms
        }
        launcher = wiring.launcher(self.place, self.shown)
        if running := [state.service for state in launcher.living()]:
            raise StateError(
                f"{', '.join(running)}: runs, and a comparison starts the engine {2 * self.pairs} times",
                hint="Stop it first: airbundle stop --root ROOT",
            )
        self._began = wiring.clock().now()
        path = self._write()
        words = {arm.name: arm.words for arm in self.arms}
        for name, pair in order(self.pairs):
            self.shown.note(f"{words[name]} (pair {pair} of {self.pairs})")
            self._runs.append(self._one(releases[name], name, pair))
            path = self._write()
            if self._runs[-1].void:
                break
        return self._concluded(), path

    def _one(self, release: ReleaseRecord, name: ArmName, pair: int) -> ArmRun:
        from bundler.accept.ab import figures_of
        from bundler.accept.kernels import judge_kernels

        launcher = wiring.launcher(self.place, self.shown)
        try:
            states = tuple(launcher.start(self.folder, release, timeout_s=self.timeout_s))
        except EngineError as error:
            return ArmRun(arm=name, pair=pair, figures={}, void=f"does not start: {error}"[:500])
        try:
            record = measured(self.place, release, self.verified, states, self.shown)
        finally:
            for state in states:
                launcher.stop(state)
        void = [
            f"{check.service}: {check.what}, runs {check.measured}"
            for check in judge_kernels(release.services, states)
            if check.verdict is Verdict.FAIL
        ]
        void += [
            f"{one.service}: no request at {one.concurrency} users was answered"
            for one in record.levels
            if not one.succeeded
        ]
        wrong = [
            f"{one.service}, {one.probe}, {one.phase}: {one.reason or one.measured}"
            for one in record.correctness
            if one.judged and one.outcome is Outcome.WRONG
        ]
        return ArmRun(
            arm=name,
            pair=pair,
            figures=figures_of(record),
            running={state.service: state.running for state in states if state.running},
            verdict=record.verdict,
            wrong=wrong[0] if wrong else "",
            void=void[0] if void else "",
        )

    def _concluded(self) -> ABRecord:
        from bundler.accept.ab import ALL, MARGIN, PRIMARY, compare, conclude

        whole = len(self._runs) == 2 * self.pairs and not any(run.void for run in self._runs)
        comparisons = compare(self._runs) if whole else ()
        primary = f"{ALL}@{max(self.verified.manifest.acceptance.concurrency)} {PRIMARY}"
        words: dict[str, str] = {arm.name: arm.words for arm in self.arms}
        keep, decided, said = conclude(self._runs, comparisons, primary, words)
        return ABRecord(
            bundle_id=self.verified.bundle_id,
            manifest_sha256=self.verified.digest,
            arms=self.arms,
            began=self._began,
            ended=wiring.clock().now(),
            margin=MARGIN,
            primary=primary,
            runs=tuple(self._runs),
            comparisons=comparisons,
            keep=keep,
            decided=decided,
            said=said,
        )

    def _write(self) -> Path:
        from bundler.format.codec import to_bytes

        path = self.place.acceptance / f"{self._began.replace(':', '')}-ab" / AB_RECORD
        self.place.write(path, to_bytes(self._concluded()))
        return path


def show_comparison(record: ABRecord, path: Path) -> None:
    """The comparison for people."""
    table(
        "compared",
        ["figure", "#B over A", "#95 %", "#each pair", "better"],
        [
            [
                one.figure,
                f"{one.ratio:.2f}x",
                f"{one.low:.2f} to {one.high:.2f}",
                " ".join(f"{ratio:.2f}" for ratio in one.pairs),
                one.wins or "-",
            ]
            for one in record.comparisons
        ],
    )
    for arm in record.arms:
        say(f"{arm.name}: {arm.words}")
    say(record.said, "bold green" if record.decided else "bold yellow")
    say(f"record: {path}")
