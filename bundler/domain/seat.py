"""A host's place among those that serve one model together."""

from typing import Literal

from pydantic import Field

from bundler.domain.record import Record

Way = Literal["native", "ray"]


class Seat(Record):
    """What one process of several hosts is: vLLM itself, a Ray node, or the server that uses Ray's nodes."""

    way: Literal["native", "ray", "ray-node"]
    rank: int = Field(ge=0, description="0 is the head, which serves.")
    head: str = Field(description="Address or name of the head.")
    port: int = Field(ge=1, le=65535, description="Where the head waits for the others.")
    own: str = Field(description="Address under which the others reach this host.")

    @property
    def serves(self) -> bool:
        """Whether its process answers clients."""
        return self.rank == 0 and self.way != "ray-node"
