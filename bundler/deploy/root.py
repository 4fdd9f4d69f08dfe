"""Every file and folder name in an installation root, in one place.

<root>/bundles/<bundle id>/   manifest, signature, the key that vouched, which parts are in
<root>/trust/                 the site's policy, statements of keys, the newest bundle of each name
<root>/store/ab/<sha256>      imported files, complete and checked
<root>/store/partial/         files that are being imported
<root>/releases/<bundle id>/  venv, models, release.json (written last)
<root>/releases/<bundle id>+<digest>/  variant.json (written last): other settings, the files of <bundle id>
<root>/releases/.again/       releases that are being made anew beside the ones in use
<root>/releases/.gone/        releases that are being removed
<root>/current                symbolic link to the release that `start` uses
<root>/previous               symbolic link to the release that was in use before
<root>/upgrade.json           an upgrade that is under way
<root>/run/<service>.json     started processes
<root>/logs/<service>.log     what the engine said
<root>/acceptance/<time>/     receipts and reports
<root>/golden/<digest>.json   what models said where they were known to be right
<root>/acceptance/<time>-find-max/  evidence of a search for the highest number of users
<root>/profiles/*.yaml        the site's own known figures
<root>/secrets/               API keys of services that listen on more than loopback
<root>/audit.jsonl            who did what and when; audit.head: where it ends
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bundler.errors import StateError, disk_errors
from bundler.format import layout
from bundler.format.atomic import write_atomically
from bundler.format.rehearsal import rehearsing

RELEASE_FILE = "release.json"
VARIANT_FILE = "variant.json"
ORDER_FILE = "order"


class Root:
    """Paths below an installation root."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._held = False

    def bundle(self, bundle_id: str) -> Path:
        """Folder of an imported bundle's records."""
        return self.path / "bundles" / bundle_id

    def bundles(self) -> list[Path]:
        """Record folders of every bundle whose import has begun, in the order of their imports."""
        folders = [path.parent for path in self.path.glob(f"bundles/*/{layout.MANIFEST}")]
        return sorted(folders, key=lambda folder: (_order(folder), folder.name))

    def next_order(self) -> bytes:
        """What to write into the order file of a bundle that comes in now; no clock is trusted."""
        return str(1 + max(map(_order, self.bundles()), default=0)).encode()

    @property
    def trust(self) -> Path:
        """Folder of the policy and of accepted statements."""
        return self.path / "trust"

    @property
    def policy(self) -> Path:
        """The policy in force."""
        return self.trust / "policy.json"

    @property
    def revocations(self) -> Path:
        """Folder of every list of revocations that was taken in."""
        return self.trust / "revocations"

    @property
    def rotations(self) -> Path:
        """Folder of every rotation that was taken in."""
        return self.trust / "rotations"

    def decisions(self, bundle_id: str) -> Path:
        """Folder of the approvals and rejections of an imported bundle."""
        return self.bundle(bundle_id) / "decisions"

    def seen(self, name: str) -> Path:
        """Record of the newest bundle of a name that came in."""
        return self.trust / f"seen-{name}.json"

    @property
    def store(self) -> Path:
        """Folder of all stored files."""
        return self.path / "store"

    def object(self, content_id: str) -> Path:
        """A stored file."""
        return self.store / content_id[:2] / content_id

    def partial(self, content_id: str) -> Path:
        """A file on its way in."""
        return self.store / "partial" / content_id

    @property
    def releases(self) -> Path:
        """Folder of all releases."""
        return self.path / "releases"

    def release(self, bundle_id: str) -> Path:
        """Folder of a release."""
        return self.releases / bundle_id

    def again(self, bundle_id: str) -> Path:
        """Where a release is made anew while the one of that name serves."""
        return self.releases / ".again" / bundle_id

    @property
    def gone(self) -> Path:
        """Folder of releases that are being removed."""
        return self.releases / ".gone"

    @property
    def current(self) -> Path:
        """The link to the release in use."""
        return self.path / "current"

    @property
    def previous(self) -> Path:
        """The link to the release that was in use before."""
        return self.path / "previous"

    @property
    def upgrade(self) -> Path:
        """Record of an upgrade that is under way."""
        return self.path / "upgrade.json"

    def state(self, service: str) -> Path:
        """Record of a started process."""
        return self.path / "run" / f"{service}.json"

    def states(self) -> Iterator[Path]:
        """Records of all started processes."""
        yield from sorted(self.path.glob("run/*.json"))

    def log(self, service: str) -> Path:
        """The engine's output."""
        return self.path / "logs" / f"{service}.log"

    def api_key(self, port: int) -> Path:
        """The key that the service on a port asks its clients for."""
        return self.path / "secrets" / f"port-{port}.key"

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the root: two commands that change it would undo each other.

        The kernel gives the lock back when the process ends, however it ends. A command that holds
        the root may use what holds it too.

        Raises:
            StateError: another command holds it.
        """
        if self._held or (rehearsing() and not (self.path / ".lock").is_file()):
            yield
            return
        self.make(self.path)
        with _locked(self.path / ".lock"):
            self._held = True
            try:
                yield
            finally:
                self._held = False

    @contextmanager
    def without_bootstrap(self) -> Iterator[None]:
        """Hold off the bootstrap, which unpacks Pythons here while it installs the tool.

        Raises:
            StateError: it is at work.
        """
        lock = self.path / "tool" / ".lock"
        if not lock.parent.is_dir() or (rehearsing() and not lock.is_file()):
            yield
            return
        with _locked(lock):
            yield

    def runtime(self, sha256: str) -> Path:
        """Folder of an unpacked Python runtime."""
        return self.path / "runtime" / sha256[:12]

    @property
    def audit(self) -> Path:
        """The audit log."""
        return self.path / "audit.jsonl"

    @property
    def audit_head(self) -> Path:
        """Where the audit log ends."""
        return self.path / "audit.head"

    @property
    def acceptance(self) -> Path:
        """Folder of all acceptance runs."""
        return self.path / "acceptance"

    def golden(self, model_digest: str) -> Path:
        """What a model said on a set-up that is known to be right."""
        return self.path / "golden" / f"{model_digest}.json"

    def make(self, path: Path) -> Path:
        """Create a folder below the root."""
        if rehearsing():
            return path
        with disk_errors("creating", path):
            path.mkdir(parents=True, exist_ok=True)
        return path

    def write(self, path: Path, data: bytes, mode: int = 0o666) -> None:
        """Write a small record atomically and durably."""
        with disk_errors("writing", path):
            write_atomically(path, data, mode)

    def pick_bundle(self, bundle_id: str | None) -> Path:
        """Record folder of the named bundle (its id or the beginning of one), or of the newest.

        Raises:
            StateError: none, or more than one fits.
        """
        folders = self.bundles()
        if bundle_id is not None:
            folders = [folder for folder in folders if folder.name.startswith(bundle_id)]
            if len(folders) > 1 and bundle_id not in [folder.name for folder in folders]:
                names = ", ".join(folder.name for folder in folders)
                raise StateError(f"{bundle_id}: fits several bundles: {names}")
        if not folders:
            raise StateError(
                f"{self.path}: {bundle_id} is not imported here"
                if bundle_id
                else f"{self.path}: no bundle is imported here",
                hint="Import it first: airbundle import DIR --root ROOT --key KEY.pem",
            )
        return folders[-1]


def _order(folder: Path) -> int:
    try:
        return int((folder / ORDER_FILE).read_text())
    except (OSError, ValueError):
        return 0


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with disk_errors("opening", path):
        file = path.open("r" if rehearsing() else "a")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as cause:
            raise StateError(
                f"{path.parent}: another airbundle command is at work here",
                hint="Wait until it has ended, then run the same command again.",
            ) from cause
        yield
