"""The connected host's part of `airbundle doctor`: indexes, Hub, download store -> rows. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from bundler.domain.host import Row
from bundler.domain.sizes import human
from bundler.domain.workplace import Answer, StoreHealth

# By this much clocks may differ before certificates and dates are misjudged.
_SKEW_S = 300


def index_rows(answers: Sequence[Answer]) -> Iterator[Row]:
    """Judge what pip's and uv's indexes answered."""
    if not answers:
        yield Row(name="index", state="warn", found="pip is told to ask none (no-index), no find-links",
                  fix="Wheels can then only come from `engine.wheels` and the cache.")  # fmt: skip
    for one in answers:
        name = f"{one.what} {one.url}"
        if one.fault:
            yield Row(name=name, state="fail", found=one.fault,
                      fix="Check the address in pip's configuration, the proxy and the certificate.")  # fmt: skip
        elif one.status in (401, 403, 407):
            yield Row(name=name, state="fail", found=f"HTTP {one.status}",
                      fix="It wants credentials: in the address, ~/.netrc, or the proxy's.")  # fmt: skip
        elif one.status == 404:
            yield Row(name=name, state="warn", found="answers, and has no `pip`",
                      fix="Fine for an index of a few packages; otherwise the address lacks /simple.")  # fmt: skip
        else:
            good = one.status == 200
            yield Row(name=name, state="ok" if good else "fail", found=_said(one),
                      fix="" if good else "Ask who runs it, or try again.")  # fmt: skip


def hub_rows(answer: Answer, *, token: bool) -> Iterator[Row]:
    """Judge the Hub's answer; of a token only whether it is there."""
    name = f"Hub {answer.url}"
    # Any answer below 500 comes from a server that is there; the path need not be.
    reached = answer.status is not None and answer.status < 500 and answer.status != 407
    if reached:
        yield Row(name=name, state="ok", found=_said(answer))
    else:
        yield Row(name=name, state="fail", found=answer.fault or f"HTTP {answer.status}",
                  fix="Check the connection, the proxy and HF_ENDPOINT.")  # fmt: skip
    yield Row(name="Hub token", state="ok", found="there" if token else "none",
              fix="" if token else "Gated models need one: hf auth login, or HF_TOKEN.")  # fmt: skip


def store_rows(store: StoreHealth) -> Iterator[Row]:
    """Judge the download store."""
    if store.fault:
        yield Row(name="cache", state="fail", found=store.fault, fix="Give another --cache.")
        return
    found = f"{store.path}: {store.files} files, {human(store.bytes)}"
    if store.partial_files:
        found += f"; {store.partial_files} on their way, {human(store.partial_bytes)}"
    yield Row(name="cache", state="ok", found=found)
    if store.doubtful:
        yield Row(name="cache content", state="warn", found=f"{len(store.doubtful)} of another size than noted",
                  fix=f"They are fetched anew; to do it now remove objects/*/{store.doubtful[0][:12]}*.")  # fmt: skip


def clock_row(answers: Sequence[Answer], now: str) -> Row:
    """Compare this host's clock with the servers' own."""
    there = [one for one in answers if one.date]
    if not there or not now:
        return Row(name="clock against servers", state="unknown", found="none said what time it is")
    skew = max((abs(_seconds(now) - _seconds(one.date)) for one in there), default=0.0)
    good = skew <= _SKEW_S
    return Row(name="clock against servers", state="ok" if good else "warn", found=f"{skew:.0f} s apart",
               fix="" if good else "Set the clock: the lock's date and certificates count by it.")  # fmt: skip


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def _said(one: Answer) -> str:
    return f"HTTP {one.status} in {one.seconds:.1f} s"
