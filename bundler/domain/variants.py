"""A second release of an installed bundle: other settings, the same files, and the measurement behind each change."""

from collections.abc import Iterator, Sequence

from pydantic import Field

from bundler.domain.record import Location, Name, Record, Sha256
from bundler.domain.spec import Service, Settings

# No name of a bundle holds it, so that a release's id says which bundle's files it uses.
MARK = "+"
STARTED = "started"


class Step(Record):
    """One comparison whose winner was applied."""

    changes: dict[str, str] = Field(description="Setting -> value as it was compared.")
    service: str | None = Field(None, description="The one service that it changes; None: each.")
    record: Location = Field(description="The comparison, relative to the root.")
    record_sha256: Sha256 = Field(description="Of that file as it was when it was applied.")
    said: str = Field(max_length=10_000, description="What the comparison concluded.")
    applied: str = Field(description="UTC time.")


class Variant(Record):
    """Written last by `accept --ab --apply`: what makes this release of that one."""

    base: str = Field(description="Id of the bundle whose release holds the files.")
    manifest_sha256: Sha256
    steps: tuple[Step, ...] = Field(
        min_length=1, max_length=1000, description="In the order in which they were applied."
    )


class Difference(Record):
    """One setting that is not as the bundle was signed."""

    service: Name
    setting: str = Field(description="Key of `settings`, `env.NAME`, or `started`.")
    signed: str = Field(description="What the signed bundle says.")
    now: str


class Changed(Record):
    """How a release differs from its signed bundle, and by which measurements."""

    differences: tuple[Difference, ...]
    steps: tuple[Step, ...]

    @property
    def settings(self) -> str:
        """What differs, for people."""
        return ", ".join(
            f"{one.service} {one.setting}={one.now or '(none)'} (signed: {one.signed or '(none)'})"
            for one in self.differences
        )

    @property
    def words(self) -> str:
        """One line for people: what, by which records, when."""
        records = "; ".join(
            f"{one.record}, SHA-256 {one.record_sha256}, applied {one.applied}"
            for one in self.steps
        )
        return (
            f"settings differ from the signed bundle's: {self.settings}; measured by A/B: {records}"
        )


def bundle_of(release_id: str) -> str:
    """The bundle whose files a release uses."""
    return release_id.partition(MARK)[0]


def differences(signed: Sequence[Service], now: Sequence[Service]) -> tuple[Difference, ...]:
    """Every setting of the services that is another than the bundle's."""
    return tuple(_differences(signed, now))


def same_settings(one: Sequence[Service], other: Sequence[Service]) -> bool:
    """Whether two lists of services start the same engines in the same way."""
    return _plain(one) == _plain(other)


def _plain(services: Sequence[Service]) -> list[Service]:
    return [
        one.model_copy(update={"settings": one.settings or Settings()})
        for one in sorted(services, key=lambda service: service.name)
    ]


def _differences(signed: Sequence[Service], now: Sequence[Service]) -> Iterator[Difference]:
    there = {service.name: service for service in now}
    for service in signed:
        if service.name not in there:
            yield Difference(service=service.name, setting=STARTED, signed="yes", now="no")
            continue
        before, after = _flat(service), _flat(there[service.name])
        for key in dict.fromkeys([*before, *after]):
            if before.get(key, "") != after.get(key, ""):
                yield Difference(
                    service=service.name,
                    setting=key,
                    signed=before.get(key, ""),
                    now=after.get(key, ""),
                )


def _flat(service: Service) -> dict[str, str]:
    values = (service.settings or Settings()).model_dump(mode="json")
    env = values.pop("env")
    own = {key: "" if value is None else str(value) for key, value in values.items()}
    return own | {f"env.{name}": text for name, text in env.items()}
