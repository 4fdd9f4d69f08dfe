"""What went onto which medium: the list that goes with a transfer form."""

from pydantic import Field

from bundler.domain.record import Record, Sha256

SHIPPING_VERSION = 1


class Medium(Record):
    """A mounted medium, as far as this host tells. Empty: it does not say."""

    mount: str = Field(description="Where it is mounted here.")
    device: str = ""
    file_system: str = ""
    label: str = ""
    uuid: str = Field("", description="Of the file system.")
    serial: str = Field("", description="Of the device, as it states it.")
    model: str = ""

    @property
    def identity(self) -> str:
        """What tells this medium from another one at the same mount."""
        return self.uuid or self.serial or self.label or self.mount

    def line(self) -> str:
        """For people."""
        named = [("label", self.label), ("serial", self.serial), ("uuid", self.uuid)]
        known = ", ".join(f"{name} {value}" for name, value in named if value)
        what = " ".join(filter(None, (self.model, self.file_system)))
        return (
            f"{self.mount} ({', '.join(filter(None, (what, known)))})"
            if what or known
            else self.mount
        )


class ShippedFile(Record):
    """A file on a medium, read back from it and found right."""

    name: str
    size: int = Field(ge=0)
    sha256: Sha256


class ShippedMedium(Record):
    """A medium and the volumes on it; manifest, signature, bootstrap and READ-ME lie on each."""

    medium: Medium
    written: str = Field(description="UTC time at which the last of them was read back.")
    volumes: tuple[ShippedFile, ...]


class ShippingList(Record):
    """All media of one bundle."""

    shipping_version: int = SHIPPING_VERSION
    bundle: str
    manifest_sha256: Sha256
    key_id: str | None = None
    beside: tuple[ShippedFile, ...] = Field(description="Files that lie on every medium.")
    media: tuple[ShippedMedium, ...] = ()
    to_come: tuple[str, ...] = Field((), description="Volumes that are on no medium yet.")
