"""`accept --ab`: two settings, or two releases, measured in turns and started anew for each run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from bundler import wiring
from bundler.cli.console import say, table
from bundler.cli.measuring import measured
from bundler.domain.ab import ABRecord, Arm, ArmName, ArmRun
from bundler.domain.correctness import Outcome
from bundler.domain.verdict import Verdict, overall
from bundler.errors import EngineError, SpecError, StateError

if TYPE_CHECKING:
    from bundler.deploy.root import Root
    from bundler.domain.facts import AcceptanceRecord, LevelMetrics, ReleaseRecord, ServiceState
    from bundler.domain.manifest import VerifiedManifest
    from bundler.domain.verdict import Check
    from bundler.ports import Progress

AB_RECORD = "ab.json"
RELEASE = "release"


def parse_arms(text: str) -> tuple[Arm, Arm]:
    """`KEY=A,B` -> the two arms.

    Raises:
        SpecError: it is not of that form, or both are the same.
    """
    key, equals, values = text.partition("=")
    found = [value.strip() for value in values.split(",")]
    if not equals or not key or len(found) != 2 or found[0] == found[1]:
        raise SpecError(
            f"--ab {text}: wants KEY=A,B with two different values",
            hint="For instance: --ab kernel=deepgemm,triton",
        )
    return (
        Arm(name="A", changes={key: found[0]}),
        Arm(name="B", changes={key: found[1]}),
    )


@dataclass(frozen=True)
class Side:
    """What an arm starts: a release as it is started, where its files are, and the bundle that vouches for it."""

    folder: Path
    release: ReleaseRecord
    verified: VerifiedManifest


@dataclass
class Comparer:
    """Runs both arms in turns. What was measured is on the disk after each run."""

    place: Root
    record: ReleaseRecord
    verified: VerifiedManifest
    arms: tuple[Arm, Arm]
    shown: Progress
    timeout_s: float
    pairs: int
    only: str | None = None
    _runs: list[ArmRun] = field(default_factory=list)
    _began: str = ""
    _users: tuple[int, ...] | None = None

    def run(self) -> tuple[ABRecord, Path]:
        """Start, measure and stop each arm so many times; gives the comparison and where it lies.

        Raises:
            SpecError: an arm cannot be run.
            StateError: services run already, or a release is not here.
            TrustError: a release may not be used here.
            SpaceError, FileAccessError: the record cannot be written.
        """
        from bundler.accept.ab import order

        sides = {arm.name: self._side(arm) for arm in self.arms}
        first, second = (_told(arm, sides[arm.name]) for arm in self.arms)
        self.arms = (first, second)
        self._users = self._together(tuple(sides.values()))
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
            self._runs.append(self._one(sides[name], name, pair))
            path = self._write()
            if self._runs[-1].void:
                break
        return self._concluded(), path

    def _side(self, arm: Arm) -> Side:
        from bundler.deploy.variants import variant

        if RELEASE in arm.changes:
            return self._installed(arm.changes[RELEASE])
        engine = wiring.ENGINES[self.record.engine_name]()
        made = variant(self.record, arm.changes, engine, self.only)
        return Side(self.place.release(made.bundle_id), made, self.verified)

    def _installed(self, wanted: str) -> Side:
        from bundler.deploy.releases import check_not_moved, pick_release
        from bundler.deploy.trustroot import open_for_return

        if self.only is not None:
            raise SpecError(
                "--service changes one service's settings, and releases are compared as a whole",
                hint="Leave --service out.",
            )
        found = pick_release(self.place, wanted)
        if found.record is None:
            raise StateError(
                f"{found.name}: is not wholly installed",
                hint=f"Run: airbundle install {found.bundle_id} --root ROOT",
            )
        check_not_moved(self.place, found.record)
        if not found.record.services:
            raise StateError(
                f"{found.name}: holds an engine and no model, so that nothing is measured"
            )
        verified = open_for_return(self.place, found.bundle_id, wiring.gate())
        return Side(self.place.release(found.bundle_id), found.record, verified)

    def _together(self, sides: Sequence[Side]) -> tuple[int, ...] | None:
        """Users in sum at each level when services are loaded at the same time; None: one after another."""
        from bundler.accept.together import levels_for
        from bundler.deploy.variants import SERVICES

        if not any({RELEASE, SERVICES} & set(arm.changes) for arm in self.arms):
            return None
        most = max(len(side.release.services) for side in sides)
        return levels_for(self.verified.manifest.acceptance, most) if most > 1 else None

    def _one(self, side: Side, name: ArmName, pair: int) -> ArmRun:
        from bundler.accept.kernels import judge_kernels

        launcher = wiring.launcher(self.place, self.shown)
        try:
            states = tuple(launcher.start(side.folder, side.release, timeout_s=self.timeout_s))
        except EngineError as error:
            return ArmRun(arm=name, pair=pair, figures={}, void=f"does not start: {error}"[:500])
        try:
            record, levels, figures, checks = self._measured(side, states)
        finally:
            for state in states:
                launcher.stop(state)
        void = [
            f"{check.service}: {check.what}, runs {check.measured}"
            for check in judge_kernels(side.release.services, states)
            if check.verdict is Verdict.FAIL
        ]
        void += [
            f"{one.service}: no request at {one.concurrency} users was answered"
            for one in levels
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
            figures=figures,
            running={state.service: state.running for state in states if state.running},
            verdict=overall(checks),
            wrong=wrong[0] if wrong else "",
            void=void[0] if void else "",
        )

    def _measured(
        self, side: Side, states: tuple[ServiceState, ...]
    ) -> tuple[AcceptanceRecord, tuple[LevelMetrics, ...], dict[str, float], tuple[Check, ...]]:
        """One run by the plan of the release in use, whichever bundle runs: both must do the same work."""
        from bundler.accept.ab import figures_of
        from bundler.accept.together import measure_together

        plan, users = self.verified.manifest.acceptance, self._users
        record = measured(
            self.place, side.release, side.verified, states, self.shown,
            plan=plan, users=None if users is None else (),
        )  # fmt: skip
        if users is None:
            return record, record.levels, figures_of(record), record.checks
        chat, clock = wiring.chat(self.place), wiring.clock()
        found = measure_together(states, plan, users, chat, clock, self.shown)
        return record, found.levels, found.figures, (*record.checks, *found.checks)

    def _concluded(self) -> ABRecord:
        from bundler.accept.ab import ALL, MARGIN, PRIMARY, concluded

        most = max(self._users or self.verified.manifest.acceptance.concurrency)
        return concluded(
            ABRecord(
                bundle_id=self.verified.bundle_id,
                manifest_sha256=self.verified.digest,
                release=self.record.release_id,
                service=self.only,
                pairs=self.pairs,
                arms=self.arms,
                began=self._began,
                ended=wiring.clock().now(),
                margin=MARGIN,
                primary=f"{ALL}@{most} {PRIMARY}",
                runs=tuple(self._runs),
                comparisons=(),
                keep=None,
                decided=False,
                said="",
            )
        )

    def _write(self) -> Path:
        from bundler.format.codec import to_bytes

        path = self.place.acceptance / f"{self._began.replace(':', '')}-ab" / AB_RECORD
        self.place.write(path, to_bytes(self._concluded()))
        return path


def _told(arm: Arm, side: Side) -> Arm:
    """The arm with what it starts."""
    names = {"release": side.release.release_id, "manifest_sha256": side.verified.digest}
    return arm.model_copy(update=names)


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
