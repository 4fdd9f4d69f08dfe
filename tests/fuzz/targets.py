"""One function for each parser. It may end, or raise what its parser promises; anything else is a find.

Memory and time are bounded by the fuzzer (`-rss_limit_mb`, `-timeout`), so an endless table, a bomb or a
quadratic rule is a find too.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from io import BytesIO
from pathlib import Path
from typing import Any

from bundler import wiring
from bundler.accept.correctness.asking import Asker, NotOffered, WrongAnswer
from bundler.accept.correctness.garbage import fault
from bundler.accept.correctness.greedy import ask_greedy, compare
from bundler.accept.correctness.likelihood import ask_nll
from bundler.accept.correctness.tasks import json_schema, korean, needle, tools
from bundler.accept.telemetry import observation
from bundler.adapters.api_http import answered
from bundler.adapters.engine_llamacpp.program import METRIC_NAMES as LLAMA_CPP_NAMES
from bundler.adapters.engine_vllm.metrics import METRIC_NAMES
from bundler.adapters.engine_vllm.wheel import read_facts
from bundler.adapters.volumes_zip import ZipVolumes
from bundler.bootstrap import airbundle_bootstrap as script
from bundler.build.elf import read_wheel
from bundler.build.elfobject import read_object
from bundler.build.modelfacts import read_model
from bundler.build.specfile import parse_spec
from bundler.build.unpacking import unpack
from bundler.build.wheelmeta import read_metadata
from bundler.deploy.policy import load_policy
from bundler.domain.inventory import LicenceText
from bundler.domain.lock import LockedFile, LockedModel
from bundler.domain.trust import Approval, Revocations, Rotation
from bundler.errors import BundlerError
from bundler.format.checksums import agree
from bundler.format.codec import bytes_read, parse_lock, parse_manifest
from bundler.format.gguf import read_gguf
from bundler.format.golden import read_golden
from bundler.format.places import Place, find_volumes
from bundler.format.profiles import parse_profiles, profile_bytes
from bundler.format.safetensors import HeaderFault, read_tensors
from bundler.format.sealing import VolumeKey
from bundler.format.spans import placed_parts, volume_spans
from bundler.format.statements import parse_statement
from bundler.format.volumes import scan_volumes
from bundler.format.wheelzip import DAMAGE, open_wheel
from bundler.format.workers import Idle
from bundler.instruments import Answered
from bundler.review.antivirus import read_antivirus_log
from bundler.review.licences import wheel_licence
from bundler.review.pickles import read_pickles
from bundler.review.redlineside import side_of_inventory
from bundler.review.templates import suspicious
from bundler.review.wheelcontents import parse_metadata
from bundler.review.wheelcontents import read_wheel as look_into_wheel
from tests.fakes.wheels import make_wheel

FROZEN = Path(__file__).parent.parent / "assets" / "bundle-v1"
MANIFEST = (FROZEN / "bundle" / "manifest.json").read_bytes()
KNOWN = parse_manifest(MANIFEST)
KEY = VolumeKey.read(FROZEN / "volumes.key")
_WORK = Path(tempfile.mkdtemp(prefix="airbundle-fuzz-"))


def manifest(data: bytes) -> None:
    """Signed bytes, but by whom? Every rule that later stages rely on must hold or refuse."""
    found = parse_manifest(data)
    assert bytes_read(found) == data
    parts = placed_parts(found)
    for volume in found.volumes:
        volume_spans(volume, parts[volume.name], ZipVolumes(), found.block_size)


def metrics(data: bytes) -> None:
    """What /metrics answered: numbers or nothing."""
    text = data.decode("utf-8", "replace")
    for names in (METRIC_NAMES, LLAMA_CPP_NAMES):
        observation(text, names, 0.0, "m")


def golden(data: bytes) -> None:
    """A golden record of another host, compared with itself."""
    path = _WORK / "golden.json"
    path.write_bytes(data)
    found = read_golden(path)
    assert compare(found.greedy, found.greedy)[0] == []


def answer(data: bytes) -> None:
    """An engine's JSON answer to each probe, and its text to the detectors."""

    class Session:
        async def post(self, path: str, body: Mapping[str, object], timeout_s: float) -> Answered:
            return answered(200, data)

    asker = Asker(Session(), "m", 1, "s")
    for asked in (
        lambda: ask_greedy(asker, "a", "b"),
        lambda: ask_nll(asker, "a", "b"),
        lambda: tools(asker),
        lambda: json_schema(asker),
        lambda: korean(asker),
        lambda: needle(asker, 4096),
    ):
        with suppress(NotOffered, WrongAnswer, BundlerError):
            asyncio.run(asked())
    fault(data.decode("utf-8", "replace"))


