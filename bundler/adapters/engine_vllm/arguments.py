"""The server's arguments as its own parser would take them, and whether this version knows them.

vLLM's parser takes `_` for `-`, `--flag.key value` for a key of a JSON flag, `--no-flag` for a switch
and, as argparse does, any unambiguous beginning of a flag
(https://github.com/vllm-project/vllm/blob/main/vllm/utils/argparse_utils.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

# Short names, read in the parser of 0.17.1 and 0.32.0.
_SHORT = {
    "-tp": "--tensor-parallel-size",
    "-pp": "--pipeline-parallel-size",
    "-dp": "--data-parallel-size",
    "-dpn": "--data-parallel-rank",
    "-dpr": "--data-parallel-start-rank",
    "-dpl": "--data-parallel-size-local",
    "-dpa": "--data-parallel-address",
    "-dpp": "--data-parallel-rpc-port",
    "-dpb": "--data-parallel-backend",
    "-dph": "--data-parallel-hybrid-lb",
    "-dpe": "--data-parallel-external-lb",
    "-dcp": "--decode-context-parallel-size",
    "-pcp": "--prefill-context-parallel-size",
    "-ep": "--enable-expert-parallel",
    "-q": "--quantization",
    "-n": "--nnodes",
    "-r": "--node-rank",
    "-cc": "--compilation-config",
    "-ac": "--attention-config",
    "-sc": "--speculative-config",
    "-asc": "--api-server-count",
}
_NUMBER = re.compile(r"-\d")


@dataclass(frozen=True)
class Argument:
    """One flag: as written, by its long name without key, the key after a dot, and its values."""

    written: str
    flag: str
    key: str = ""
    values: tuple[str, ...] = ()

    @property
    def value(self) -> str:
        """The first value; empty when there is none."""
        return self.values[0] if self.values else ""


def parse(words: Iterable[str]) -> tuple[Argument, ...]:
    """Flags with their values; words before the first flag are left out."""
    found: list[tuple[str, list[str]]] = []
    for word in words:
        if word.startswith("-") and len(word) > 1 and not _NUMBER.match(word):
            name, equals, value = word.partition("=")
            found.append((name, [value] if equals else []))
        elif found:
            found[-1][1].append(word)
    return tuple(_argument(name, tuple(values)) for name, values in found)


def _argument(written: str, values: tuple[str, ...]) -> Argument:
    head, _, key = written.partition(".")
    if re.fullmatch(r"-O\w*", head):
        # The optimization level, before 0.12 the compilation level.
        return Argument(written, "-O", key, (head[2:],) if head[2:] else values)
    if head.startswith("--"):
        return Argument(written, "--" + head[2:].replace("_", "-"), key, values)
    return Argument(written, _SHORT.get(head, head), key, values)


def resolve(flag: str, known: Iterable[str]) -> str | None:
    """The known flag that argparse takes this one for; None when it would refuse it."""
    flags = set(known)
    if flag in flags or flag in ("-h", "--help", "-O"):
        return flag
    for prefix, other in (("--no-", "--"), ("--", "--no-")):
        if flag.startswith(prefix) and other + flag.removeprefix(prefix) in flags:
            return other + flag.removeprefix(prefix)
    longer = {name for name in flags if name.startswith(flag)} if flag.startswith("--") else set()
    return longer.pop() if len(longer) == 1 else None


def wrong_values(argument: Argument, choices: tuple[str, ...]) -> Iterator[str]:
    """Values that are not among the choices, however the parser may fold them."""
    folded = {_fold(choice) for choice in choices}
    if choices and not argument.key:
        yield from (value for value in argument.values if _fold(value) not in folded)


def _fold(value: str) -> str:
    """`--moe-backend` and its like take `-` for `_` and any case; nothing else differs so little."""
    return value.lower().replace("-", "_")


def last_values(arguments: Iterable[Argument]) -> Mapping[str, str]:
    """Flag (and `flag.key`) -> its last value, which is the one in force."""
    return {f"{item.flag}.{item.key}" if item.key else item.flag: item.value for item in arguments}
