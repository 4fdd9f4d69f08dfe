"""The bootstrap on a bare host: any python3 from 3.6 on, nothing installed, no network."""

from __future__ import annotations

import ast
import hashlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import uv

from bundler import wiring
from bundler.bootstrap import airbundle_bootstrap as script
from bundler.build.fetch import Fetched
from bundler.build.pack import Packer, loose_file
from bundler.build.pipeline import BOOTSTRAP_FILE
from bundler.build.store import Blob
from bundler.cli.app import run
from bundler.cli.console import SilentProgress
from bundler.domain.manifest import Manifest
from bundler.format import layout
from bundler.format.codec import to_bytes
from bundler.format.ingest import digest_file
from tests.fakes.runtime import python_archive
from tests.fakes.small_bundle import PYTHON, SmallBundle
from tests.fakes.wheels import make_wheel

pytestmark = pytest.mark.slow

STDLIB_3_6 = {
    "argparse", "base64", "concurrent.futures", "contextlib", "ctypes", "errno", "fcntl", "hashlib",
    "json", "os", "platform", "re", "shlex", "shutil", "signal", "subprocess", "sys", "tarfile",
    "tempfile", "time", "zipfile",
}  # fmt: skip
ENV = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "LC_ALL": "C.UTF-8"}
TOOL = """\
import os, sys, json
def main():
    if sys.argv[1:] == ["--version"]:
        print("airbundle VERSION")
    else:
        print(json.dumps([sys.argv[1:], os.environ["AIRBUNDLE_ROOT"], sys.prefix, sys.version_info[:2]]))
"""


def interpreter(minor: int) -> str | None:
    """A CPython 3.`minor` that runs: on PATH, or installed beside the one that runs the tests."""
    beside = Path(sys.base_prefix).parent.glob(f"3.{minor}.*/bin/python3.{minor}")
    for path in (shutil.which(f"python3.{minor}"), *map(str, sorted(beside))):
        if path and subprocess.run([path, "-c", ""], capture_output=True).returncode == 0:
            return path
    return None


def bootstrap(
    *args: object, python: str | None = None, prefix: tuple[str, ...] = (), **env: str
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [*prefix, python or sys.executable, str(BOOTSTRAP_FILE), *map(str, args)],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        env={**ENV, **env},
    )
    assert "Traceback" not in done.stderr, done.stderr
    if done.returncode not in (0, 2):
        *_, error, hint = done.stderr.splitlines()
        assert error.startswith("error: "), done.stderr
        assert hint.startswith("hint: "), done.stderr
    return done


def verify(small: SmallBundle, *args: object, **env: str) -> subprocess.CompletedProcess[str]:
    return bootstrap("verify", "--key", small.public, "--dir", small.out, *args, **env)


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(bytes(data))


def canonical(manifest: object) -> bytes:
    return json.dumps(manifest, ensure_ascii=False, sort_keys=True, indent=2).encode() + b"\n"


def resign(small: SmallBundle | ToolBundle, change: Callable[[dict[str, Any]], object]) -> None:
    """Another manifest by the same key, and the checksums that follow from it."""
    manifest = json.loads((small.out / layout.MANIFEST).read_bytes())
    change(manifest)
    data = canonical(manifest)
    (small.out / layout.MANIFEST).write_bytes(data)
    (small.out / layout.SIGNATURE).write_bytes(wiring.signer(small.private).sign(data))
    names = [
        line.split("  ")[1] for line in (small.out / layout.CHECKSUMS).read_text().splitlines()
    ]
    lines = [f"{digest_file(small.out / name).sha256}  {name}\n" for name in names]
    (small.out / layout.CHECKSUMS).write_text("".join(lines))


def on_path(folder: Path, name: str, text: str) -> str:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)
    return str(folder)


# ---- The script itself. ----


def test_it_imports_only_what_python_3_6_has_and_parses_there() -> None:
    text = BOOTSTRAP_FILE.read_text(encoding="utf-8")
    tree = ast.parse(text, feature_version=(3, 6))
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
        assert not isinstance(node, (ast.NamedExpr, ast.Match))
    assert names <= STDLIB_3_6


@pytest.mark.slow
@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
@pytest.mark.parametrize("minor", range(6, 15))
def test_every_python_verifies(small: SmallBundle, minor: int, locale: str) -> None:
    python = interpreter(minor)
    if python is None:
        pytest.skip(f"no CPython 3.{minor} here")
    done = verify(small, python=python, LC_ALL=locale)
    assert done.returncode == 0, done.stderr
    assert "signature OK" in done.stdout
    assert "every byte as signed" in done.stdout
    assert ("서명 확인" in done.stdout) == (locale == "C.UTF-8" or minor > 6)
    assert "/s, 0:00 left" in done.stderr


