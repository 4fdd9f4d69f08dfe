"""airbundle's own wheel, made from the running package, so that the tool crosses the gap too.

It is made from the files that run, however they were installed (index, checkout, editable), with
fixed times and sorted names: the same code gives the same bytes. Format: PEP 427.
"""

from __future__ import annotations

import base64
import importlib.metadata
import io
import sysconfig
import zipfile
from pathlib import Path

import bundler
from bundler.format.digests import sha256_hex
from bundler.format.manual import FOLDER, manual_files, manual_folder
from bundler.format.profiles import shipped_folder

NAME = "airbundle"
# An editor's leftovers must not change the wheel.
_CARRIED = (".py", ".sh")
_MAN = "share/man/man1/airbundle.1"
_EPOCH = (1980, 1, 1, 0, 0, 0)
_WHEEL = b"Wheel-Version: 1.0\nGenerator: airbundle\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def tool_version() -> str:
    """The running version."""
    return importlib.metadata.version(NAME)


def write_tool_wheel(folder: Path) -> Path:
    """Write the wheel into `folder` and give its path."""
    version = tool_version()
    info = f"{NAME}-{version}.dist-info"
    package = Path(bundler.__file__).parent
    files = {
        f"{package.name}/{path.relative_to(package).as_posix()}": path.read_bytes()
        for path in package.rglob("*")
        if path.is_file()
        and "__pycache__" not in path.parts
        and path.suffix not in (".pyc", ".yaml")
        and path.relative_to(package).parts[0] != FOLDER
    }
    for path in shipped_folder().glob("*.yaml"):
        files[f"{package.name}/manifests/profiles/{path.name}"] = path.read_bytes()
    manual = manual_folder()
    for name in manual_files(manual):
        files[f"{package.name}/{FOLDER}/{name}"] = (manual / name).read_bytes()
    page = _man_page()
    if page is not None:
        files[f"{NAME}-{version}.data/data/{_MAN}"] = page.read_bytes()
    distribution = importlib.metadata.distribution(NAME)
    for name in ("METADATA", "entry_points.txt"):
        files[f"{info}/{name}"] = (distribution.read_text(name) or "").encode()
    files[f"{info}/WHEEL"] = _WHEEL
    record = "".join(
        f"{name},{_record_hash(data)},{len(data)}\n" for name, data in sorted(files.items())
    )
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    path = folder / f"{NAME}-{version}-py3-none-any.whl"
    path.write_bytes(_stored_zip(files))
    return path


def _man_page() -> Path | None:
    """The manual page: of a checkout, or where an installation puts it; None when it was left out."""
    checkout = Path(bundler.__file__).parents[1] / "docs" / "man" / "airbundle.1"
    installed = Path(sysconfig.get_path("data")) / _MAN
    return next((path for path in (checkout, installed) if path.is_file()), None)


def _record_hash(data: bytes) -> str:
    digest = base64.urlsafe_b64encode(bytes.fromhex(sha256_hex(data))).rstrip(b"=").decode()
    return f"sha256={digest}"


def _stored_zip(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, data in sorted(files.items()):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.create_system = 3
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, data)
    return buffer.getvalue()
