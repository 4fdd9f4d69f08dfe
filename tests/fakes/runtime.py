"""A carried Python runtime for tests: the running interpreter as an install_only archive."""

from __future__ import annotations

import io
import sys
import tarfile
from pathlib import Path

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


def python_archive(path: Path) -> Path:
    """The running interpreter, laid out as an install_only archive."""
    base, name = Path(sys.base_prefix), f"python{PYTHON}"
    without = {"test", "tests", "site-packages", "dist-packages", "__pycache__", "tkinter",
               "idlelib", "lib2to3", "ensurepip", "turtledemo"}  # fmt: skip

    def keep(item: tarfile.TarInfo) -> tarfile.TarInfo | None:
        own = set(Path(item.name).parts[3:])
        return None if own & without or any(x.startswith("config-") for x in own) else item

    real = (base / "bin" / name).resolve()
    with tarfile.open(path, "w:gz", compresslevel=1) as tar:
        tar.add(real, f"python/bin/{name}")
        link = tarfile.TarInfo("python/bin/python3")
        link.type, link.linkname = tarfile.SYMTYPE, name
        tar.addfile(link)
        tar.add(base / "lib" / name, f"python/lib/{name}", filter=keep)
        for library in (base / "lib").glob(f"libpython{PYTHON}.so*"):
            tar.add(library, f"python/lib/{library.name}")
        odd = tarfile.TarInfo("python/share/문서.txt")
        odd.size = 3
        tar.addfile(odd, io.BytesIO(b"ok\n"))
    return path
