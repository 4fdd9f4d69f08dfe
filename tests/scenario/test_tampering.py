"""One wrong byte anywhere is found, named, and answered with the documented exit code."""

import json
import os
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from bundler import wiring
from bundler.cli.app import run
from bundler.cli.console import SilentProgress
from bundler.deploy.root import Root
from bundler.deploy.verify import Verification, verify
from bundler.domain.manifest import Entry, Manifest, Part, RuntimeFile
from bundler.errors import FormatError, MissingVolumeError, TrustError
from bundler.format import layout
from bundler.format.blocks import content_id, content_id_of
from bundler.format.checksums import checksums
from bundler.format.codec import parse_manifest, to_bytes
from bundler.format.digests import sha256_file, sha256_hex
from tests.fakes.gguf import gguf_bytes
from tests.fakes.small_bundle import SmallBundle


def check(small: SmallBundle, *, allow_unsigned: bool = False) -> Verification:
    keys = wiring.verifiers([small.public] if small.public.exists() else [])
    return verify(
        small.out,
        trust=wiring.gate().site(None, keys=keys, unsigned=allow_unsigned),
        form=wiring.volume_format(),
        progress=SilentProgress(),
    )


def flip(path: Path, at: int, bit: int = 0) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1 << bit
    path.write_bytes(bytes(data))


def test_an_undamaged_bundle_verifies(small: SmallBundle) -> None:
    result = check(small)
    assert (result.findings, result.missing, result.strangers) == ((), (), ())
    assert run(["verify", str(small.out), "--key", str(small.public), "--quiet"]) == 0


def test_a_flipped_byte_in_any_file_beside_the_volumes_is_named(small: SmallBundle) -> None:
    names = [path.name for path in small.out.iterdir() if path.suffix != ".zip"]
    assert len(names) == 5
    for name in names:
        original = (small.out / name).read_bytes()
        for at in (0, len(original) // 2, len(original) - 1):
            flip(small.out / name, at)
            code = run(["verify", str(small.out), "--key", str(small.public), "--quiet"])
            expected = 8 if name in (layout.MANIFEST, layout.SIGNATURE) else 7
            assert code == expected, name
            if expected == 7:
                assert [finding.where for finding in check(small).findings] == [name]
            (small.out / name).write_bytes(original)


@pytest.mark.slow
def test_a_flipped_byte_anywhere_in_a_volume_names_the_volume_and_the_path(
    small: SmallBundle,
) -> None:
    noise = random.Random(11)
    manifest = parse_manifest((small.out / layout.MANIFEST).read_bytes())
    members = {
        volume.name: [(p.offset, p.offset + p.size, e.path) for e in manifest.entries for p in e.parts
                      if p.volume == volume.name]
        for volume in manifest.volumes
    }  # fmt: skip
    for volume in small.volumes():
        size = volume.stat().st_size
        original = volume.read_bytes()
        for at in [0, size - 1, *(noise.randrange(size) for _ in range(25))]:
            flip(volume, at, noise.randrange(8))
            findings = check(small).findings
            assert len(findings) == 1
            where = findings[0].where
            assert where.startswith(f"{volume.name}: ")
            hit = [name for start, end, name in members[volume.name] if start <= at < end]
            if hit:
                assert where.startswith(f"{volume.name}: {hit[0]}")
                located = re.search(r": bytes (\d+) to (\d+)$", where)
                assert not located or int(located[2]) - int(located[1]) < manifest.block_size
            else:
                assert findings[0].what == "ZIP structure changed"
            volume.write_bytes(original)


def test_the_command_names_volume_and_path_and_exits_7(
    small: SmallBundle, capsys: pytest.CaptureFixture[str]
) -> None:
    volume = small.volumes()[0]
    manifest = parse_manifest((small.out / layout.MANIFEST).read_bytes())
    part = next(p for e in manifest.entries for p in e.parts if p.volume == volume.name and p.size)
    flip(volume, part.offset)
    assert run(["verify", str(small.out), "--key", str(small.public), "--json"]) == 7
    captured = capsys.readouterr()
    assert f"error: {volume.name}: {part.member.split('.part')[0]}: " in captured.err
    answer = json.loads(captured.out)
    assert answer["exit_code"] == 7
    assert answer["kind"] == "IntegrityError"


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-10])


