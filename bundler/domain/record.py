"""The base of every type that crosses a stage (frozen, strict about keys, no I/O), and its fields."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints

from bundler.domain import names

Name = Annotated[
    str, StringConstraints(pattern=names.NAME_PATTERN), AfterValidator(names.no_device)
]
Location = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]*$", max_length=4096)]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class Record(BaseModel):
    """An immutable record. Unknown keys are refused, so a typing error is never ignored."""

    # Infinity and NaN have no JSON form, and every comparison with NaN is false: no limit would hold.
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        protected_namespaces=(),
        allow_inf_nan=False,
        # Most commands use few of the types; a schema is built when its first record is.
        defer_build=True,
    )
