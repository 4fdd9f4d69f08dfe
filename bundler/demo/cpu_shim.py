"""A wheel that lets the index's torchvision, linked to CUDA, import beside a CPU torch.

Its compiled half cannot load there, and then its import fails on `operator torchvision::nms does not
exist`. The wheel declares the two operators (never called for text) as soon as torchvision is
imported; where the compiled half does load, it does nothing. A `.pth` file arms it in every process of
the environment, the engine's workers included, without importing torch.
"""

from __future__ import annotations

import base64
import io
import zipfile
from pathlib import Path

from bundler.format.digests import sha256_hex

_NAME, _VERSION = "airbundle_cpu_shim", "1"
_MODULE = '''\
"""Declares torchvision's operators when its compiled half cannot load (CUDA build, CPU torch)."""

import sys

_LIBRARY = None  # the registration lasts as long as this object


class _OnImport:
    """A finder that finds nothing: it only acts before torchvision registers its operators."""

    def find_spec(self, name, path=None, target=None):
        if name == "torchvision._meta_registrations":
            _declare()
        return None


def _declare():
    global _LIBRARY
    from torchvision.extension import _has_ops

    if _LIBRARY is None and not _has_ops():
        import torch

        _LIBRARY = torch.library.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            _LIBRARY.define(name + "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


sys.meta_path.insert(0, _OnImport())
'''
_METADATA = f"""\
Metadata-Version: 2.1
Name: airbundle-cpu-shim
Version: {_VERSION}
Summary: Lets a CUDA-linked torchvision import beside a CPU torch
License: Apache-2.0
"""
_WHEEL = "Wheel-Version: 1.0\nGenerator: airbundle\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def write_cpu_shim_wheel(folder: Path) -> Path:
    """Write the wheel into `folder` and give its path. The same bytes every time."""
    info = f"{_NAME}-{_VERSION}.dist-info"
    files = {
        f"{_NAME}.py": _MODULE,
        f"{_NAME}.pth": f"import {_NAME}\n",
        f"{info}/METADATA": _METADATA,
        f"{info}/WHEEL": _WHEEL,
    }
    lines = [f"{name},sha256={_digest(text)},{len(text)}\n" for name, text in files.items()]
    files[f"{info}/RECORD"] = "".join([*lines, f"{info}/RECORD,,\n"])
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, text in files.items():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.create_system = 3
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, text)
    path = folder / f"{_NAME}-{_VERSION}-py3-none-any.whl"
    path.write_bytes(buffer.getvalue())
    return path


def _digest(text: str) -> str:
    raw = bytes.fromhex(sha256_hex(text.encode()))
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
