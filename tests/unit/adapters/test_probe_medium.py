"""What is known of a stick: from made-up /proc, /sys and /dev trees, and from this host's own."""

import os
from pathlib import Path

import pytest

from bundler.adapters.probe_medium import LinuxMedia

MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 8:17 / /media/my\\040stick rw,nosuid - vfat /dev/sdb1 rw,uid=1000
31 22 0:5 / /proc rw - proc proc rw
broken line
"""


def tree(root: Path) -> Path:
    usb = root / "sys/devices/pci0/usb1/1-2"
    disk = usb / "1-2:1.0/host6/target6:0:0/6:0:0:0"
    (disk / "block/sdb/sdb1").mkdir(parents=True)
    (usb / "serial").write_text("4C530001\n")
    (usb / "product").write_text("Ultra USB 3.0\n")
    (disk / "model").write_text("Ultra           \n")
    (disk / "block/sdb/device").symlink_to(disk)
    links = root / "sys/dev/block"
    links.mkdir(parents=True)
    (links / "8:17").symlink_to(disk / "block/sdb/sdb1")
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/mountinfo").write_text(MOUNTS)
    return root


def test_a_stick_is_known_by_serial_and_model(tmp_path: Path) -> None:
    found = LinuxMedia(tree(tmp_path)).medium(Path("/media/my stick/airbundle"))
    assert (found.mount, found.device, found.file_system) == (
        "/media/my stick",
        "/dev/sdb1",
        "vfat",
    )
    assert (found.serial, found.model) == ("4C530001", "Ultra")
    assert found.identity == "4C530001"
    assert "serial 4C530001" in found.line()


@pytest.mark.skipif(os.geteuid() != 0, reason="device nodes need root")
def test_label_and_uuid_are_those_of_udev(tmp_path: Path) -> None:
    root = tree(tmp_path)
    (root / "dev/disk/by-label").mkdir(parents=True)
    (root / "dev/disk/by-uuid").mkdir(parents=True)
    try:
        os.mknod(root / "dev/sdb1", 0o060600, os.makedev(8, 17))
    except OSError as cause:
        pytest.skip(f"no device nodes here: {cause}")
    (root / "dev/disk/by-label/BANK\\x20STICK").symlink_to(root / "dev/sdb1")
    (root / "dev/disk/by-label/OTHER").symlink_to(root / "dev/none")
    (root / "dev/disk/by-uuid/1234-ABCD").symlink_to(root / "dev/sdb1")
    found = LinuxMedia(root).medium(Path("/media/my stick"))
    assert (found.label, found.uuid, found.identity) == ("BANK STICK", "1234-ABCD", "1234-ABCD")


def test_what_cannot_be_read_is_empty(tmp_path: Path) -> None:
    found = LinuxMedia(tmp_path).medium(tmp_path)
    assert (found.mount, found.serial, found.line()) == (str(tmp_path), "", str(tmp_path))


def test_this_host_has_a_root_file_system() -> None:
    found = LinuxMedia().medium(Path("/"))
    assert found.mount == "/"
    assert found.file_system