# ---- verify ----


@pytest.mark.slow
def test_one_flipped_byte_is_named(small: SmallBundle) -> None:
    manifest = json.loads((small.out / layout.MANIFEST).read_bytes())
    parts = [(part, entry["path"]) for entry in manifest["entries"] for part in entry["parts"]]
    for path in sorted(small.out.iterdir()):
        size = path.stat().st_size
        for at in (0, size // 2, size - 1):
            flip(path, at)
            done = verify(small)
            flip(path, at)
            trust = path.name in (layout.MANIFEST, layout.SIGNATURE)
            assert done.returncode == (8 if trust else 7), (path.name, at, done.stderr)
            assert path.name in done.stderr
            for part, owner in parts:
                if part["volume"] == path.name and 0 <= at - part["offset"] < part["size"]:
                    located = rf"error: {path.name}: {owner}(: bytes \d+ to \d+)?: changed"
                    assert re.search(located, done.stderr), done.stderr
    assert verify(small).returncode == 0


def test_a_truncated_and_a_longer_volume_are_named(small: SmallBundle) -> None:
    first, second = small.volumes()[:2]
    os.truncate(first, first.stat().st_size // 2)
    with second.open("ab") as file:
        file.write(b"x")
    done = verify(small)
    assert done.returncode == 7
    assert f"{first.name}: models/toy/" in done.stderr
    assert "truncated" in done.stderr
    assert f"{second.name}: longer than promised" in done.stderr


def test_a_missing_volume_is_named_and_a_stranger_noted(small: SmallBundle) -> None:
    gone = small.volumes()[1]
    gone.unlink()
    (small.out / "desktop.ini\x1b[2J").write_bytes(b"")
    done = verify(small)
    assert done.returncode == 16
    assert f"error: missing: {gone.name}" in done.stderr
    assert "not part of the bundle: desktop.ini?[2J" in done.stderr


@pytest.mark.parametrize("name", [layout.CHECKSUMS, layout.READ_ME, layout.MANIFEST])
def test_other_missing_files_are_named(small: SmallBundle, name: str) -> None:
    (small.out / name).unlink()
    done = verify(small)
    assert done.returncode == 16
    assert name in done.stderr


def test_the_wrong_key(small: SmallBundle, tmp_path: Path) -> None:
    other = tmp_path / "other.pub.pem"
    wiring.generate_keys(tmp_path / "other.key.pem", other)
    done = bootstrap("verify", "--key", other, "--dir", small.out)
    assert done.returncode == 8
    assert "signature OK" not in done.stdout
    both = bootstrap("verify", "--key", other, "--key", small.public, "--dir", small.out)
    assert both.returncode == 0


@pytest.mark.parametrize("content", [None, b"no key", "private", b"\xff" * 200])
def test_what_is_no_public_key(
    small: SmallBundle, tmp_path: Path, content: bytes | str | None
) -> None:
    key = tmp_path / "key.pem"
    if content is not None:
        key.write_bytes(small.private.read_bytes() if content == "private" else bytes(content))
    done = bootstrap("verify", "--key", key, "--dir", small.out)
    assert done.returncode == 19
    assert str(key) in done.stderr


def test_unsigned_is_a_policy(small: SmallBundle) -> None:
    unsigned = ("verify", "--unsigned", "--dir", small.out)
    assert bootstrap(*unsigned).returncode == 8, "a signature that is there must be checked"
    assert bootstrap(*unsigned, "--key", small.public).returncode == 0
    (small.out / layout.SIGNATURE).unlink()
    assert verify(small).returncode == 8
    assert bootstrap("verify", "--dir", small.out).returncode == 2


def test_an_unsigned_bundle(small: SmallBundle) -> None:
    bare = small.folder / "bare"
    small.prepare()
    small.build_only(signed=False, out=bare)
    done = bootstrap("verify", "--unsigned", "--dir", bare)
    assert done.returncode == 0, done.stderr
    assert "warning: UNSIGNED" in done.stderr
    assert "UNSIGNED" in done.stdout


def _set(path: str, value: object) -> Callable[[dict[str, Any]], object]:
    def change(manifest: dict[str, Any]) -> None:
        *folders, last = path.split("/")
        place: Any = manifest
        for key in folders:
            place = place[int(key) if key.isdigit() else key]
        place[last] = value

    return change


def _find(manifest: dict[str, Any], path: str) -> dict[str, Any]:
    return next(entry for entry in manifest["entries"] if entry["path"] == path)


def _edit(path: str, /, **values: object) -> Callable[[dict[str, Any]], object]:
    return lambda manifest: _find(manifest, path).update(values)


def _edit_part(
    path: str, number: int = 0, /, **values: object
) -> Callable[[dict[str, Any]], object]:
    return lambda manifest: _find(manifest, path)["parts"][number].update(values)


def _zero_part(manifest: dict[str, Any]) -> None:
    """A cut file with an empty part: the sizes still add up."""
    parts = _find(manifest, CUT)["parts"]
    parts.append({**parts[-1], "size": 0})
    for number, part in enumerate(parts, 1):
        part["member"] = f"{CUT}.part{number}of{len(parts)}"


CUT, EMPTY = "models/toy/toy.gguf", "models/toy/empty.json"
BREAKS: list[Callable[[dict[str, Any]], object]] = [
    *(_set("format_version", value) for value in (2, True, 1.0, "1", None)),
    *(
        _set("name", name)
        for name in (
            "../../../x", "a\nb\x1b[31m", "", "x\n", "-x", "a" * 65, "\u017f", "\u0661", None, 1,
            "CON", "nul.zip", "Com0", "lpt9.a.b", "aux", "PRN.",
        )
    ),
    _set("entries/0/path", "../../etc/cron.d/x"),
    _set("entries/0/path", "/etc/passwd"),
    _set("entries/0/path", None),
    _set("entries/0/size", -1),
    _set("entries/0/kind", "evil"),
    _set("entries/0/parts", []),
    _set("entries/0/parts/0/offset", 10**9),
    _set("entries/0/parts/0/offset", "0"),
    _set("entries/0/parts/0/offset", True),
    _set("entries/0/blocks/0/sha256", "0"),
    _set("entries/0/blocks/0/sha256", "0" * 64),
    _set("entries/0/blocks", []),
    _set("block_size", 5000),
    _set("block_size", 2**40),
    _edit(CUT, blocks=[{"sha256": "0" * 64}]),
    _set("entries/0/parts/0/volume", "../x"),
    _set("entries/0/parts/0/volume", None),
    _edit(CUT, size=2**63),
    _edit(CUT, path="other/toy.gguf"),
    _edit(CUT, path="files/toy.gguf"),
    _edit(CUT, kind="file"),
    _edit_part(CUT, member=CUT),
    _edit_part(CUT, 1, member=CUT + ".part1of3"),
    _edit_part(CUT, size=1),
    _zero_part,
    _edit(EMPTY, parts=[]),
    lambda manifest: _edit(EMPTY, parts=_find(manifest, EMPTY)["parts"] * 2)(manifest),
    _edit_part(EMPTY, member="m" * 1101),
    lambda manifest: manifest["entries"].append(_find(manifest, EMPTY)),
    _set("volumes/0/name", "../x.zip"),
    _set("volumes/0/size", 2**63),
    lambda manifest: manifest["volumes"].append(manifest["volumes"][0]),
    _set("loose/0/name", "manifest.json"),
    _set("loose/0/name", "sha256sums"),
    _set("target", []),
    _set("target/python", "3.\u0661\u0662"),
    _set("tool/uv_wheel", "wheels/none.whl"),
    _set("tool/uv_wheel", "requirements/tool.txt"),
    _set("tool/requirements", CUT),
    _set("files", [{"path": CUT, "role": "python-runtime"}]),
    _set("files", [{"path": "files/none", "role": "other"}]),
    lambda manifest: manifest.clear(),
]  # fmt: skip


def refusal(manifest: object) -> str | None:
    """Why the script refuses a manifest; None: it does not. Whatever it is, it must be exit 9."""
    try:
        script.parse_manifest(canonical(manifest))  # type: ignore[no-untyped-call]
    except script.Error as error:
        return str(error) if error.code == 9 and len(str(error)) < 300 else pytest.fail(str(error))
    return None


def test_a_signed_manifest_that_breaks_the_format(small: SmallBundle) -> None:
    sound = (small.out / layout.MANIFEST).read_bytes()
    for number, change in enumerate(BREAKS):
        manifest = json.loads(sound)
        change(manifest)
        assert refusal(manifest), number
    resign(small, _set("name", "a\nb\x1b[31m"))
    done = verify(small)
    assert done.returncode == 9, done.stderr
    assert done.stderr.startswith("error: manifest.json: manifest.name: ")


def _places(value: object, form: object) -> Iterator[tuple[Any, Any]]:
    """Every place (container and key) that the script reads; of lists only the last."""
    if isinstance(form, dict):
        for key, inner in form.items():
            yield value, key
            yield from _places(value[key], inner)  # type: ignore[index]
    elif isinstance(form, list) and value:
        yield value, len(value) - 1  # type: ignore[arg-type]
        yield from _places(value[-1], form[0])  # type: ignore[index]


def test_whatever_is_missing_or_of_another_type_is_one_line(small: SmallBundle) -> None:
    manifest = json.loads((small.out / layout.MANIFEST).read_bytes())
    assert refusal(manifest) is None
    for place, key in list(_places(manifest, script.FORM)):
        kept = place[key]
        for odd in (None, True, -1, 0, 1.5, 2**63, "", "\n", "../x", [], [[]], {}, {"a": 1}):  # type: ignore[var-annotated]
            place[key] = odd
            harmless = (key, odd) in (("size", 0), ("role", "../x"), ("loose", []), ("files", []))
            assert harmless or refusal(manifest), (key, odd)
        if isinstance(place, dict):
            del place[key]
            assert str(refusal(manifest)).endswith(f".{key}: missing")
        place[key] = kept
    assert refusal(manifest) is None


def test_a_changed_block_of_a_large_file_is_located(small: SmallBundle) -> None:
    manifest = json.loads((small.out / layout.MANIFEST).read_bytes())
    entry = _find(manifest, CUT)
    step, part = manifest["block_size"], entry["parts"][1]
    before = entry["parts"][0]["size"]
    volume = small.out / part["volume"]
    data = bytearray(volume.read_bytes())
    data[part["offset"] + step + 5] ^= 1
    volume.write_bytes(data)
    done = verify(small)
    assert done.returncode == 7
    where = f"{CUT}: bytes {before + step} to {before + 2 * step - 1}: changed"
    assert f"error: {part['volume']}: {where}" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
def test_a_signal_leaves_no_temporary_files(
    small: SmallBundle, tmp_path: Path, number: signal.Signals
) -> None:
    """Openssl hangs, so the private copies exist when the signal comes."""
    text = f'#!/bin/sh\n[ "$1" = version ] && exit 0\n: > {tmp_path}/here\nexec sleep 5\n'
    path = on_path(tmp_path / "bin", "openssl", text) + ":" + ENV["PATH"]
    (tmp_path / "tmp").mkdir()
    argv = [sys.executable, BOOTSTRAP_FILE, "verify", "--key", small.public, "--dir", small.out]
    with (tmp_path / "err").open("wb") as err:
        env = {**ENV, "PATH": path, "TMPDIR": str(tmp_path / "tmp")}
        process = subprocess.Popen(
            list(map(str, argv)), stdout=subprocess.DEVNULL, stderr=err, env=env
        )
    deadline = time.monotonic() + 20
    while not (tmp_path / "here").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(number)
    code = process.wait(20)
    assert not list((tmp_path / "tmp").iterdir())
    if number == signal.SIGKILL:
        return
    assert code == 128 + number
    error, hint = (tmp_path / "err").read_text().splitlines()
    assert (error, hint[:6]) == ("error: interrupted", "hint: ")


@pytest.mark.parametrize("data", [b"[]", b"\xff\n", b'{"format_version": 1}', b"[" * 100_000])
def test_a_signed_file_that_is_no_manifest(small: SmallBundle, data: bytes) -> None:
    (small.out / layout.MANIFEST).write_bytes(data)
    (small.out / layout.SIGNATURE).write_bytes(wiring.signer(small.private).sign(data))
    assert verify(small).returncode == 9


def test_a_folder_that_is_none(small: SmallBundle, tmp_path: Path) -> None:
    key = small.public
    assert bootstrap("verify", "--key", key, "--dir", tmp_path / "no").returncode == 17


# ---- OpenSSL as hosts have it. ----

NO_LIBRARY = {"ctypes.py": "raise ImportError"}


def test_no_openssl(small: SmallBundle, tmp_path: Path) -> None:
    done = verify(small, PATH=str(tmp_path))
    assert done.returncode == 18
    assert "openssl is not on PATH" in done.stderr


@pytest.mark.parametrize(
    ("version", "answer"),
    [("LibreSSL 3.3.6", 1), ("OpenSSL 1.0.2k-fips  26 Jan 2017", 1), ("OpenSSL 9.9.9", 0)],
)
def test_an_openssl_that_cannot_or_that_lies(
    small: SmallBundle, tmp_path: Path, version: str, answer: int
) -> None:
    text = f'#!/bin/sh\n[ "$1" = version ] && echo "{version}" && exit 0\nexit {answer}\n'
    path = on_path(tmp_path / "bin", "openssl", text)
    for name, content in NO_LIBRARY.items():
        (tmp_path / name).write_text(content)
    done = verify(small, PATH=path, PYTHONPATH=str(tmp_path))
    assert done.returncode == 18
    assert " ".join(version.split()[:2]) + " cannot check" in done.stderr


def test_openssl_1_1_1_is_asked_through_its_library(small: SmallBundle, tmp_path: Path) -> None:
    """Its command has no -rawin (that came with 3.0), but its library knows Ed25519."""
    text = '#!/bin/sh\n[ "$1" = version ] && echo "OpenSSL 1.1.1k  FIPS" && exit 0\nexit 1\n'
    path = on_path(tmp_path / "bin", "openssl", text)
    done = verify(small, PATH=path)
    if "cannot check" in done.stderr:
        pytest.skip("no libcrypto.so here")
    assert done.returncode == 0, done.stderr
    flip(small.out / layout.SIGNATURE, 3)
    assert verify(small, PATH=path).returncode == 8


# ---- check ----


def test_check_says_what_is_there(small: SmallBundle, tmp_path: Path) -> None:
    done = bootstrap("check", "--dir", small.out, "--root", tmp_path / "not" / "yet")
    assert done.returncode == 0, done.stdout
    lines = done.stdout.splitlines()
    assert not [line for line in lines if line.startswith("LACKS")]
    for word in (
        "python3 3",
        "Ed25519",
        "not verified yet",
        "glibc",
        f"CPython {PYTHON}",
        " free ",
    ):
        assert [line for line in lines if word in line], word


def test_check_says_what_is_lacking(small: SmallBundle, tmp_path: Path) -> None:
    arch, other = os.uname().machine, "riscv64"

    def change(manifest: dict[str, Any]) -> None:
        manifest["target"] |= {"arch": other, "glibc": "2.99", "python": "3.99"}

    resign(small, change)
    done = bootstrap("check", "--key", small.public, "--dir", small.out, PATH=os.environ["PATH"])
    assert done.returncode == 18
    lacks = [line for line in done.stdout.splitlines() if line.startswith("LACKS")]
    assert len(lacks) == 3
    assert arch in lacks[0]
    assert "2.99" in lacks[1]
    assert "CPython 3.99: none" in lacks[2]
    assert "python-runtime" in lacks[2]
    done = bootstrap("install", "--key", small.public, "--dir", small.out, "--root", tmp_path / "r")
    assert done.returncode == 18
    assert not (tmp_path / "r").exists()


# ---- install ----


@dataclass(frozen=True)
class ToolBundle:
    """A bundle whose tool is a stand-in and whose uv is the real one."""

    out: Path
    key: Path
    digest: str

    def install(
        self, root: Path, *args: object, python: str | None = None, **env: str
    ) -> subprocess.CompletedProcess[str]:
        return bootstrap(*self.argv(root), *args, python=python, prefix=no_network(), **env)

    def argv(self, root: Path) -> tuple[object, ...]:
        return ("install", "--key", self.key, "--dir", self.out, "--root", root)

    @property
    def private(self) -> Path:
        return self.key.with_name("k.key.pem")

    def tool(self, root: Path) -> Path:
        return root / "tool" / self.digest[:12]


def no_network() -> tuple[str, ...]:
    """`unshare -n` where this host permits it."""
    for command in (("unshare", "-n"), ("unshare", "-r", "-n")):
        if (
            shutil.which("unshare")
            and not subprocess.run([*command, "true"], capture_output=True).returncode
        ):
            return command
    return ()


def tool_bundle(
    folder: Path, base: Manifest, version: str, *, runtime: Path | None = None, broken: bool = False
) -> ToolBundle:
    binary = Path(uv.find_uv_bin()).read_bytes()
    wheels = folder / "wheels"
    tool = make_wheel(
        wheels,
        "airbundle",
        version,
        {"stand_in.py": TOOL.replace("VERSION", version).encode()},
        {"airbundle": "stand_in:main" if not broken else "nowhere:main"},
        requires=("toy-dependency", "uv"),
    )
    carrier = make_wheel(wheels, "uv", "1.0", {"uv-1.0.data/scripts/uv": binary})
    dependency = make_wheel(wheels, "toy-dependency", "2.0", {"toy_dependency.py": b""})
    lines = [
        f"{path.name.split('-')[0].replace('_', '-')}=={path.name.split('-')[1]}"
        f" --hash=sha256:{digest_file(path).sha256}\n"
        for path in (tool, dependency, carrier)
    ]
    requirements = folder / "tool.txt"
    requirements.write_text("".join(lines))
    engine = make_wheel(wheels, "big-engine", "1.0", {"big.py": b"x" * 100_000})
    listed = {layout.TOOL_REQUIREMENTS: (requirements, "requirements")}
    listed |= {layout.wheel_path(p.name): (p, "wheel") for p in (tool, carrier, dependency, engine)}
    if runtime:
        listed[layout.extra_path("파이썬.tar.gz")] = (runtime, "file")
    packer = Packer(
        out=folder / "묶음 bundle",
        limit=30_000_000,
        form=wiring.volume_format(),
        progress=SilentProgress(),
        bundle="toolbox",
    )
    fetched = [
        Fetched(path, kind, "", Blob(file, digest_file(file, packer.block_size)))
        for path, (file, kind) in listed.items()
    ]
    with packer.alone():
        packed = packer.pack(fetched)
        volumes, entries = packed.volumes, packed.entries
        loose = {layout.BOOTSTRAP: BOOTSTRAP_FILE.read_bytes(), layout.READ_ME: b"read me\n"}
        data = json.loads(to_bytes(base)) | {
            "name": "toolbox",
            "block_size": packer.block_size,
            "tool": {
                "version": version,
                "requirements": layout.TOOL_REQUIREMENTS,
                "uv_wheel": layout.wheel_path(carrier.name),
            },
            "volumes": [json.loads(to_bytes(item)) for item in volumes],
            "entries": [json.loads(to_bytes(item)) for item in entries],
            "loose": [json.loads(to_bytes(loose_file(*item))) for item in sorted(loose.items())],
            "files": [{"path": layout.extra_path("파이썬.tar.gz"), "role": "python-runtime"}]
            if runtime
            else [],
        }
        keys = folder / "k.key.pem", folder / "k.pub.pem"
        wiring.generate_keys(*keys)
        digest = packer.finish(
            Manifest.model_validate_json(json.dumps(data)), loose, wiring.signer(keys[0])
        )
    shutil.rmtree(wheels)
    return ToolBundle(packer.out, keys[1], digest)


@pytest.fixture(scope="module")
def base(session_bundle: SmallBundle) -> Manifest:
    data = (session_bundle.out / layout.MANIFEST).read_bytes()
    return Manifest.model_validate_json(data)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory, base: Manifest) -> ToolBundle:
    return tool_bundle(tmp_path_factory.mktemp("first"), base, "1.0")


@pytest.fixture(scope="module")
def second(tmp_path_factory: pytest.TempPathFactory, base: Manifest) -> ToolBundle:
    return tool_bundle(tmp_path_factory.mktemp("second"), base, "2.0")


def launch(root: Path, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [root / "bin" / "airbundle", *args],
        capture_output=True,
        text=True,
        check=True,
        env={**ENV, "PYTHONPATH": "/nowhere", "PYTHONHOME": "/nowhere", **env},
    )


def version(root: Path) -> str:
    return launch(root, "--version").stdout.split()[1]


def test_install_makes_a_tool_that_works(first: ToolBundle, tmp_path: Path) -> None:
    root = tmp_path / "루트 it's $HOME"
    hostile = {
        "UV_INDEX_URL": "http://127.0.0.1:9/", "UV_PYTHON": "2.7", "PIP_INDEX_URL": "http://x/",
        "UV_NO_FIND_LINKS": "1", "UV_CACHE_DIR": str(tmp_path / "cache"), "UV_LINK_MODE": "symlink",
        "https_proxy": "http://127.0.0.1:9", "ALL_PROXY": "http://127.0.0.1:9",
        "HOME": str(tmp_path / "home"), "PYTHONPATH": str(tmp_path),
    }  # fmt: skip
    (tmp_path / "home").mkdir()
    done = first.install(root, **hostile)
    assert done.returncode == 0, done.stderr
    for word in ("signature OK", "설치 완료", "import", "accept", "report"):
        assert word in done.stdout
    args, seen, prefix, _ = json.loads(launch(root, "import", "a b", '"').stdout)
    assert (args, seen) == (["import", "a b", '"'], str(root))
    assert Path(prefix) == first.tool(root) / "venv"
    assert json.loads(launch(root, AIRBUNDLE_ROOT="/else").stdout)[1] == "/else"
    assert sorted(path.name for path in root.iterdir()) == ["bin", "tool"]
    assert sorted(path.name for path in (root / "tool").iterdir()) == [".lock", first.digest[:12]]
    assert not list((tmp_path / "home").rglob("*"))
    assert not (tmp_path / "cache").exists()
    command = done.stdout.splitlines()[-5].strip()
    again = subprocess.run(command, shell=True, capture_output=True, text=True, check=True, env=ENV)
    assert json.loads(again.stdout)[0][0] == "import"


def test_install_twice_changes_nothing(first: ToolBundle, tmp_path: Path) -> None:
    assert first.install(tmp_path / "r").returncode == 0
    marker = first.tool(tmp_path / "r") / "complete"
    before = marker.stat().st_mtime_ns
    assert first.install(tmp_path / "r").returncode == 0
    assert marker.stat().st_mtime_ns == before


@pytest.mark.slow
def test_killed_at_any_moment_a_rerun_completes(
    first: ToolBundle, second: ToolBundle, tmp_path: Path
) -> None:
    root = tmp_path / "r"
    assert first.install(root).returncode == 0
    tool = second.tool(root)
    moments = [
        tool.with_name(tool.name + ".partial") / "wheels",
        tool.with_name(tool.name + ".partial") / "uv",
        tool / "venv" / "bin",
        tool / "venv" / "bin" / "airbundle",
    ]
    for moment in moments:
        argv = [sys.executable, str(BOOTSTRAP_FILE), *map(str, second.argv(root))]
        process = subprocess.Popen(
            argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENV
        )
        deadline = time.monotonic() + 20
        while not moment.exists():
            assert process.poll() is None, f"{moment} never came"
            assert time.monotonic() < deadline
            time.sleep(0.001)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert version(root) == "1.0", "the older tool stays usable"
    assert second.install(root).returncode == 0
    assert version(root) == "2.0"
    assert first.install(root).returncode == 0, "and back"
    assert version(root) == "1.0"


@pytest.mark.slow
def test_a_failing_install_leaves_the_older_tool(
    first: ToolBundle, base: Manifest, tmp_path: Path
) -> None:
    root = tmp_path / "r"
    assert first.install(root).returncode == 0
    done = tool_bundle(tmp_path, base, "3.0", broken=True).install(root)
    assert done.returncode == 12
    assert "No module named 'nowhere'" in done.stderr
    assert version(root) == "1.0"


@pytest.mark.slow
def test_install_reads_only_what_it_needs_and_checks_it(first: ToolBundle, tmp_path: Path) -> None:
    copy = ToolBundle(tmp_path / "b", first.key, first.digest)
    shutil.copytree(first.out, copy.out)
    entries = json.loads((copy.out / layout.MANIFEST).read_bytes())["entries"]
    parts = {entry["path"]: entry["parts"] for entry in entries}
    flip(copy.out / parts["wheels/big_engine-1.0-py3-none-any.whl"][0]["volume"],
         parts["wheels/big_engine-1.0-py3-none-any.whl"][0]["offset"] + 9)  # fmt: skip
    assert copy.install(tmp_path / "r1").returncode == 0
    part = parts["wheels/airbundle-1.0-py3-none-any.whl"][0]
    flip(copy.out / part["volume"], part["offset"] + 9)
    done = copy.install(tmp_path / "r2")
    assert done.returncode == 7
    assert f"{part['volume']}: {part['member']}: changed" in done.stderr
    flip(copy.out / part["volume"], part["offset"] + 9)
    assert copy.install(tmp_path / "r2").returncode == 0
    wheel = "wheels/uv-1.0-py3-none-any.whl"
    assert len(parts[wheel]) > 1
    last = parts[wheel][-1]["volume"]
    (copy.out / last).unlink()
    done = copy.install(tmp_path / "r3")
    assert done.returncode == 16
    assert last in done.stderr


@pytest.mark.slow
def test_where_a_policy_is_in_force_the_airbundle_there_decides(
    small: SmallBundle, tmp_path: Path
) -> None:
    """Roles, approvals and revocations are not this script's: it asks who knows them."""
    root, policy = tmp_path / "root", tmp_path / "policy.yaml"
    words = ("install", "--key", small.public, "--dir", small.out, "--root", root)
    policy.write_text(f"keys: [{{role: builder, file: {small.public}}}]\n")
    assert run(["trust", "use", str(policy), "--root", str(root)]) == 0
    assert "was not imported" in bootstrap(*words).stderr
    on_path(root / "bin", "airbundle", f'#!/bin/sh\nexec {sys.executable} -m bundler "$@"\n')
    assert bootstrap(*words).returncode == 8
    assert run(["import", str(small.out), "--root", str(root), "--quiet"]) == 0
    # It may go on; this bundle has only a stand-in for uv.
    assert bootstrap(*words).returncode not in (0, 8)
    digest = digest_file(small.out / layout.MANIFEST).sha256
    policy.write_text(policy.read_text() + f"revoked: [{{what: {digest}, reason: leak}}]\n")
    assert run(["trust", "use", str(policy), "--root", str(root), "--replace"]) == 0
    done = bootstrap(*words)
    assert (done.returncode, "revoked: leak" in done.stderr) == (8, True)


def test_a_root_that_cannot_be_written(first: ToolBundle, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    done = first.install(tmp_path / "file" / "r")
    assert done.returncode == 20
    assert str(tmp_path / "file") in done.stderr


@pytest.mark.slow
def test_install_with_a_carried_python(base: Manifest, tmp_path: Path) -> None:
    """By the oldest python3 that is here, in the C locale, with no other Python on PATH."""
    archive = python_archive(tmp_path / "python.tar.gz")
    sha256 = digest_file(archive).sha256
    bundle = tool_bundle(tmp_path, base, "1.0", runtime=archive)
    oldest = next(filter(None, map(interpreter, range(6, 15))))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "openssl").symlink_to(str(shutil.which("openssl")))
    root = tmp_path / "r"
    done = bootstrap(*bundle.argv(root), python=str(oldest), PATH=str(tmp_path / "bin"), LC_ALL="C")
    assert done.returncode == 0, done.stderr
    home = root / "runtime" / sha256[:12]
    assert (home / "python" / "share" / "문서.txt").read_bytes() == b"ok\n"
    assert (bundle.tool(root) / "venv" / "bin" / "python").resolve().is_relative_to(home)
    *_, found = json.loads(launch(root, PATH="").stdout)
    assert tuple(found) == sys.version_info[:2]


@pytest.mark.parametrize(
    "members",
    [
        [("../evil", "file", b"x")],
        [("/tmp/evil", "file", b"x")],
        [("python/../../evil", "file", b"x")],
        [("python/out", "link", b"../../.."), ("python/out/evil", "file", b"x")],
        [("python/out", "link", b"/etc")],
        [("a/b/up", "link", b"../.."), ("a/e", "link", b"b/up/..")],
        [("python/out", "hard", b"../../evil")],
        [("python/pipe", "fifo", b"")],
        [("python/bin/python3", "file", b"1"), ("python/bin/python3", "file", b"2")],
        [("python/readme", "file", b"no python3")],
    ],
)
def test_an_archive_that_reaches_outside(
    members: list[tuple[str, str, bytes]], base: Manifest, tmp_path: Path
) -> None:
    """It is unpacked by the script's own function, which must refuse by itself."""
    kinds = {"link": tarfile.SYMTYPE, "hard": tarfile.LNKTYPE, "fifo": tarfile.FIFOTYPE}
    archive = tmp_path / "evil.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for name, kind, data in members:
            item = tarfile.TarInfo(name)
            if kind == "file":
                item.size = len(data)
                tar.addfile(item, io.BytesIO(data))
            else:
                item.type, item.linkname = kinds[kind], data.decode()
                tar.addfile(item)
    code = (
        "import sys, os; sys.path.insert(0, sys.argv[1]); import airbundle_bootstrap as b\n"
        "class A: dir = '/'\n"
        "data = open(sys.argv[2], 'rb').read(); os.makedirs(sys.argv[4])\n"
        "entry = dict(path='x.tar.gz', sha256=sys.argv[3], size=len(data), parts=[])\n"
        "os.link(sys.argv[2], sys.argv[4] + '/runtime.tar')\n"
        "try: b.make_runtime(A, None, entry, sys.argv[5], sys.argv[4])\n"
        "except (b.Error, OSError) as e: print('REFUSED', e)\n"
    )
    argv = [
        BOOTSTRAP_FILE.parent,
        archive,
        digest_file(archive).sha256,
        tmp_path / "w",
        tmp_path / "r",
    ]
    oldest = next(filter(None, map(interpreter, range(6, 15))))
    done = subprocess.run(
        [oldest, "-B", "-c", code, *argv], capture_output=True, text=True, env=ENV
    )
    assert done.stdout.startswith("REFUSED") or "\nREFUSED" in done.stdout, done.stderr
    outside = {p.name for p in tmp_path.iterdir()} - {"evil.tar.gz", "w", "r", "cache"}
    assert not outside
    assert not [p for p in (tmp_path / "r" / "runtime").iterdir() if p.suffix != ".partial"]


def test_the_digest_in_the_docstring_is_checkable(small: SmallBundle) -> None:
    """The commands that the script's docstring gives a reviewer."""
    lines = (small.out / layout.MANIFEST).read_text(encoding="utf-8").splitlines()
    at = next(i for i, line in enumerate(lines) if '"name": "airbundle-bootstrap.py"' in line)
    digest = hashlib.sha256((small.out / layout.BOOTSTRAP).read_bytes()).hexdigest()
    assert digest in lines[at + 1]