def bent_manifest(data: bytes) -> None:
    """A manifest in canonical form with some values exchanged, then read against real volumes."""
    document = json.loads(MANIFEST)
    _bend(document, data)
    text = json.dumps(document, ensure_ascii=False, sort_keys=True, indent=2) + "\n"
    raw = text.encode("utf-8", "surrogatepass")
    with suppress(script.Error):
        script.parse_manifest(raw)
    found = parse_manifest(raw)
    scan_volumes(find_volumes(found, [FROZEN / "bundle"]), found, ZipVolumes(), Idle())


def bootstrap_manifest(data: bytes) -> None:
    """The bootstrap's own reader."""
    script.parse_manifest(data)


def volume(data: bytes) -> None:
    """A volume of any bytes against a signed manifest: never more than damage."""
    name = KNOWN.volumes[1].name
    path = _WORK / name
    path.write_bytes(data)
    good = data == (FROZEN / "bundle" / name).read_bytes()
    found = scan_volumes({name: Place(path, name)}, KNOWN, ZipVolumes(), Idle())
    assert good == (not found)


def sealed(data: bytes) -> None:
    """A sealed volume of any bytes."""
    name = KNOWN.volumes[1].name
    path = _WORK / "sealed"
    path.write_bytes(data)
    good = data == (FROZEN / "sealed" / f"{name}.sealed").read_bytes()
    found = scan_volumes({name: Place(path, name, KEY)}, KNOWN, ZipVolumes(), Idle())
    assert good == (not found)


def statement(data: bytes) -> None:
    """Approvals, rotations and revocations lie beside a bundle for anyone to put there."""
    kinds: tuple[Any, ...] = (Approval, Rotation, Revocations)
    found = parse_statement(kinds[data[0] % 3 if data else 0], data[1:], "a statement")
    assert bytes_read(found) == data[1:]


def lock(data: bytes) -> None:
    """A lock that came with a spec from elsewhere."""
    parse_lock(data, "a lock")


def checksums(data: bytes) -> None:
    """SHA256SUMS on a medium."""
    agree(data, (FROZEN / "bundle" / "SHA256SUMS").read_bytes())
    path = _WORK / "SHA256SUMS"
    path.write_bytes(data)
    script.part_of(str(path), b"a  b\n")


def spec(data: bytes) -> None:
    """A spec from a colleague."""
    parse_spec(data, "spec.yaml")


def policy(data: bytes) -> None:
    """A policy file."""
    path = _WORK / "policy.yaml"
    path.write_bytes(data)
    load_policy(path, wiring.verifier)


def profiles(data: bytes) -> None:
    """A profile from another site; what was read can be written and read again."""
    found = parse_profiles(data, "profiles.yaml")
    assert parse_profiles(profile_bytes(found), "again") == found


def keys(data: bytes) -> None:
    """Key files."""
    path = _WORK / "key"
    path.write_bytes(data)
    for read in (wiring.verifier, wiring.signer, VolumeKey.read):
        with suppress(BundlerError):
            read(path)
    with suppress(script.Error):
        script.read_key(str(path))


def safetensors(data: bytes) -> None:
    """The header of a weights file."""
    read_tensors(lambda at, size: data[at : at + size], len(data))


def gguf(data: bytes) -> None:
    """The header of a GGUF."""
    read_gguf(lambda at, size: data[at : at + size], len(data))


def model(data: bytes) -> None:
    """A model's config, its index and a GGUF of the same bytes: broken content is a fault, no error."""
    names = ("config.json", "model.safetensors.index.json", "tokenizer_config.json",
             "model.safetensors")  # fmt: skip
    for paths in (names, ("model.gguf",), ("params.json", "consolidated.safetensors")):
        files = tuple(LockedFile(path=path, size=len(data)) for path in paths)
        made = LockedModel(name="m", source="local", origin="m", files=files)
        read_model(made, lambda _, at, size: data[at : at + size])


def wheel(data: bytes) -> None:
    """A wheel of any bytes."""
    path = _WORK / "x-1-py3-none-any.whl"
    path.write_bytes(data)
    with suppress(BundlerError):
        read_metadata("x", path)
    with suppress(BundlerError):
        read_wheel(path, "x86_64", _WORK)
    with open_wheel(path) as archive:
        for info in archive.infolist()[:20]:
            with archive.open(info) as member:
                member.read(2**16)


def reviewed(data: bytes) -> None:
    """A wheel of any bytes, as the reviewer's pack looks into it."""
    look_into_wheel(BytesIO(data))


