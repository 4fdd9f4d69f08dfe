"""Memory bars as plain text."""

from hypothesis import given
from hypothesis import strategies as st

from bundler.cli.memory_bars import bars
from bundler.domain.fit import Fit, Term

GIB = 2**30


def made(weights: float, overhead: float, kv: float, memory: float = 80, host: float = 0) -> Fit:
    def term(name: str, size: float) -> Term:
        return Term(name=name, bytes=int(size * GIB), how="-")

    return Fit(
        service="chat", model="m", gpu="NVIDIA H100 80GB HBM3", gpus=2, gpu_bytes=int(memory * GIB),
        usable_bytes=int((weights + overhead + kv) * GIB),
        terms=(term("weights", weights), term("activations (estimate)", overhead)),
        host_terms=(term("routed experts", host),) if host else (),
        kv_bytes=int(kv * GIB), kv_dtype="fp8", per_token=term("t", 0), per_request=term("r", 0),
        max_context=1, context=1, requests=1,
    )  # fmt: skip


def test_the_parts_have_their_share_of_the_bar() -> None:
    lines = bars(made(40, 8, 24), 42, unicode=False)
    assert lines == [
        "chat: 2x NVIDIA H100 80GB HBM3",
        "[####################====------------....]",
        "# weights 40.0 GiB",
        "= overhead 8.0 GiB (estimate)",
        "- KV cache 24.0 GiB",
        ". left alone 8.0 GiB",
    ]
    assert (
        bars(made(40, 8, 24), 42, unicode=True)[1] == "[" + "█" * 20 + "▓" * 4 + "░" * 12 + "····]"
    )


def test_the_header_says_more_where_there_is_room() -> None:
    wide = bars(made(40, 8, 24), 100, unicode=True)[0]
    assert wide == "chat: 2x NVIDIA H100 80GB HBM3, 80.0 GiB each, KV cache fp8"
    assert bars(made(40, 8, 24), 50, unicode=True)[0].endswith("80.0 GiB each")


def test_what_does_not_fit_is_over() -> None:
    lines = bars(made(120, 8, -56), 42, unicode=False)
    assert lines[1] == "[" + "#" * 38 + "==" + "]"
    assert "! 56.0 GiB over what may be used" in lines


def test_what_lies_in_ram_is_said() -> None:
    assert bars(made(10, 1, 5, host=18), 60, unicode=True)[-1] == "+ 18.0 GiB in the host's RAM"


SIZE = st.floats(0, 10**6)


@given(
    SIZE, SIZE, st.floats(-(10**6), 10**6), st.floats(0, 1000), st.integers(-5, 300), st.booleans()
)
def test_no_line_is_wider_than_asked(
    weights: float, overhead: float, kv: float, memory: float, width: int, unicode: bool
) -> None:
    lines = bars(made(weights, overhead, kv, memory), width, unicode)
    assert max(map(len, lines)) <= max(width, 20)
    assert len(lines[1]) == max(width, 20)
    assert unicode or all(line.isascii() for line in lines)
