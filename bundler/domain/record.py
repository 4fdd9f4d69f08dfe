"""The base of every type that crosses a stage: frozen, strict about keys, no I/O."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """An immutable record. Unknown keys are refused, so a typing error is never ignored."""

    # Infinity and NaN have no JSON form, and every comparison with NaN is false: no limit would hold.
    model_config = ConfigDict(
        frozen=True, extra="forbid", protected_namespaces=(), allow_inf_nan=False
    )
