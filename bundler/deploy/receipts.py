"""Records of a root -> one receipt, which names nothing of the site that may not leave it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from importlib.metadata import version
from typing import get_args

from bundler.deploy.audit import AuditLog
from bundler.deploy.installedcheck import check_installed
from bundler.deploy.root import Root
from bundler.deploy.sitetrust import SiteTrust
from bundler.deploy.variants import changed_of
from bundler.domain.facts import AcceptanceRecord, LevelMetrics, ReleaseRecord
from bundler.domain.manifest import VerifiedManifest
from bundler.domain.receipt import (
    Decision,
    Installed,
    Measured,
    MeasuredLevel,
    Private,
    Receipt,
    SettingChanged,
    SettingsChanged,
)
from bundler.domain.variants import Changed
from bundler.errors import StateError
from bundler.format.digests import sha256_hex
from bundler.format.statements import kept_folders
from bundler.ports import Clock, Progress

# Facts of a machine that name no machine.
_PLAIN_FACTS = ("processor", "cores", "memory", "kernel", "glibc", "driver", "gpu", "gpus")


@dataclass(frozen=True)
class Receipts:
    """Everything that making a receipt needs."""

    root: Root
    trust: SiteTrust
    log: AuditLog
    clock: Clock
    progress: Progress

    def make(
        self,
        verified: VerifiedManifest,
        release: ReleaseRecord,
        record: AcceptanceRecord,
        record_bytes: bytes,
        allowed: Collection[Private],
    ) -> Receipt:
        """Compare what is installed with the bundle, and write down that all three are one.

        Args:
            verified: the bundle, which the site's policy lets be used.
            release: of it.
            record: the acceptance run.
            record_bytes: the same as it lies there.
            allowed: what may be carried out besides.

        Raises:
            StateError: the run, or the release, is of another bundle.
            IntegrityError: an installed file is not what the bundle says, or the audit log was changed.
            TrustError: a decision was changed.
        """
        if record.manifest_sha256 != verified.digest:
            raise StateError(
                f"the last acceptance run is of {record.bundle_id}, the release in use of"
                f" {verified.bundle_id}",
                hint="Measure it first: airbundle accept --root ROOT",
            )
        if record.began < release.installed:
            raise StateError(
                f"the last acceptance run ({record.began}) is older than the release"
                f" ({release.installed})",
                hint="Measure it again: airbundle accept --root ROOT",
            )
        changed = changed_of(release, verified.manifest.services)
        if (record.changed and record.changed.differences) != (changed and changed.differences):
            raise StateError(
                f"the last acceptance run is of other settings than those of {release.release_id}",
                hint="Measure it again: airbundle accept --root ROOT",
            )
        found = check_installed(self.root, verified, release, self.progress)
        found.raise_if_bad()
        manifest = verified.manifest
        return Receipt(
            bundle=manifest.name,
            sequence=manifest.sequence,
            manifest_sha256=verified.digest,
            built_by=verified.key_id,
            models=record.models,
            decisions=self._decisions(verified, named="people" in allowed),
            installed=Installed(
                installed=release.installed,
                engine=f"{release.engine_name} {release.engine_version}",
                checked=self.clock.now(),
                files=found.files,
                changed=_changed(changed, values="reasons" in allowed),
            ),
            measured=_measured(record, record_bytes, reasons="reasons" in allowed),
            host={
                name: value
                for name, value in record.host.items()
                if name.split()[0] in _PLAIN_FACTS or "host" in allowed
            },
            audit=self.log.verify(),
            left_out=tuple(one for one in get_args(Private) if one not in allowed),
            tool=version("airbundle"),
            created=self.clock.now(),
        )

    def _decisions(self, verified: VerifiedManifest, *, named: bool) -> tuple[Decision, ...]:
        folders = kept_folders(self.root.decisions(verified.bundle_id))
        return tuple(
            Decision(
                role=said.role,
                verdict=said.verdict,
                key_id=key_id,
                created=said.created,
                by=said.by if named else "",
            )
            for said, key_id, _ in self.trust.approvals(folders, verified)
        )


def _changed(changed: Changed | None, *, values: bool) -> SettingsChanged | None:
    """Settings are of our own few words; what a variable holds may be a path."""
    if changed is None:
        return None

    def shown(setting: str, value: str) -> str | None:
        private = setting == "args" or setting.startswith("env.")
        return value if values or not private else None

    return SettingsChanged(
        settings=tuple(
            SettingChanged(
                service=one.service,
                setting=one.setting,
                signed=shown(one.setting, one.signed),
                now=shown(one.setting, one.now),
            )
            for one in changed.differences
        ),
        ab_records_sha256=tuple(step.record_sha256 for step in changed.steps),
        applied=changed.steps[-1].applied,
    )


def _measured(record: AcceptanceRecord, data: bytes, *, reasons: bool) -> Measured:
    """The run without its requests. Reasons may hold an engine's words, and with them paths."""
    checks = record.checks
    flawed = tuple(gate for gate in record.gates if gate.state == "failed")
    if not reasons:
        checks = tuple(check.model_copy(update={"reason": ""}) for check in checks)
        flawed = tuple(gate.model_copy(update={"reason": ""}) for gate in flawed)
    return Measured(
        began=record.began,
        ended=record.ended,
        verdict=record.verdict,
        record_sha256=sha256_hex(data),
        kernels={one.service: one.running.words() for one in record.services if one.running},
        levels=tuple(map(_level, record.levels)),
        checks=checks,
        gates=flawed,
    )


def _level(level: LevelMetrics) -> MeasuredLevel:
    return MeasuredLevel(
        service=level.service,
        concurrency=level.concurrency,
        requests=level.requests,
        succeeded=level.succeeded,
        output_tokens_per_s=level.output_tokens_per_s,
        ttft_ms_p50=level.ttft.p50,
        ttft_ms_p95=level.ttft.p95,
        tpot_ms_p50=level.tpot.p50,
        tpot_ms_p95=level.tpot.p95,
    )
