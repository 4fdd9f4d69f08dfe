"""A bundle -> the media that carry it: planned first, written, and read back from the medium itself.

Every medium gets manifest, signature, checksums, bootstrap and READ-ME, so that each can be checked and
imported alone. What is on which medium stands in a shipping list beside the bundle; a later run goes on
from it.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bundler.build.mediumwriter import MediumWriter, partial_of, put_small
from bundler.domain.manifest import VerifiedManifest, VolumeEntry
from bundler.domain.shipping import Medium, ShippedFile, ShippedMedium, ShippingList
from bundler.domain.sizes import human
from bundler.errors import (
    MissingVolumeError,
    SpaceError,
    StateError,
    disk_errors,
)
from bundler.format import layout
from bundler.format.atomic import write_atomically
from bundler.format.codec import from_bytes, to_bytes
from bundler.format.digests import sha256_file
from bundler.format.places import Place, unsealed_name
from bundler.format.rehearsal import instead, rehearsing
from bundler.format.reviewpack import pack_files
from bundler.format.sealing import SUFFIX, VolumeKey
from bundler.ports import Clock, MediumProbe, Progress, VolumeFormat

# What the file system itself may take for directories and its tables.
_SPARE = 2**20
_FILE_LIMITS = {"vfat": 2**32 - 1, "msdos": 2**32 - 1}


@dataclass(frozen=True)
class Load:
    """A medium, what it is to carry, and what it carries already."""

    folder: Path
    medium: Medium
    volumes: tuple[VolumeEntry, ...]
    there: frozenset[str]


@dataclass(frozen=True)
class Copier:
    """Everything that copying needs. `verified` is the bundle in `source`."""

    source: Path
    verified: VerifiedManifest
    form: VolumeFormat
    probe: MediumProbe
    clock: Clock
    progress: Progress
    seal: VolumeKey | None = None

    @property
    def list_file(self) -> Path:
        """Where the shipping list of this bundle lies."""
        return self.source.with_name(f"{self.source.name}.shipping.json")

    def copy(self, folders: Sequence[Path], *, part: bool = False) -> ShippingList:
        """Bring what is on no medium yet onto these.

        Args:
            folders: the media, in the order in which they are filled.
            part: some volumes may stay for media of a later run.

        Raises:
            SpaceError: the media are too small; nothing was written.
            MissingVolumeError: the bundle is not whole.
            IntegrityError: a volume is damaged here, or a medium does not give back what it was given.
        """
        shipped = self._shipped()
        loads = self.plan(folders, shipped, part=part)
        total = sum(v.size for load in loads for v in load.volumes)
        if rehearsing():
            for load in loads:
                for volume in load.volumes:
                    if volume.name not in load.there:
                        instead("write", self._place(load.folder, volume).path, volume.size)
                self._beside(load)
            instead("write", self.list_file)
            return shipped
        # Each volume is written and read back.
        writer = MediumWriter(self.source, self.verified.manifest, self.form)
        with self.progress.task("copy", 2 * total) as task:
            for load in loads:
                self._beside(load)
                done: list[ShippedFile] = []
                for volume in load.volumes:
                    place = self._place(load.folder, volume)
                    there = volume.name in load.there
                    done.append(writer.carry(volume, place, task, there=there))
                    shipped = self._record(shipped, load, done)
                if self.seal is not None:
                    self._sums(load, done)
        return shipped

    def plan(
        self, folders: Sequence[Path], shipped: ShippingList, *, part: bool = False
    ) -> tuple[Load, ...]:
        """Which volume goes where; the first medium with room takes it.

        Raises:
            SpaceError: not all fit, and `part` is not given, or not even one does.
            StateError: a folder is not there, or two are on one medium.
        """
        media = [self._medium(folder) for folder in folders]
        if len({one.identity for one in media}) < len(media):
            raise StateError("two of the folders are on the same medium", hint="Name each once.")
        here = {one.identity for one in media}
        # What another medium carries stays there; these media are looked at again.
        elsewhere = {
            file.name
            for one in shipped.media
            if one.medium.identity not in here
            for file in one.volumes
        }
        elsewhere = {unsealed_name(name) for name in elsewhere}
        waiting = [v for v in self.verified.manifest.volumes if v.name not in elsewhere]
        _check_whole(self.source, waiting)
        loads: list[Load] = []
        rooms: list[str] = []
        for folder, medium in zip(folders, media, strict=True):
            load, waiting, room = self._fill(folder, medium, waiting)
            loads.append(load)
            rooms.append(f"{folder} has {human(max(room, 0))} left")
        if waiting and (not part or not any(load.volumes for load in loads)):
            need = human(sum(volume.size for volume in waiting))
            hint = "Give more or larger media with --to" + (
                "." if part else ", or --part to fill these and go on with others later."
            )
            names = ", ".join(volume.name for volume in waiting)
            raise SpaceError(f"{need} do not fit ({names}): {'; '.join(rooms)}", hint=hint)
        return tuple(loads)

    def _fill(
        self, folder: Path, medium: Medium, waiting: Sequence[VolumeEntry]
    ) -> tuple[Load, list[VolumeEntry], int]:
        limit = _FILE_LIMITS.get(medium.file_system)
        with disk_errors("reading", folder):
            room = shutil.disk_usage(folder).free - _SPARE
            sizes = {p.name: p.stat().st_size for p in folder.iterdir() if p.is_file()}
        places = {v.name: self._place(folder, v) for v in waiting}
        stored = {v.name: places[v.name].stored_size(v.size) for v in waiting}
        there = frozenset(
            v.name for v in waiting if sizes.get(places[v.name].path.name) == stored[v.name]
        )
        open_ones = [v.name for v in waiting if places[v.name].key and v.name in sizes]
        if open_ones:
            raise StateError(
                f"{folder}: {', '.join(open_ones)} lie there unsealed",
                hint="Remove them, or format the medium: what was written open can be read back.",
            )
        # A copy that was cut short is written anew, so its room counts as free.
        room += sum(sizes.get(partial_of(places[v.name].path).name, 0) for v in waiting)
        room -= sum(max(0, size - sizes.get(name, 0)) for name, size in self._small().items())
        taken: list[VolumeEntry] = []
        left: list[VolumeEntry] = []
        for volume in waiting:
            need = 0 if volume.name in there else stored[volume.name]
            if limit is not None and stored[volume.name] > limit:
                raise SpaceError(
                    f"{volume.name}: {human(stored[volume.name])} are more than a file on {folder}"
                    f" ({medium.file_system}) can have",
                    hint="Format the medium as exFAT, or build with volumes.medium: fat32"
                    " (and volumes.sealable: true where they are sealed).",
                )
            if need <= room:
                taken.append(volume)
                room -= need
            else:
                left.append(volume)
        return Load(folder, medium, tuple(taken), there), left, room

    def _medium(self, folder: Path) -> Medium:
        if not folder.is_dir():
            raise StateError(f"{folder}: no such folder", hint="Name where the medium is mounted.")
        if folder.resolve() == self.source.resolve():
            raise StateError(f"{folder}: is the bundle itself", hint="Name a medium.")
        return self.probe.medium(folder)

    def _small(self) -> Mapping[str, int]:
        names = [layout.MANIFEST, layout.SIGNATURE, layout.CHECKSUMS]
        names += [loose.name for loose in self.verified.manifest.loose]
        # What keys say of the bundle travels with it.
        names += [path.name for path in self.source.iterdir() if layout.is_statement(path.name)]
        # And what the reviewer reads: whole, or a check there would miss a page. Beside sealed volumes it
        # would tell of their contents.
        names += pack_files(self.source) if self.seal is None else []
        places = {name: self.source / name for name in names}
        return {name: path.stat().st_size for name, path in places.items() if path.is_file()}

    def _beside(self, load: Load) -> None:
        """The small files; the manifest last, since it makes a folder a bundle."""
        other = load.folder / layout.MANIFEST
        mine = (self.source / layout.MANIFEST).read_bytes()
        with disk_errors("reading", other):
            if other.is_file() and other.read_bytes() != mine:
                raise StateError(
                    f"{load.folder}: holds another bundle",
                    hint="Use an empty folder of the medium, or remove what is there.",
                )
        for name in sorted(self._small(), key=lambda name: name == layout.MANIFEST):
            data = (self.source / name).read_bytes()
            target = load.folder / name
            put_small(target, data)

    def _place(self, folder: Path, volume: VolumeEntry) -> Place:
        """Where a volume goes on a medium; what a bare host starts from stays open."""
        if self.seal is None or volume.open:
            return Place(folder / volume.name, volume.name)
        return Place(folder / (volume.name + SUFFIX), volume.name, self.seal)

    def _sums(self, load: Load, done: Sequence[ShippedFile]) -> None:
        """Checksums of a medium with sealed volumes: of what lies on it, for its way through a gate."""
        names = [name for name in self._small() if name != layout.CHECKSUMS]
        sums = {name: sha256_file(load.folder / name) for name in names
                if not layout.is_statement(name)}  # fmt: skip
        sums |= {file.name: file.sha256 for file in done}
        text = "".join(f"{sums[name]}  {name}\n" for name in sorted(sums))
        put_small(load.folder / layout.CHECKSUMS, text.encode())

    def _shipped(self) -> ShippingList:
        """The list of an earlier run, if it is of this very bundle."""
        path = self.list_file
        if path.is_file():
            with disk_errors("reading", path):
                known = from_bytes(ShippingList, path.read_bytes(), str(path))
            if known.manifest_sha256 == self.verified.digest:
                return known
        small = {name: self.source / name for name in sorted(self._small())}
        if self.seal is not None:
            # Each medium's own, with the sums of what is sealed there.
            small.pop(layout.CHECKSUMS, None)
        return ShippingList(
            bundle=self.verified.bundle_id,
            manifest_sha256=self.verified.digest,
            key_id=self.verified.key_id,
            beside=tuple(
                ShippedFile(name=name, size=path.stat().st_size, sha256=sha256_file(path))
                for name, path in small.items()
            ),
            to_come=tuple(volume.name for volume in self.verified.manifest.volumes),
        )

    def _record(
        self, shipped: ShippingList, load: Load, done: Sequence[ShippedFile]
    ) -> ShippingList:
        others = [one for one in shipped.media if one.medium.identity != load.medium.identity]
        media = (
            *others,
            ShippedMedium(medium=load.medium, written=self.clock.now(), volumes=tuple(done)),
        )
        carried = {unsealed_name(file.name) for one in media for file in one.volumes}
        shipped = shipped.model_copy(
            update={
                "media": media,
                "to_come": tuple(
                    v.name for v in self.verified.manifest.volumes if v.name not in carried
                ),
            }
        )
        with disk_errors("writing", self.list_file):
            write_atomically(self.list_file, to_bytes(shipped))
        return shipped


def _check_whole(source: Path, volumes: Sequence[VolumeEntry]) -> None:
    missing = [volume.name for volume in volumes if not (source / volume.name).is_file()]
    if missing:
        raise MissingVolumeError(f"{source}: missing: {', '.join(missing)}")
