"""Does it fit, and how many users at once: the terms of the calculation."""

from pydantic import Field

from bundler.domain.record import Record


class Term(Record):
    """One term of a sum of bytes, with the calculation in words."""

    name: str
    bytes: int
    how: str


class Fit(Record):
    """Memory of one service on each of its GPUs."""

    service: str
    model: str
    gpu: str = Field(description="Product name; empty when the target names none.")
    gpus: int = Field(description="GPUs that share the model.")
    gpu_bytes: int = Field(description="Memory of one GPU.")
    usable_bytes: int = Field(description="What the engine may take of it.")
    terms: tuple[Term, ...] = Field(description="What is taken before the KV cache, per GPU.")
    host_terms: tuple[Term, ...] = Field((), description="What lies in the host's RAM instead.")
    kv_bytes: int = Field(description="Left for the KV cache, per GPU; negative: does not fit.")
    kv_dtype: str
    per_token: Term = Field(description="KV cache for each token, whole model.")
    per_request: Term = Field(
        description="State for each request, whatever its length; whole model."
    )
    max_context: int = Field(description="Longest single request that fits, tokens.")
    context: int = Field(description="Context that `requests` is for.")
    requests: int = Field(description="Most requests at once of that context.")
    at: dict[int, int] = Field({}, description="Context -> most requests at once.")
    unknown: tuple[str, ...] = Field((), description="What could not be taken into account.")

    @property
    def fits(self) -> bool:
        """Whether one request of the wanted context fits."""
        return self.kv_bytes > 0 and self.requests >= 1
