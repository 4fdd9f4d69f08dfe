"""Sealed volumes: the form is Tink's, so Tink opens them and they open what Tink sealed."""

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bundler.errors import KeyFileError, StateError
from bundler.format.places import Place, read_padded
from bundler.format.sealing import (
    SEGMENT,
    VolumeKey,
    WrongSealError,
    generate_volume_key,
    opened_size,
    seal,
    sealed_size,
)

NAME = "b.vol001.zip"
FIRST = SEGMENT - 16 - 40
SIZES = [
    0,
    1,
    4095,
    FIRST - 1,
    FIRST,
    FIRST + 1,
    FIRST + SEGMENT - 16,
    FIRST + SEGMENT - 15,
    3_500_000,
]
KEY = VolumeKey(bytes(range(32)))


def pieces(data: bytes, step: int = 70_001) -> Iterator[memoryview]:
    for at in range(0, len(data), step):
        yield memoryview(data)[at : at + step]


def sealed(data: bytes, key: VolumeKey = KEY) -> bytes:
    return b"".join(seal(key, NAME, len(data), pieces(data)))


def tink(key: VolumeKey = KEY) -> Any:
    """The library itself, with our key in it."""
    streaming_aead = pytest.importorskip("tink.streaming_aead", reason="no tink for this Python")
    import tink as library
    from tink import secret_key_access
    from tink.proto import aes_gcm_hkdf_streaming_pb2 as gcm
    from tink.proto import common_pb2, tink_pb2

    streaming_aead.register()
    params = gcm.AesGcmHkdfStreamingParams(
        ciphertext_segment_size=SEGMENT, derived_key_size=32, hkdf_hash_type=common_pb2.SHA256
    )
    one = gcm.AesGcmHkdfStreamingKey(version=0, params=params, key_value=key.secret)
    keyset = tink_pb2.Keyset(
        primary_key_id=1,
        key=[
            tink_pb2.Keyset.Key(
                key_data=tink_pb2.KeyData(
                    type_url="type.googleapis.com/google.crypto.tink.AesGcmHkdfStreamingKey",
                    value=one.SerializeToString(),
                    key_material_type=tink_pb2.KeyData.SYMMETRIC,
                ),
                status=tink_pb2.ENABLED,
                key_id=1,
                output_prefix_type=tink_pb2.RAW,
            )
        ],
    )
    handle = library.proto_keyset_format.parse(keyset.SerializeToString(), secret_key_access.TOKEN)
    return handle.primitive(streaming_aead.StreamingAead)


def read_back(path: Path, size: int, key: VolumeKey = KEY, name: str = NAME) -> bytes:
    with Place(path, name, key).open() as reader:
        return read_padded(reader, 0, size)


@pytest.mark.parametrize("size", SIZES)
def test_tink_opens_what_we_seal_and_we_open_what_tink_seals(tmp_path: Path, size: int) -> None:
    data, aead = os.urandom(size), tink()
    with aead.new_decrypting_stream(io.BytesIO(sealed(data)), NAME.encode()) as stream:
        assert stream.read() == data
    target = io.BytesIO()
    target.close = lambda: None  # type: ignore[method-assign]
    with aead.new_encrypting_stream(target, NAME.encode()) as stream:
        stream.write(data)
    path = tmp_path / "theirs"
    path.write_bytes(target.getvalue())
    assert len(target.getvalue()) == sealed_size(size)
    assert read_back(path, size) == data


@pytest.mark.parametrize("size", SIZES)
def test_sizes_are_known_beforehand_and_any_run_can_be_read(tmp_path: Path, size: int) -> None:
    data = os.urandom(size)
    path = tmp_path / "x"
    path.write_bytes(sealed(data))
    assert path.stat().st_size == sealed_size(size)
    assert opened_size(sealed_size(size)) == size == Place(path, NAME, KEY).size()
    with Place(path, NAME, KEY).open() as reader:
        for at in (0, 1, FIRST - 3, FIRST, size // 2, max(0, size - 5)):
            wanted = data[at : at + 20]
            assert read_padded(reader, at, 20) == wanted + bytes(20 - len(wanted))


def test_any_changed_bit_another_name_and_another_key_do_not_open(tmp_path: Path) -> None:
    data = os.urandom(FIRST + 5000)
    good = sealed(data)
    path = tmp_path / "x"
    for at in (0, 1, 20, 39, 40, 5000, SEGMENT - 1, SEGMENT, len(good) - 1):
        bad = bytearray(good)
        bad[at] ^= 1
        path.write_bytes(bad)
        with pytest.raises(WrongSealError):
            read_back(path, len(data))
    path.write_bytes(good)
    for key, name in ((VolumeKey(bytes(32)), NAME), (KEY, "b.vol002.zip")):
        with pytest.raises(WrongSealError):
            read_back(path, 10, key, name)
    # Cut at the end of a segment: the last one that is left was not sealed as the last.
    path.write_bytes(good[:SEGMENT])
    with pytest.raises(WrongSealError):
        read_back(path, 10)


def test_the_same_bytes_are_never_sealed_the_same_way() -> None:
    assert sealed(b"x" * 100) != sealed(b"x" * 100)


def test_a_key_file(tmp_path: Path) -> None:
    path = tmp_path / "k" / "site.volumes.key"
    key = generate_volume_key(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert VolumeKey.read(path) == key
    assert key.secret.hex() not in repr(key) + key.key_id
    with pytest.raises(StateError):
        generate_volume_key(path)
    for text in ("", "airbundle-volume-key-1", "airbundle-volume-key-1 12", "x " + "0" * 64,
                 "airbundle-volume-key-1 " + "g" * 64, "-----BEGIN PRIVATE KEY-----"):  # fmt: skip
        path.write_text(text)
        with pytest.raises(KeyFileError):
            VolumeKey.read(path)
    with pytest.raises(KeyFileError):
        VolumeKey.read(tmp_path / "nothing")
