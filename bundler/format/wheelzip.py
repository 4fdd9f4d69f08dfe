"""A wheel as an archive that a stranger may have made: opened with its directory checked.

zipfile lets out whatever a bent directory causes, and differently in each Python; callers get one
kind of error from the opening, and one list of what damage does to the reading.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from pathlib import Path
from typing import IO

from bundler.format.untrusted import shown

# What reading a member of a damaged archive raises. Anything else is a fault of the code that reads.
DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, UnicodeDecodeError)
_PACKED = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}


def open_wheel(file: Path | IO[bytes]) -> zipfile.ZipFile:
    """The archive; the caller closes it.

    Raises:
        BadZipFile: no archive, or one with what no wheel has: another packing than deflate,
            encryption, a member without a name or before the file's start.
        OSError: the file cannot be read.
        BundlerError: whatever the file's own reading raises.
    """
    archive = _opened(file)
    for info in archive.infolist():
        if (
            not info.filename
            or info.compress_type not in _PACKED
            or info.flag_bits & 0x1
            or info.header_offset < 0
        ):
            archive.close()
            raise zipfile.BadZipFile(f"{shown(info.filename)} is packed as no wheel is")
    return archive


def _opened(file: Path | IO[bytes]) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(file)
    except (struct.error, ArithmeticError, LookupError, RuntimeError, ValueError) as cause:
        raise zipfile.BadZipFile(str(cause) or type(cause).__name__) from cause