def lengthen(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"x")


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("damage", [truncate, lengthen, empty])
def test_a_volume_of_the_wrong_length_is_named(
    small: SmallBundle, damage: Callable[[Path], None]
) -> None:
    volume = small.volumes()[1]
    damage(volume)
    assert all(finding.where.startswith(volume.name) for finding in check(small).findings)
    assert check(small).findings


def test_swapped_volumes_are_both_named(small: SmallBundle) -> None:
    one, two = small.volumes()[:2]
    held = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(held)
    named = {finding.where.split(":")[0] for finding in check(small).findings}
    assert named == {one.name, two.name}


def test_every_damaged_volume_is_named_at_once(small: SmallBundle) -> None:
    for volume in small.volumes():
        flip(volume, volume.stat().st_size // 2)
    named = {finding.where.split(":")[0] for finding in check(small).findings}
    assert named == {volume.name for volume in small.volumes()}


@pytest.mark.parametrize("name", ["volume", layout.BOOTSTRAP, layout.CHECKSUMS, layout.READ_ME])
def test_a_missing_file_is_named_with_exit_code_16(
    small: SmallBundle, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = small.volumes()[1].name if name == "volume" else name
    (small.out / gone).unlink()
    assert run(["verify", str(small.out), "--key", str(small.public), "--quiet"]) == 16
    assert gone in capsys.readouterr().err


def test_a_file_that_does_not_belong_is_noted_but_does_no_harm(small: SmallBundle) -> None:
    (small.out / "System Volume Information").mkdir()
    result = check(small)
    assert result.strangers == ("System Volume Information",)
    result.raise_if_bad()


def test_the_wrong_key_and_no_key_are_refused(small: SmallBundle, tmp_path: Path) -> None:
    wiring.generate_keys(tmp_path / "o.key.pem", tmp_path / "o.pub.pem")
    assert run(["verify", str(small.out), "--key", str(tmp_path / "o.pub.pem")]) == 8
    assert run(["verify", str(small.out)]) == 8
    assert run(["verify", str(small.out), "--key", str(tmp_path / "none.pem")]) == 19
    assert run(["verify", str(small.out), "--key", str(small.private)]) == 19
    both = ["--key", str(tmp_path / "o.pub.pem"), "--key", str(small.public)]
    assert run(["verify", str(small.out), *both, "--quiet"]) == 0


def test_an_edited_manifest_is_refused_before_it_is_parsed(small: SmallBundle) -> None:
    (small.out / layout.MANIFEST).write_bytes(b"{ not even json")
    with pytest.raises(TrustError):
        check(small)


def test_unsigned_is_an_explicit_policy_and_a_bad_signature_never_passes(
    small: SmallBundle,
) -> None:
    flip(small.out / layout.SIGNATURE, 5)
    with pytest.raises(TrustError):
        check(small, allow_unsigned=True)
    (small.out / layout.SIGNATURE).unlink()
    with pytest.raises(TrustError):
        check(small)
    result = check(small, allow_unsigned=True)
    assert not result.verified.signed
    # SHA256SUMS still lists the signature that was taken away.
    assert [finding.where for finding in result.findings] == [layout.CHECKSUMS]


def resign(small: SmallBundle, data: bytes) -> None:
    (small.out / layout.MANIFEST).write_bytes(data)
    (small.out / layout.SIGNATURE).write_bytes(wiring.signer(small.private).sign(data))


def test_a_signed_manifest_of_another_format_version_is_refused(small: SmallBundle) -> None:
    data = json.loads((small.out / layout.MANIFEST).read_bytes())
    resign(small, json.dumps({**data, "format_version": 99, "new": 1}).encode())
    with pytest.raises(FormatError, match="format_version 99"):
        check(small)


@pytest.mark.parametrize("path", ["../../etc/x", "/etc/x", "models/toy/../../x", "a\\b", "con"])
def test_a_signed_manifest_with_a_hostile_path_is_refused(small: SmallBundle, path: str) -> None:
    manifest = parse_manifest((small.out / layout.MANIFEST).read_bytes())
    entry = manifest.entries[0].model_copy(update={"path": path})
    resign(small, to_bytes(manifest.model_copy(update={"entries": (entry, *manifest.entries[1:])})))
    with pytest.raises(FormatError):
        check(small)


def test_a_signed_manifest_that_lies_about_offsets_is_refused(small: SmallBundle) -> None:
    manifest = parse_manifest((small.out / layout.MANIFEST).read_bytes())
    entry = next(e for e in manifest.entries if e.size > 10)
    part = entry.parts[0].model_copy(update={"offset": entry.parts[0].offset + 1})
    bad = entry.model_copy(update={"parts": (part, *entry.parts[1:])})
    entries = tuple(bad if e is entry else e for e in manifest.entries)
    resign(small, to_bytes(manifest.model_copy(update={"entries": entries})))
    with pytest.raises(FormatError):
        check(small)


def remake(small: SmallBundle, change: Callable[[Manifest], Manifest]) -> None:
    """A trusted supplier's manifest that lies, with signature and checksums to match."""
    manifest = change(parse_manifest((small.out / layout.MANIFEST).read_bytes()))
    resign(small, to_bytes(manifest))
    digest = sha256_hex((small.out / layout.MANIFEST).read_bytes())
    signed = sha256_hex((small.out / layout.SIGNATURE).read_bytes())
    (small.out / layout.CHECKSUMS).write_bytes(checksums(manifest, digest, signed))


def with_entry(pick: Callable[[Entry], bool], **changes: object) -> Callable[[Manifest], Manifest]:
    def change(manifest: Manifest) -> Manifest:
        victim = next(entry for entry in manifest.entries if pick(entry))
        entries = tuple(
            entry.model_copy(update=changes) if entry is victim else entry
            for entry in manifest.entries
        )
        return manifest.model_copy(update={"entries": entries})

    return change


def with_top(**changes: object) -> Callable[[Manifest], Manifest]:
    return lambda manifest: manifest.model_copy(update=changes)


def is_cut(entry: Entry) -> bool:
    return len(entry.parts) > 1


def is_whole(entry: Entry) -> bool:
    return len(entry.parts) == 1 and entry.size > 0


def _shifted(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """The same bytes, cut one byte earlier."""
    first, second = parts[:2]
    return (
        first.model_copy(update={"size": first.size - 1}),
        second.model_copy(update={"size": second.size + 1, "offset": second.offset - 1}),
        *parts[2:],
    )


HOSTILE = {
    "a name that leaves the root": with_top(name="../../../../tmp/escape"),
    "a name with control characters": with_top(name="a\n\x1b[31m"),
    "a device name": with_top(name="con"),
    "an empty name": with_top(name=""),
    "an entry posing as a release's file": with_entry(is_whole, path="release.json"),
    "an entry in the environment": with_entry(is_whole, path="venv/bin/python"),
    "an entry without parts": with_entry(is_whole, parts=()),
    "a whole file under another digest": with_entry(is_whole, sha256="0" * 64),
    "a file without blocks": with_entry(is_whole, blocks=()),
    "more blocks than the file has": lambda m: with_entry(
        is_whole, blocks=next(e for e in m.entries if is_whole(e)).blocks * 2
    )(m),
    "a block size that is no power of two": with_top(block_size=5000),
    "a block size of nothing": with_top(block_size=0),
    "huge blocks": with_top(block_size=2**40),
    "a part that is cut inside a block": lambda m: with_entry(
        is_cut, parts=_shifted(next(e for e in m.entries if is_cut(e)).parts)
    )(m),
    "a size beyond 64 bits": with_entry(is_whole, size=2**64),
    "requirements outside the bundle": lambda m: m.model_copy(
        update={"engine": m.engine.model_copy(update={"requirements": "/etc/hostname"})}
    ),
    "an unknown engine": lambda m: m.model_copy(
        update={"engine": m.engine.model_copy(update={"name": "nope"})}
    ),
    "a file that is not there": with_top(files=(RuntimeFile(path="files/x", role="driver"),)),
    "a service without a model": lambda m: m.model_copy(
        update={"services": (m.services[0].model_copy(update={"model": "none"}),)}
    ),
    "not a number": lambda m: m.model_copy(
        update={"acceptance": m.acceptance.model_copy(update={"request_timeout_s": 1e400})}
    ),
}


@pytest.mark.parametrize("what", HOSTILE)
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_a_signed_manifest_that_lies_is_refused_everywhere_in_one_line(
    small: SmallBundle, tmp_path: Path, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if what == "not a number":
        data = (small.out / layout.MANIFEST).read_bytes()
        resign(small, data.replace(b'"request_timeout_s": 600.0', b'"request_timeout_s": Infinity'))
    else:
        remake(small, HOSTILE[what])
    root = tmp_path / "deep" / "er" / "root"
    bundle, key = str(small.out), ["--key", str(small.public), "--quiet"]
    for words in (
        ["verify", bundle, *key],
        ["import", bundle, "--root", str(root), *key],
        ["inspect", bundle],
    ):
        assert run(words) == 9, words
        said = capsys.readouterr().err
        assert len(said.strip().splitlines()) == 2, said
    assert not root.exists()


def test_the_store_cannot_be_poisoned_under_another_files_digest(
    small: SmallBundle, tmp_path: Path
) -> None:
    """A trusted supplier's lie about a whole file's SHA-256 changes nothing: blocks name it."""
    good = small.copy(tmp_path / "good")
    honest = parse_manifest((good.out / layout.MANIFEST).read_bytes())
    victim = next(entry for entry in honest.entries if is_cut(entry))
    evil = SmallBundle(tmp_path / "evil", bundle_name="evil")
    evil.prepare()
    (evil.folder / "model" / "toy.gguf").write_bytes(gguf_bytes(500_000, seed=1))
    evil.build_only()
    remake(evil, with_entry(is_cut, sha256=victim.sha256))
    root = Root(tmp_path / "root")
    for bundle in (evil, good):
        words = ["import", str(bundle.out), "--key", str(bundle.public), "--root", str(root.path)]
        assert run([*words, "--quiet"]) == 0
    assert sha256_file(root.object(content_id(victim))) == victim.sha256
    other = parse_manifest((evil.out / layout.MANIFEST).read_bytes())
    liar = next(entry for entry in other.entries if is_cut(entry))
    assert content_id(liar) != content_id(victim)


def test_content_ids_tell_a_list_of_blocks_from_a_file_that_says_the_same() -> None:
    digests = ["a" * 64, "b" * 64]
    text = "\n".join(["airbundle content 1", "100", *digests, ""]).encode()
    assert content_id_of(len(text), [sha256_hex(text)]) != content_id_of(100, digests)


@pytest.mark.parametrize("kind", ["folder", "fifo", "dangling link"])
def test_something_else_in_a_files_place_is_no_volume(small: SmallBundle, kind: str) -> None:
    for name in (small.volumes()[0].name, layout.CHECKSUMS, layout.READ_ME):
        path = small.out / name
        data = path.read_bytes()
        path.unlink()
        if kind == "folder":
            path.mkdir()
        elif kind == "fifo":
            os.mkfifo(path)
        else:
            path.symlink_to("nowhere")
        assert run(["verify", str(small.out), "--key", str(small.public), "--quiet"]) == 7
        path.rmdir() if kind == "folder" else path.unlink()
        path.write_bytes(data)


def test_a_folder_without_a_bundle_says_so(tmp_path: Path) -> None:
    assert run(["verify", str(tmp_path / "none"), "--unsigned"]) == 17
    small = SmallBundle(tmp_path)
    small.out.mkdir()
    with pytest.raises(MissingVolumeError):
        check(small, allow_unsigned=True)


def test_mixed_volumes_of_two_bundles_are_found(small: SmallBundle, tmp_path: Path) -> None:
    other = SmallBundle(tmp_path / "other", args=("--other",))
    other.prepare()
    (other.folder / "model" / "toy.gguf").write_bytes(gguf_bytes(500_000, seed=1))
    other.build_only()
    victim = small.volumes()[1]
    shutil.copy(other.out / victim.name, victim)
    assert {f.where.split(":")[0] for f in check(small).findings} == {victim.name}
