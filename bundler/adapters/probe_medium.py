"""MediumProbe: what Linux knows of a mounted stick, read from /proc and /sys without root."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from bundler.domain.shipping import Medium

_PARENTS = 12  # from a partition up to its USB device


@dataclass(frozen=True)
class LinuxMedia:
    """Reads below `root`; another one than `/` is a test's."""

    root: Path = Path("/")

    def medium(self, folder: Path) -> Medium:
        """The medium that holds a folder. Never raises: what cannot be read is empty."""
        mount = self._mount(folder)
        if mount is None:
            return Medium(mount=str(folder))
        number, place, kind, source = mount
        device = self._device(number)
        return Medium(
            mount=place, device=source, file_system=kind,
            label=self._named(number, "by-label"), uuid=self._named(number, "by-uuid"),
            serial=_first(device, "serial"), model=_first(device, "model") or _first(device, "product"),
        )  # fmt: skip

    def _mount(self, folder: Path) -> tuple[str, str, str, str] | None:
        """Device number, mount point, type and source (proc_pid_mountinfo(5)) of the deepest mount."""
        path = str(folder.resolve())
        try:
            lines = (self.root / "proc/self/mountinfo").read_text(errors="replace").splitlines()
        except OSError:
            return None
        best: tuple[str, str, str, str] | None = None
        for line in lines:
            fields, _, rest = line.partition(" - ")
            words, after = fields.split(), rest.split()
            if len(words) < 5 or len(after) < 2:
                continue
            place = _unescaped(words[4])
            inside = path == place or path.startswith(place.rstrip("/") + "/")
            # The last of equal ones lies on top.
            if inside and (best is None or len(place) >= len(best[1])):
                best = (words[2], place, after[0], _unescaped(after[1]))
        return best

    def _device(self, number: str) -> list[Path]:
        """The device's folder in /sys and those above it, the nearest first."""
        try:
            place = (self.root / "sys/dev/block" / number).resolve(strict=True)
        except OSError:
            return []
        chain = [place, *place.parents][:_PARENTS]
        return [folder for step in chain for folder in (step / "device", step)]

    def _named(self, number: str, kind: str) -> str:
        """The name under which udev links to a device, such as its label."""
        folder = self.root / "dev/disk" / kind
        try:
            links = sorted(folder.iterdir())
        except OSError:
            return ""
        for link in links:
            try:
                status = link.stat()
            except OSError:
                continue
            if f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}" == number:
                return re.sub(r"\\x([0-9a-f]{2})", lambda m: chr(int(m[1], 16)), link.name)
        return ""


def _first(folders: list[Path], name: str) -> str:
    for folder in folders:
        try:
            text = (folder / name).read_text(errors="replace").strip()
        except OSError:
            continue
        if text:
            return text
    return ""


def _unescaped(text: str) -> str:
    r"""`\040` is a space, as the kernel writes it."""
    return re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), text)
