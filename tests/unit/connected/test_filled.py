"""What the lock learns from the fetched wheels."""

from __future__ import annotations

from email.parser import HeaderParser
from pathlib import Path

import pytest

from bundler.build.fetch import Fetched
from bundler.build.filled import carried_over, filled, licence_of
from bundler.build.store import Blob
from bundler.domain.lock import Lock, LockedWheel
from bundler.domain.target import Target
from bundler.format import layout
from bundler.format.ingest import digest_file
from tests.fakes.wheels import make_wheel

LONG = "Permission is hereby granted, free of charge, to any person obtaining a copy of this " * 4


@pytest.mark.parametrize(
    ("headers", "licence"),
    [
        ("License-Expression: Apache-2.0 OR MIT\nLicense: BSD\n", "Apache-2.0 OR MIT"),
        ("License: BSD-3-Clause\nClassifier: License :: OSI Approved :: MIT License\n", "BSD-3-Clause"),
        ("License: UNKNOWN\nClassifier: License :: OSI Approved :: MIT License\n", "MIT License"),
        ("License: The license\n  in full\nClassifier: License :: OSI Approved :: ISC License (ISCL)\n",
         "ISC License (ISCL)"),
        (f"License: {LONG}\n", None),
        ("Classifier: License :: OSI Approved\nClassifier: Programming Language :: Python\n", None),
        ("Classifier: License :: Other/Proprietary License\n"
         "Classifier: License :: OSI Approved :: MIT License\n", "Other/Proprietary License; MIT License"),
        ("License: MIT\x1b[2J\n", "MIT[2J"),
        ("", None),
    ],
)  # fmt: skip
def test_the_licence_in_a_line(headers: str, licence: str | None) -> None:
    assert licence_of(HeaderParser().parsestr(headers + "Name: x\n\nbody\n")) == licence


def lock_and_files(tmp_path: Path) -> tuple[Lock, list[Fetched]]:
    path = make_wheel(tmp_path, "a", "1", {})
    digests = digest_file(path)
    wheel = LockedWheel(
        name="a", version="1", filename=path.name, url=path.as_uri(), sha256=digests.sha256
    )
    lock = Lock(
        spec_sha256="0" * 64, created="2026-01-01T00:00:00Z", airbundle_version="1",
        target=Target(python="3.12", glibc="2.31"), engine_name="vllm", engine_version="1",
        engine_wheels=(wheel,), tool_wheels=(wheel,),
    )  # fmt: skip
    return lock, [Fetched(layout.wheel_path(path.name), "wheel", "file", Blob(path, digests))]


def test_size_and_xxh3_are_filled_in_and_filling_again_changes_nothing(tmp_path: Path) -> None:
    lock, files = lock_and_files(tmp_path)
    full = filled(lock, files)
    for wheel in (*full.engine_wheels, *full.tool_wheels):
        assert wheel.size == files[0].blob.digests.size
        assert wheel.xxh3 == files[0].blob.digests.xxh3
    assert filled(full, files) == full


def test_a_new_lock_keeps_what_was_known_of_the_same_bytes(tmp_path: Path) -> None:
    lock, files = lock_and_files(tmp_path)
    full = filled(lock, files)
    assert carried_over(lock, full) == full
    other = lock.model_copy(
        update={"engine_wheels": (lock.engine_wheels[0].model_copy(update={"sha256": "1" * 64}),)}
    )
    assert carried_over(other, full).engine_wheels == other.engine_wheels