def pickle_program(data: bytes) -> None:
    """A pickle, or an archive of some; nothing of it is run."""
    read_pickles(BytesIO(data), len(data), second=True)


def antivirus(data: bytes) -> None:
    """What an antivirus printed."""
    path = _WORK / "clamav.log"
    path.write_bytes(data)
    read_antivirus_log(path, KNOWN)


def older(data: bytes) -> None:
    """An earlier pack's inventory, as the older side of a redline."""
    path = _WORK / "inventory.json"
    path.write_bytes(data)
    side_of_inventory(path)


def template(data: bytes) -> None:
    """A chat template."""
    suspicious(data.decode("utf-8", "replace"))


def licence(data: bytes) -> None:
    """What METADATA states of its licence, and a licence's text."""
    text = data.decode("utf-8", "replace")
    wheel_licence(parse_metadata(text), (LicenceText(path="LICENSE", text=text),))


def elf(data: bytes) -> None:
    """A shared object of any bytes."""
    left = 100_000

    def spend() -> None:
        nonlocal left
        left -= 1
        if not left:
            raise BundlerError("enough")

    read_object(BytesIO(data), "x86_64", spend)


def engine(data: bytes) -> None:
    """The sources inside an engine's wheel, read as syntax trees."""
    names = ("vllm/envs.py", "vllm/engine/arg_utils.py", "vllm/config/cache.py",
             "vllm/model_executor/models/registry.py")  # fmt: skip
    path = make_wheel(_WORK, "vllm", "0.17.1", dict.fromkeys(names, data))
    with open_wheel(path) as archive:
        read_facts(archive, "0.17.1")


def archive(data: bytes) -> None:
    """An engine's archive; whatever it holds, files appear under numbers alone."""
    path, into = _WORK / "archive", _WORK / "unpacked"
    path.write_bytes(data)
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir()
    try:
        unpack(path, into)
    finally:
        assert all(found.name.isdigit() for found in into.iterdir())


_OURS = (BundlerError,)
# Each with what its parser promises to raise.
TARGETS: dict[str, tuple[Callable[[bytes], None], tuple[type[Exception], ...]]] = {
    "manifest": (manifest, _OURS),
    "bent_manifest": (bent_manifest, _OURS),
    "bootstrap_manifest": (bootstrap_manifest, (script.Error,)),
    "volume": (volume, ()),
    "sealed": (sealed, ()),
    "statement": (statement, _OURS),
    "lock": (lock, _OURS),
    "checksums": (checksums, ()),
    "spec": (spec, _OURS),
    "policy": (policy, _OURS),
    "profiles": (profiles, _OURS),
    "keys": (keys, ()),
    "safetensors": (safetensors, (HeaderFault,)),
    "gguf": (gguf, (HeaderFault,)),
    "model": (model, ()),
    "wheel": (wheel, DAMAGE),
    "reviewed": (reviewed, ()),
    "pickle_program": (pickle_program, ()),
    "antivirus": (antivirus, _OURS),
    "older": (older, _OURS),
    "template": (template, ()),
    "licence": (licence, ()),
    "elf": (elf, _OURS),
    "engine": (engine, _OURS),
    "archive": (archive, _OURS),
    "metrics": (metrics, ()),
    "golden": (golden, _OURS),
    "answer": (answer, (NotOffered, WrongAnswer, *_OURS)),
}

_VALUES: tuple[Any, ...] = (
    None, True, 0, 1, -1, 2**31, 2**32 - 1, 2**62, 2**64, 10**400, 0.5, "", "x", "../x", "/x", "a/../b",
    "CON", "nul.txt", "\u202e", "e\u0301", "\ud800", "x" * 300, [], {}, [[]], {"x": 1},
)  # fmt: skip


def _bend(document: Any, data: bytes) -> None:
    """Exchange, repeat or remove values at places that the bytes choose."""
    for at in range(0, min(len(data), 60), 3):
        slots = list(_slots(document))
        holder, key = slots[(data[at] * 256 + (data + b"\0\0")[at + 1]) % len(slots)]
        choice = (data + b"\0\0")[at + 2]
        if choice % 4 == 0 and isinstance(holder, list):
            holder.append(deepcopy(holder[key]))
        elif choice % 4 == 1:
            del holder[key]
        elif choice % 4 == 2:
            other, place = slots[choice * 7 % len(slots)]
            holder[key] = deepcopy(other[place])
        else:
            holder[key] = deepcopy(_VALUES[choice % len(_VALUES)])


def _slots(value: Any) -> Iterator[tuple[Any, Any]]:
    inner = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
    for key, item in inner:
        yield value, key
        if isinstance(item, (dict, list)):
            yield from _slots(item)
