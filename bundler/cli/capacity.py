"""`accept --find-max`: the highest concurrency that passes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from bundler import wiring
from bundler.cli.console import say, table
from bundler.cli.judging import STYLE
from bundler.cli.measuring import running_states
from bundler.errors import StateError

if TYPE_CHECKING:
    from bundler.deploy.root import Root
    from bundler.domain.capacity import CapacityRecord
    from bundler.domain.facts import ReleaseRecord
    from bundler.domain.manifest import VerifiedManifest
    from bundler.domain.spec import Service, Slo
    from bundler.ports import Progress

FILE = "capacity.json"
_UNITS = {"s": 1, "m": 60, "h": 3600}
_MOST_USERS = 4096


@dataclass(frozen=True)
class Wanted:
    """What to search: the options of the command line."""

    service: str | None
    lowest: int
    highest: int
    budget_s: float
    ttft_ms: float | None
    tpot_ms: float | None
    attainment: float | None

    def slo(self, planned: Slo | None) -> Slo:
        """The plan's objective, with what the options change.

        Raises:
            StateError: neither the plan nor the options state a limit.
        """
        from bundler.domain.spec import Slo

        changed = {
            name: value
            for name in ("ttft_ms", "tpot_ms", "attainment")
            if (value := getattr(self, name)) is not None
        }
        if planned is None and not (self.ttft_ms or self.tpot_ms):
            raise StateError(
                "the bundle's acceptance plan has no SLO to search by",
                hint="Give one: --ttft-ms 10000 --tpot-ms 200 --attainment 0.95",
            )
        return Slo.model_validate({**(planned.model_dump() if planned else {}), **changed})


def wanted(
    service: str | None,
    lowest: int,
    highest: int,
    budget: str,
    limits: tuple[float | None, float | None, float | None],
) -> Wanted:
    """Check the options.

    Raises:
        typer.BadParameter: one makes no sense.
    """
    if not 1 <= lowest <= highest <= _MOST_USERS:
        raise typer.BadParameter(f"--from {lowest} --to {highest}: 1 to {_MOST_USERS}, in order")
    return Wanted(service, lowest, highest, seconds(budget), *limits)


def seconds(text: str) -> float:
    """`90s`, `10m`, `1.5h` in seconds.

    Raises:
        typer.BadParameter: it is none of these.
    """
    found = re.fullmatch(r"(\d{1,6}(?:\.\d{1,3})?)\s*([smh])", text.strip().lower())
    value = float(found[1]) * _UNITS[found[2]] if found else 0.0
    if value <= 0:
        raise typer.BadParameter(f"--budget {text!r}: write 90s, 10m or 1h")
    return value


def find_max(
    place: Root, release: ReleaseRecord, verified: VerifiedManifest, what: Wanted, shown: Progress
) -> tuple[CapacityRecord, Path]:
    """Search one service and keep the evidence after every level.

    Raises:
        StateError: no such service, no objective, or it does not run.
        KeyboardInterrupt: interrupted; what was measured is kept.
    """
    from bundler.accept.capacity import Finder, search_plan
    from bundler.accept.search import Search
    from bundler.deploy.variants import changed_of
    from bundler.format.codec import to_bytes

    service = _service(release, what.service)
    plan = search_plan(verified.manifest.acceptance, what.slo(verified.manifest.acceptance.slo))
    [state] = running_states(place, release, [service.name])
    clock = wiring.clock()
    path = place.acceptance / f"{clock.now().replace(':', '')}-find-max" / FILE

    def keep(record: CapacityRecord) -> None:
        place.write(path, to_bytes(record))

    record = Finder(
        state=state,
        service=service,
        verified=verified,
        plan=plan,
        search=Search(what.lowest, what.highest),
        budget_s=what.budget_s,
        chat=wiring.chat(place),
        clock=clock,
        progress=shown,
        host=wiring.host().facts(),
        keep=keep,
        changed=changed_of(release, verified.manifest.services),
    ).run()
    return record, path


def _service(release: ReleaseRecord, name: str | None) -> Service:
    names = [service.name for service in release.services]
    if name is None and len(names) > 1:
        raise StateError(
            f"{release.bundle_id}: has several services ({', '.join(names)})",
            hint=f"Name one: --service {names[0]}",
        )
    found = next((s for s in release.services if name in (None, s.name)), None)
    if found is None:
        raise StateError(
            f"{release.bundle_id}: no service {name or 'at all'}",
            hint=f"Its services: {', '.join(names) or 'none'}",
        )
    return found


def as_json(record: CapacityRecord, path: Path) -> dict[str, Any]:
    """The result for machines, without the requests; those are in the record."""
    return {
        "record": str(path),
        "verdict": record.verdict.value,
        "service": record.service,
        "best": record.best,
        "edge": record.edge,
        "reason": record.reason,
        "trials": [
            {
                "concurrency": trial.metrics.concurrency,
                "verdict": trial.verdict.value,
                "checks": [check.model_dump(mode="json") for check in trial.checks],
            }
            for trial in record.trials
        ],
    }


def show(record: CapacityRecord, path: Path) -> None:
    """The result for people."""
    table(
        "levels in the order in which they were measured",
        ["#users", "verdict", "decided by", "#TTFT p95 ms", "#output tok/s"],
        [
            [
                str(trial.metrics.concurrency),
                trial.verdict.value,
                next((c.measured for c in trial.checks if c.verdict is trial.verdict), "-")
                if trial.verdict.value != "PASS"
                else trial.checks[-1].measured,
                "-" if trial.metrics.ttft.p95 is None else f"{trial.metrics.ttft.p95:.1f}",
                f"{trial.metrics.output_tokens_per_s:.1f}",
            ]
            for trial in record.trials
        ],
    )
    for warning in record.warnings:
        say(f"warning: {warning}", "yellow")
    say(f"{record.verdict.value}: {record.reason}", STYLE[record.verdict])
    say(f"record: {path}")
