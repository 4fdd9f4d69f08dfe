"""Every file and folder name in a bundle and in an installation root, in one place.

Beside the volumes of a bundle lie the manifest, its signature, the checksums, the bootstrap and the
READ-ME. Inside the volumes, paths are readable and relative.
"""

from __future__ import annotations

import re

MANIFEST = "manifest.json"
SIGNATURE = "manifest.json.sig"
CHECKSUMS = "SHA256SUMS"
BOOTSTRAP = "airbundle-bootstrap.py"
READ_ME = "READ-ME.txt"
# What keys say of bundles and of each other (format/statements.py): KIND-SIGNER.json, and its signature.
STATEMENT = re.compile(r"(approval|rotation|revocations)-([0-9a-f]{16})\.json")
HANDBOOK = "DOCS.html"
BESIDE = frozenset({MANIFEST, SIGNATURE, CHECKSUMS, BOOTSTRAP, READ_ME, HANDBOOK})

LOCK_PATH = "lock.json"
SPEC_PATH = "spec.json"
ENGINE_REQUIREMENTS = "requirements/engine.txt"
TOOL_REQUIREMENTS = "requirements/tool.txt"

# Which entries may lie where: nothing in a bundle can pose as a release's own files.
FIXED_PLACES = {
    "lock": (LOCK_PATH,),
    "spec": (SPEC_PATH,),
    "requirements": (ENGINE_REQUIREMENTS, TOOL_REQUIREMENTS),
}
FOLDERS = {"wheel": "wheels/", "model": "models/", "file": "files/", "parity": "parity/"}

# Ceilings for untrusted input: what no real bundle reaches.
MAX_MANIFEST_BYTES = 256 * 2**20
MAX_STATEMENT_BYTES = 4 * 2**20
MAX_ENTRIES = 500_000
SIGNATURE_BYTES = 64


def may_lie(kind: str, path: str) -> bool:
    """Whether an entry of this kind may have this path."""
    if kind in FIXED_PLACES:
        return path in FIXED_PLACES[kind]
    below = path.removeprefix(FOLDERS[kind])
    return below not in (path, "") and (kind == "model" or "/" not in below)


def statement_name(kind: str, key_id: str) -> str:
    """`approval-0123456789abcdef.json`."""
    return f"{kind}-{key_id}.json"


def is_statement(name: str) -> bool:
    """Whether a file beside a manifest is a statement or the signature of one."""
    return STATEMENT.fullmatch(name.removesuffix(".sig")) is not None


def volume_name(bundle: str, number: int, count: int, suffix: str) -> str:
    """`name.vol007.zip`; as many digits as the count needs, at least three."""
    digits = max(3, len(str(count)))
    return f"{bundle}.vol{number:0{digits}d}{suffix}"


def parity_name(bundle: str, number: int, suffix: str) -> str:
    """`name.par001.zip`: a volume that holds parity."""
    return f"{bundle}.par{number:03d}{suffix}"


def parity_path(bundle: str, number: int) -> str:
    """The parity file inside it."""
    return f"parity/{bundle}.par{number:03d}"


def wheel_path(filename: str) -> str:
    """Where a wheel lies in the bundle."""
    return f"wheels/{filename}"


def model_path(model: str, file: str) -> str:
    """Where a model's file lies in the bundle."""
    return f"models/{model}/{file}"


def extra_path(filename: str) -> str:
    """Where another file lies in the bundle."""
    return f"files/{filename}"


def member_name(path: str, number: int, count: int) -> str:
    """Name of a part in its volume: the path itself when whole, else `path.part2of3`."""
    return path if count == 1 else f"{path}.part{number}of{count}"
