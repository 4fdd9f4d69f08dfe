"""The base of every type that crosses a stage: frozen, strict about keys, no I/O."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """An immutable record. Unknown keys are refused, so a typing error is never ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())
