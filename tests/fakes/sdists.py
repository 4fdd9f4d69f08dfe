"""Hand-made source distributions that build themselves: nothing is fetched for their build."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

_BACKEND = """
import zipfile
from pathlib import Path
NAME, VERSION, TAG = {name!r}, {version!r}, {tag!r}
def _metadata(): return "Metadata-Version: 2.1\\nName: " + NAME + "\\nVersion: " + VERSION + "\\n"
def build_wheel(folder, config_settings=None, metadata_directory=None):
    if {broken!r}: raise SystemExit("this compiler is not there")
    info = NAME + "-" + VERSION + ".dist-info/"
    filename = NAME + "-" + VERSION + "-" + TAG + ".whl"
    with zipfile.ZipFile(Path(folder, filename), "w") as archive:
        for name, text in ((NAME + ".py", "X = 1\\n"), (info + "METADATA", _metadata()),
                           (info + "WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: " + TAG + "\\n"),
                           (info + "RECORD", "")):
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), text)
    return filename
"""


def make_sdist(
    folder: Path, name: str, version: str, *, tag: str = "py3-none-any", broken: bool = False
) -> Path:
    files = {
        "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "own"\nbackend-path = ["."]\n'
        f'[project]\nname = "{name}"\nversion = "{version}"\n',
        "own.py": _BACKEND.format(name=name, version=version, tag=tag, broken=broken),
        "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for place, text in files.items():
            entry = tarfile.TarInfo(f"{name}-{version}/{place}")
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return path
