"""What an engine's own wheel says about itself: read from its source, without importing it."""

from pydantic import Field

from bundler.domain.record import Record

FACTS_VERSION = 3


class AttentionBackend(Record):
    """An attention backend of the engine."""

    kv_cache_dtypes: tuple[str, ...] = Field(
        (), description="Stated by its class; empty when the class states none that can be read."
    )


class EngineFacts(Record):
    """Facts of one engine wheel. An empty collection means: not stated there, hence not known."""

    facts_version: int = Field(FACTS_VERSION, description="Of this record; caches obey it.")
    engine: str
    version: str
    architectures: dict[str, str] = Field(
        {}, description="`architectures` name in a config.json -> `module:class` that serves it."
    )
    removed: dict[str, str] = Field(
        {}, description="Architecture no longer served -> last version that served it."
    )
    env: dict[str, str | None] = Field(
        {}, description="Variable that the engine reads -> default, as source; None: no default."
    )
    deprecated_env: dict[str, str] = Field(
        {},
        description="Variable that still works but is announced to go -> the engine's own words.",
    )
    flags: dict[str, tuple[str, ...]] = Field(
        {}, description="`--flag` of the server -> its choices; empty when free."
    )
    kv_cache_dtypes: tuple[str, ...] = ()
    attention_backends: dict[str, AttentionBackend] = Field({}, description="By its name.")
    deep_gemm: tuple[str, ...] = Field(
        (), description="CPython tags (`abi3`, `cp312`) that a vendored DeepGEMM is built for."
    )
    programs: tuple[str, ...] = Field(
        (), description="File names of programs that it starts itself."
    )
    moe_configs: tuple[str, ...] = Field((), description="File names of tuned Triton MoE tables.")
