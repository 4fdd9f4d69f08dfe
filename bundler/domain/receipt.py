"""Receipted: what was approved is what is installed is what was measured. Signed, and small enough to be carried out."""

from typing import Literal

from pydantic import Field

from bundler.domain.audit import AuditHead
from bundler.domain.record import Record, Sha256
from bundler.domain.verdict import Check, Gate, Verdict

# What a receipt leaves out unless it is allowed.
Private = Literal["host", "people", "reasons"]


class Decision(Record):
    """Who approved or rejected the bundle, as a known key signed it."""

    role: str
    verdict: str
    key_id: str
    created: str
    by: str = Field("", description="Empty unless people may be named.")


class SettingChanged(Record):
    """One setting that is not as the bundle was signed. A variable's values stay unless reasons may leave."""

    service: str
    setting: str
    signed: str | None
    now: str | None


class SettingsChanged(Record):
    """What ran in place of the signed settings, and which comparisons justify it."""

    settings: tuple[SettingChanged, ...]
    ab_records_sha256: tuple[Sha256, ...] = Field(
        description="Of the comparisons, which stay on the site, in the order in which they were applied."
    )
    applied: str = Field(description="UTC time of the last one.")


class Installed(Record):
    """The release, compared with the bundle file by file."""

    installed: str = Field(description="UTC time.")
    engine: str
    checked: str = Field(description="UTC time of the comparison.")
    files: int = Field(description="Files that were compared by SHA-256; all were right.")
    changed: SettingsChanged | None = Field(
        None, description="Where the settings in force are not those that were signed."
    )


class MeasuredLevel(Record):
    """The figures of one level."""

    service: str
    concurrency: int
    requests: int
    succeeded: int
    output_tokens_per_s: float
    ttft_ms_p50: float | None
    ttft_ms_p95: float | None
    tpot_ms_p50: float | None
    tpot_ms_p95: float | None


class Measured(Record):
    """The acceptance run."""

    began: str
    ended: str
    verdict: Verdict
    record_sha256: Sha256 = Field(description="Of the whole record, which stays on the site.")
    kernels: dict[str, str] = Field(description="Service -> which kernels it said that it runs.")
    levels: tuple[MeasuredLevel, ...]
    checks: tuple[Check, ...]
    gates: tuple[Gate, ...] = Field(description="Those that failed.")


class Receipt(Record):
    """One bundle's way: approved = installed = measured, by one digest."""

    receipt: Literal["airbundle receipt 1"] = "airbundle receipt 1"
    bundle: str
    sequence: int
    manifest_sha256: Sha256
    built_by: str | None = Field(description="Key that signed the bundle; None: it is unsigned.")
    models: tuple[str, ...]
    decisions: tuple[Decision, ...]
    installed: Installed
    measured: Measured
    host: dict[str, str] = Field(
        description="Processor, memory, GPUs, driver; its name if allowed."
    )
    audit: AuditHead = Field(description="Where the site's audit log ended.")
    left_out: tuple[Private, ...] = Field(description="What was not allowed to be carried out.")
    tool: str = Field(description="Version of airbundle.")
    created: str
