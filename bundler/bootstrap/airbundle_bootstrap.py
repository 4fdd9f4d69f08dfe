#!/usr/bin/env python3
"""Start a closed host from a bare python3: check the host, verify the bundle, install airbundle.

    python3 airbundle-bootstrap.py check   [--root ROOT]             what this host has and lacks
    python3 airbundle-bootstrap.py verify  --key PUBLIC.pem          every byte of the bundle
    python3 airbundle-bootstrap.py install --key PUBLIC.pem --root ROOT

What it trusts: the public key that you give it, this host's python3 and openssl, and this file. Of the
bundle it trusts nothing until the signature over the manifest's exact bytes is found good; only then is
the manifest parsed, and everything else is checked by the SHA-256 that the manifest states.

Check this file before you run it, with nothing but openssl and coreutils. The signed manifest holds its
digest, so the two printed digests must be the same:

    openssl pkeyutl -verify -rawin -pubin -inkey PUBLIC.pem -sigfile manifest.json.sig -in manifest.json
    grep -A1 '"name": "airbundle-bootstrap.py"' manifest.json
    sha256sum airbundle-bootstrap.py

It needs Python 3.6 or newer with only the standard library, opens no connection, and writes only below
ROOT and, for the moment of the signature check, to files without a name in the folder for temporary
files. Read it from the bottom: main, then the three commands.
"""

import argparse
import base64
import errno
import fcntl
import hashlib
import json
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

MANIFEST, SIGNATURE, CHECKSUMS = "manifest.json", "manifest.json.sig", "SHA256SUMS"
MAX_MANIFEST_BYTES, MAX_ENTRIES = 256 * 2**20, 500000
CHUNK = 4 * 2**20
SPACE, INTEGRITY, TRUST, FORMAT, INSTALL = 6, 7, 8, 9, 12
MISSING, STATE, HOST, KEY_FILE, FILE_ACCESS = 16, 17, 18, 19, 20
INTERRUPTED = 128  # and the signal's number
GET_PYTHON = "install it, or have the bundle built with a `python-runtime` file"
AGAIN = "Copy the named files again from the source, then run the same command again."
REBUILD = "Have the bundle built again, or use the bootstrap that came with it."
# The fixed bytes before the 32 of an Ed25519 public key (RFC 8410), and RFC 8032's second test: key,
# message, signature. With it we learn whether this host can check a signature before we judge ours.
DER_HEAD = bytes.fromhex("302a300506032b6570032100")
TEST_KEY = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"
TEST_SIGNATURE = (
    "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
    "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
)


class Error(Exception):
    """A failure with a name: exit code, one line of what and where, one line of what to do."""

    def __init__(self, code, message, hint):
        Exception.__init__(self, message)
        self.code, self.hint = code, hint


# ---- Output: any terminal, also an ASCII one, and no control characters from a file name. ----


def put(stream, text):
    """Write a line."""
    text = re.sub("[\x00-\x1f\x7f-\x9f]", "?", text)
    encoding = stream.encoding or "ascii"
    try:
        data = text.encode(encoding, "surrogateescape")
    except UnicodeEncodeError:
        data = text.encode(encoding, "backslashreplace")
    stream.buffer.write(data + b"\n")
    stream.flush()


def say(english, korean=""):
    """One line on stdout; the Korean half only where the terminal can show it."""
    try:
        korean.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        korean = ""
    put(sys.stdout, english + (" / " + korean if korean else ""))


def human(size):
    """Bytes for a person."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return "{:.4g} {}".format(size, unit)
        size /= 1024.0
    return "{:.4g} TiB".format(size)


class Progress:
    """A line on stderr every few seconds: how far, how fast, how long still."""

    def __init__(self, label, total):
        self.label, self.total, self.done = label, total, 0
        self.began = self.shown = time.monotonic()

    def advance(self, amount):
        """Count bytes."""
        self.done += amount
        if time.monotonic() - self.shown >= 5:
            self.show()

    def show(self):
        """Print the line now."""
        self.shown = time.monotonic()
        rate = self.done / max(self.shown - self.began, 0.001)
        left = int(max(self.total - self.done, 0) / max(rate, 1))
        share = 100 * self.done // max(self.total, 1)
        line = "{}: {} of {} ({} %), {}/s, {}:{:02d} left"
        figures = (human(self.done), human(self.total), share, human(rate), left // 60, left % 60)
        put(sys.stderr, line.format(self.label, *figures))


# ---- Korean: errors and what to do, where AIRBUNDLE_LANG or the locale asks for it. ----

KOREAN = (
    ("{}: no such folder", "{}: 폴더가 없습니다"),
    ("{}: no such key file", "{}: 키 파일이 없습니다"),
    ("{}: not an Ed25519 public key in PEM form", "{}: PEM 형식의 Ed25519 공개 키가 아닙니다"),
    ("{}: not there", "{}: 없습니다"),
    ("{}: over the limit of {} bytes", "{}: 한도 {}바이트를 넘습니다"),
    ("{}: there is no signature", "{}: 서명이 없습니다"),
    ("{}: no public key to check it with", "{}: 확인할 공개 키가 없습니다"),
    ("{}: the signature cannot be checked", "{}: 서명을 확인할 수 없습니다"),
    (
        "{}: not the signature of {} by key {}: one of them changed, or another's key",
        "{}: {}에 대한 키 {}의 서명이 아닙니다. 둘 중 하나가 바뀌었거나 다른 키입니다",
    ),
    ("temporary files cannot be written: {}", "임시 파일을 쓸 수 없습니다: {}"),
    ("{}: {}: truncated, {} bytes of {}", "{}: {}: 잘렸습니다. 현재 {}바이트, 원래 {}바이트"),
    ("{}: {}: cannot be read: {}", "{}: {}: 읽을 수 없습니다: {}"),
    ("{}: {}: changed", "{}: {}: 바뀌었습니다"),
    ("{}: is not in this bundle but in its base", "{}: 이 번들이 아니라 기반 번들에 있습니다"),
    ("{}: cannot be unpacked: {}", "{}: 풀 수 없습니다: {}"),
    ("{}: {} free, about {} needed", "{}: 여유 공간 {}, 필요한 공간 약 {}"),
    ("{}: a policy is in force, and {}: {}", "{}: 정책이 적용 중이며 {}: {}"),
    ("missing: {}", "없음: {}"),
    ("this host lacks: {}", "이 호스트에 없는 것: {}"),
    ("interrupted", "중단되었습니다"),
    ("Run the same command again; it continues.", "같은 명령을 다시 실행하면 이어서 진행합니다."),
    ("Give --dir the bundle's folder.", "--dir에 번들 폴더를 지정하십시오."),
    ("Give --key PUBLIC.pem.", "--key PUBLIC.pem을 지정하십시오."),
    (
        "Give --key the supplier's PUBLIC key (PEM), received by another way than the bundle.",
        "--key에 번들과 다른 경로로 받은 공급사의 공개 키(PEM)를 지정하십시오.",
    ),
    (
        "Free space in /tmp, or set TMPDIR to another folder.",
        "/tmp의 공간을 확보하거나 TMPDIR를 다른 폴더로 설정하십시오.",
    ),
    (
        "Copy every file of the bundle into one folder.",
        "번들의 모든 파일을 한 폴더에 복사하십시오.",
    ),
    (
        "Ask the supplier for it. A bundle without a signature needs --unsigned.",
        "공급사에 요청하십시오. 서명 없는 번들에는 --unsigned가 필요합니다.",
    ),
    (
        "Put OpenSSL 3 (or 1.1.1) on PATH, or verify on a host that has it.",
        "OpenSSL 3(또는 1.1.1)을 PATH에 두거나, 그것이 있는 호스트에서 검증하십시오.",
    ),
    (
        "Do not install. Ask the supplier, by another way, for the right key and bundle.",
        "설치하지 마십시오. 공급사에 별도 경로로 올바른 키와 번들을 요청하십시오.",
    ),
    ("Copy it again, or use another medium.", "다시 복사하거나 다른 매체를 쓰십시오."),
    (
        "Have the bundle built again; the tool's own files must be in it.",
        "번들을 다시 빌드하도록 요청하십시오. 도구 자체의 파일이 들어 있어야 합니다.",
    ),
    ("Copy them beside the others.", "다른 파일과 같은 폴더에 복사하십시오."),
    ("Free space, or give another --root.", "공간을 확보하거나 다른 --root를 지정하십시오."),
    ("Add it, then check again.", "갖춘 뒤 다시 확인하십시오."),
    ("Add it, then rerun.", "갖춘 뒤 다시 실행하십시오."),
    (
        "Copy them beside the others; the tool itself lies in them.",
        "다른 볼륨과 같은 폴더에 복사하십시오. 도구가 그 안에 있습니다.",
    ),
    (
        "They are sealed: this host needs an airbundle first, or volumes.sealable.",
        "암호화되어 있습니다. 이 호스트에 airbundle이 먼저 있거나 volumes.sealable로 빌드해야 합니다.",
    ),
    (
        "Have the bundle built again with a sound file.",
        "온전한 파일로 번들을 다시 빌드하도록 요청하십시오.",
    ),
    (
        "Carry an `install_only` archive as python-runtime.",
        "`install_only` 아카이브를 python-runtime으로 담으십시오.",
    ),
    (
        "Is --root mounted noexec, or the bundle for another processor?",
        "--root가 noexec로 마운트되었거나 다른 프로세서용 번들인지 확인하십시오.",
    ),
    (
        "Fix the cause and run the same command again; an older tool stays usable.",
        "원인을 해결한 뒤 같은 명령을 다시 실행하십시오. 이전 도구는 계속 쓸 수 있습니다.",
    ),
    (
        "{} import DIR --root {}; then run this again.",
        "{} import DIR --root {} 실행 후 다시 실행하십시오.",
    ),
    (
        "Free space. Then run the same command again.",
        "공간을 확보한 뒤 같은 명령을 다시 실행하십시오.",
    ),
    (
        "Check the owner, the mount and the disk. Then run the same command again.",
        "소유자, 마운트, 디스크를 확인한 뒤 같은 명령을 다시 실행하십시오.",
    ),
    (AGAIN, "표시된 파일을 원본에서 다시 복사한 뒤 같은 명령을 다시 실행하십시오."),
    (REBUILD, "번들을 다시 빌드하도록 요청하거나 번들과 함께 온 bootstrap을 쓰십시오."),
)


def wants_korean():
    """Whether AIRBUNDLE_LANG, else the locale, asks for Korean, and stderr can show it."""
    names = ("AIRBUNDLE_LANG", "LC_ALL", "LC_MESSAGES", "LANG")
    said = next((os.environ[name] for name in names if os.environ.get(name)), "")
    try:
        "한글".encode(sys.stderr.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return re.split("[_.@]", said)[0] == "ko"


def told(text):
    """The text in Korean, with what fills its gaps; in English where the table lacks it."""
    for english, korean in KOREAN:
        match = re.match("(.*?)".join(map(re.escape, english.split("{}"))) + "$", text, re.S)
        if match:
            return korean.format(*match.groups())
    return text


# ---- Trust: the key, the signature. ----


def read_key(path):
    """The 32 bytes of an Ed25519 public key in PEM, and its short name (as airbundle shows it)."""
    hint = "Give --key the supplier's PUBLIC key (PEM), received by another way than the bundle."
    if not os.path.isfile(path):
        raise Error(KEY_FILE, path + ": no such key file", hint)
    with open(path, "rb") as file:
        text = file.read(65536).decode("ascii", "replace")
    body = re.search("-----BEGIN PUBLIC KEY-----([^-]+)-----END PUBLIC KEY-----", text)
    try:
        der = base64.b64decode("".join(body.group(1).split()), validate=True) if body else b""
    except ValueError:
        der = b""
    if len(der) != 44 or not der.startswith(DER_HEAD):
        raise Error(KEY_FILE, path + ": not an Ed25519 public key in PEM form", hint)
    return der[12:], hashlib.sha256(der).hexdigest()[:16]


def run(argv, env=None, pass_fds=()):
    """Exit status (None: it cannot be started) and output of a program; its stdin is empty."""
    out = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    try:
        done = subprocess.run(argv, env=env, pass_fds=pass_fds, **out)
    except OSError as cause:
        return None, "{}: cannot be run: {}".format(argv[0], cause.strerror)
    return done.returncode, done.stdout.decode("utf-8", "replace")


def verify_by_command(key, data, signature):
    """`openssl pkeyutl -verify -rawin`, on private copies: a medium may answer otherwise twice.

    The copies have no name in any folder, so that nothing is left behind, however this ends.
    """
    pem = b"-----BEGIN PUBLIC KEY-----\n%s\n-----END PUBLIC KEY-----\n"
    pem %= base64.b64encode(DER_HEAD + key)
    command, copies = [shutil.which("openssl"), "pkeyutl", "-verify", "-rawin", "-pubin"], []
    try:
        with ExitStack() as stack:
            for option, content in (("-inkey", pem), ("-sigfile", signature), ("-in", data)):
                file = stack.enter_context(tempfile.TemporaryFile())
                file.write(content)
                file.flush()
                copies.append(file.fileno())
                command += [option, "/proc/self/fd/{}".format(file.fileno())]
            return run(command, None, copies)[0] == 0
    except OSError as cause:
        text = "temporary files cannot be written: " + str(cause.strerror)
        raise Error(SPACE, text, "Free space in /tmp, or set TMPDIR to another folder.")


def verify_by_library(key, data, signature):
    """OpenSSL 1.1.1 knows Ed25519 but its command has no -rawin: ask the same library directly."""
    try:
        import ctypes
    except ImportError:
        return False
    for name in ("libcrypto.so.1.1", "libcrypto.so.3"):
        try:
            lib = ctypes.CDLL(name)
            new_key, new_context = lib.EVP_PKEY_new_raw_public_key, lib.EVP_MD_CTX_new
            begin, verify = lib.EVP_DigestVerifyInit, lib.EVP_DigestVerify
        except (OSError, AttributeError):
            continue
        address, size, text = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p
        new_key.restype = new_context.restype = address
        new_key.argtypes, new_context.argtypes = [ctypes.c_int, address, text, size], []
        begin.argtypes, verify.argtypes = [address] * 5, [address, text, size, text, size]
        handle, context = new_key(1087, None, key, len(key)), new_context()  # 1087: NID_ED25519
        if not handle or not context or begin(context, None, None, None, handle) != 1:
            return False
        return verify(context, signature, len(signature), data, len(data)) == 1
    return False


def openssl_state():
    """How to check a signature on this host (None: it cannot), and one line about it."""
    if not shutil.which("openssl"):
        return None, "openssl is not on PATH"
    words = " ".join(run([shutil.which("openssl"), "version"])[1].split()[:2]) or "openssl"
    key, message, signature = (bytes.fromhex(x) for x in (TEST_KEY, "72", TEST_SIGNATURE))
    for way, how in ((verify_by_command, "pkeyutl -rawin"), (verify_by_library, "libcrypto")):
        if way(key, message, signature) and not way(key, b"s", signature):
            return way, "{} can check Ed25519 signatures ({})".format(words, how)
    return None, words + " cannot check Ed25519 signatures (too old, LibreSSL, or in FIPS mode)"


def read_file(path, limit):
    """A small file's bytes."""
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise Error(STATE, folder + ": no such folder", "Give --dir the bundle's folder.")
    if not os.path.isfile(path):
        raise Error(MISSING, path + ": not there", "Copy every file of the bundle into one folder.")
    with open(path, "rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise Error(FORMAT, "{}: over the limit of {} bytes".format(path, limit), AGAIN)
    return data


def open_manifest(args):
    """Signature first, parse second. Gives the manifest, its SHA-256 and that of the signature."""
    data = read_file(os.path.join(args.dir, MANIFEST), MAX_MANIFEST_BYTES)
    digest, path = hashlib.sha256(data).hexdigest(), os.path.join(args.dir, SIGNATURE)
    if not os.path.exists(path):
        if not args.unsigned:
            hint = "Ask the supplier for it. A bundle without a signature needs --unsigned."
            raise Error(TRUST, path + ": there is no signature", hint)
        line = "warning: UNSIGNED bundle, accepted because of --unsigned / 서명 없는 번들"
        put(sys.stderr, line + ", SHA-256 of the manifest: " + digest)
        return parse_manifest(data), digest, None
    signature = read_file(path, 65536)
    if not args.key:
        raise Error(TRUST, path + ": no public key to check it with", "Give --key PUBLIC.pem.")
    keys = [read_key(name) for name in args.key]
    way, about = openssl_state()
    if way is None:
        hint = "Put OpenSSL 3 (or 1.1.1) on PATH, or verify on a host that has it."
        raise Error(HOST, about + ": the signature cannot be checked", hint)
    # A signing device that takes no long messages signs the line that sha256sum prints.
    forms = [data, "{}  {}\n".format(digest, MANIFEST).encode("ascii")]
    good = [
        name
        for key, name in keys
        if len(signature) == 64 and any(way(key, form, signature) for form in forms)
    ]
    if not good:
        hint = "Do not install. Ask the supplier, by another way, for the right key and bundle."
        names = ", ".join(name for _, name in keys)
        message = "{}: not the signature of {} by key {}: one of them changed, or another's key"
        raise Error(TRUST, message.format(path, MANIFEST, names), hint)
    say("signature OK, key " + good[0], "서명 확인")
    say("manifest SHA-256 " + digest)
    return parse_manifest(data), digest, hashlib.sha256(signature).hexdigest()


# ---- The manifest: trusted by now, but still checked before anything is done with it. ----


# What this script reads of a manifest: each key must be there, an `int` be a size, a text match.
TEXT, SHA256 = r"[^\x00-\x1f\x7f-\x9f]{1,2000}\Z", r"[0-9a-f]{64}\Z"
NAME = r"(?i)(?!(con|prn|aux|nul|com\d|lpt\d)(\.|\Z))[a-z0-9][a-z0-9._-]{0,63}\Z"
FILE = {"name": TEXT, "size": int, "sha256": SHA256}
PART = {"volume": TEXT, "member": TEXT, "offset": int, "size": int}
BLOCK = {"sha256": SHA256}
ENTRY = {"path": TEXT, "kind": TEXT, "size": int, "sha256": SHA256}
ENTRY.update({"parts": [PART], "blocks": [BLOCK]})
FORM = {
    "name": NAME,
    "block_size": int,
    "target": {"python": r"3\.\d{1,3}\Z", "glibc": r"2\.\d{1,3}\Z", "arch": r"\w{1,19}\Z"},
    "tool": {"version": r"[\w.+!-]{1,64}\Z", "requirements": TEXT, "uv_wheel": TEXT},
    "files": [{"path": TEXT, "role": TEXT}],
    "volumes": [FILE],
    "loose": [FILE],
    "entries": [ENTRY],
}
# Where an entry of each kind lies.
PLACES = {"lock": r"lock\.json\Z", "spec": r"spec\.json\Z", "requirements": r"requirements/[^/]+\Z"}
PLACES.update({"wheel": r"wheels/[^/]+\Z", "model": r"models/.+\Z", "file": r"files/[^/]+\Z"})
PLACES["parity"] = r"parity/[^/]+\Z"


def parse_manifest(data):
    """From bytes, with every rule that this script relies on checked."""
    try:
        manifest = json.loads(data.decode("utf-8"))
        require(isinstance(manifest, dict), "not an object")
        version = manifest.get("format_version")
        if type(version) is not int or version != 1:
            raise ValueError("format_version {}; this script reads 1".format(repr(version)[:20]))
        text = json.dumps(manifest, ensure_ascii=False, sort_keys=True, indent=2) + "\n"
        require(text.encode("utf-8") == data, "not in canonical form")
        check_form(manifest, FORM, "manifest")
        check_manifest(manifest)
    except (ValueError, RecursionError) as cause:
        raise Error(FORMAT, "{}: {}".format(MANIFEST, cause), REBUILD)
    return manifest


def require(condition, what):
    """Refuse the manifest or archive unless it is so."""
    if not condition:
        raise ValueError(what)


def check_path(path):
    """Relative, no `..`, nothing odd."""
    odd = len(path.encode("utf-8", "surrogateescape")) > 1024
    odd = odd or re.search(r'[\x00-\x1f\x7f<>:"|?*\\]', path)
    odd = odd or {"", ".", ".."}.intersection(path.split("/"))
    require(not odd, "path {!r:.200} is refused".format(path))
    return path


def check_form(value, form, where):
    """Raise ValueError unless the value has the form, see FORM."""
    if isinstance(form, dict):
        require(isinstance(value, dict), where + ": not an object")
        for key in form:
            require(key in value, where + "." + key + ": missing")
            check_form(value[key], form[key], where + "." + key)
    elif isinstance(form, list):
        require(isinstance(value, list), where + ": not a list")
        for number, item in enumerate(value):
            check_form(item, form[0], "{}[{}]".format(where, number))
    elif form is int:
        require(type(value) is int and 0 <= value < 2**63, where + ": not a size")
    else:
        good = isinstance(value, str) and re.match(form, value, re.ASCII)
        require(good, where + ": not a text as it must be")


def check_manifest(manifest):
    """Raise ValueError for a manifest of the right form that contradicts itself or is unsafe."""
    tool, entries, step = manifest["tool"], manifest["entries"], manifest["block_size"]
    require(2**12 <= step <= 2**26 and not step & (step - 1), "block_size is not as it must be")
    require(len(entries) <= MAX_ENTRIES, "over {} entries".format(MAX_ENTRIES))
    names = [item["name"] for item in manifest["volumes"] + manifest["loose"]]
    require(not any("/" in check_path(name) for name in names), "a path in place of a file name")
    names += [MANIFEST, SIGNATURE, CHECKSUMS]
    require(len(set(map(str.casefold, names))) == len(names), "a file name twice or reserved")
    volumes = {volume["name"]: volume["size"] for volume in manifest["volumes"]}
    for entry in entries:
        path, parts = check_path(entry["path"]), entry["parts"]
        place = PLACES.get(entry["kind"])
        require(place and re.match(place, path), "{}: no place for its kind".format(path))
        whole, sizes = len(parts) == 1, [part["size"] for part in parts]
        held = not parts and manifest.get("base") and entry["kind"] in ("wheel", "model", "file")
        require(held or parts, "{} has no parts".format(path))
        adds_up = held or sum(sizes) == entry["size"]
        require(adds_up, "the parts of {} do not add up".format(path))
        require(held or whole or min(sizes) > 0, "{}: an empty part".format(path))
        require(not any(size % step for size in sizes[:-1]), path + ": a part cut inside a block")
        blocks = entry["blocks"]
        right = len(blocks) == max(1, -(-entry["size"] // step))
        require(right, "{}: the number of its blocks is wrong".format(path))
        same = len(blocks) > 1 or blocks[0]["sha256"] == entry["sha256"]
        require(same, "{}: its only block has another sha256".format(path))
        for number, part in enumerate(parts, 1):
            member = path if whole else "{}.part{}of{}".format(path, number, len(parts))
            require(part["member"] == member, "{}: a part with a wrong name".format(path))
            end = part["offset"] + part["size"]
            require(end <= volumes.get(part["volume"], -1), path + ": a part outside its volume")
    for parts in parts_by_volume(manifest).values():
        for (one, _), (other, _) in zip(parts, parts[1:]):
            require(one["offset"] + one["size"] <= other["offset"], "parts overlap")
    kinds = {entry["path"]: entry["kind"] for entry in entries}
    require(len(set(map(str.casefold, kinds))) == len(entries), "a path twice")
    wanted = [(tool["requirements"], "requirements"), (tool["uv_wheel"], "wheel")]
    for path, kind in wanted + [(item["path"], "file") for item in manifest["files"]]:
        require(kinds.get(path) == kind, "{:.200}: not an entry of kind {}".format(path, kind))


def parts_by_volume(manifest):
    """Volume name -> its parts in the order in which they lie, each with its blocks (see below)."""
    volumes = {volume["name"]: [] for volume in manifest["volumes"]}
    for entry in manifest["entries"]:
        at = 0
        for part in entry["parts"]:
            blocks = blocks_of(manifest, entry, part, at)
            volumes[part["volume"]].append((part, blocks))
            at += part["size"]
    return {name: sorted(x, key=lambda pair: pair[0]["offset"]) for name, x in volumes.items()}


def blocks_of(manifest, entry, part, start):
    """Size, SHA-256 and name of each block of a part that begins `start` bytes into its file."""
    step, found = manifest["block_size"], []
    for at in range(0, max(part["size"], 1), step):
        size, where = min(step, part["size"] - at), start + at
        label = part["member"]
        if len(entry["blocks"]) > 1:
            label = "{}: bytes {} to {}".format(entry["path"], where, where + size - 1)
        found.append((size, entry["blocks"][where // step]["sha256"], label))
    return found


def find_entry(manifest, path):
    """The entry with that path."""
    return next(entry for entry in manifest["entries"] if entry["path"] == path)


def find_runtime(manifest):
    """The entry of the carried Python runtime, or None."""
    paths = [item["path"] for item in manifest["files"] if item["role"] == "python-runtime"]
    return find_entry(manifest, paths[0]) if paths else None


# ---- verify ----


def read_run(file, size):
    """The next `size` bytes, in chunks; fewer when the file ends."""
    while size > 0:
        chunk = file.read(min(CHUNK, size))
        if not chunk:
            return
        size -= len(chunk)
        yield chunk


def digest_file(path, limit):
    """SHA-256 of a file, of its first `limit` bytes when it is longer."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for chunk in read_run(file, limit):
            digest.update(chunk)
    return digest.hexdigest()


def scan_volume(path, volume, parts, progress, pool):
    """One pass over a volume, digests of the whole and of each block. Gives what is wrong."""
    name, size = volume["name"], os.path.getsize(path)
    runs, at, bad, whole = [], 0, [], hashlib.sha256()
    for part, blocks in parts:
        runs += [(part["offset"] - at, None, "ZIP directory")] + blocks
        at = part["offset"] + part["size"]
    runs.append((volume["size"] - at, None, "ZIP directory"))
    at = 0
    with open(path, "rb", buffering=0) as file:
        for length, wanted, label in runs:
            at += length
            if at > size:
                text = "{}: {}: truncated, {} bytes of {}"
                return bad + [text.format(name, label, size, volume["size"])]
            digest = hashlib.sha256()
            try:
                for chunk in read_run(file, length):
                    other_core = pool.submit(whole.update, chunk)
                    digest.update(chunk)
                    other_core.result()
                    progress.advance(len(chunk))
            except OSError as cause:
                message = "{}: {}: cannot be read: {}".format(path, label, cause.strerror)
                raise Error(FILE_ACCESS, message, "Copy it again, or use another medium.")
            if wanted and digest.hexdigest() != wanted:
                bad.append("{}: {}: changed".format(name, label))
    if size > at:
        bad.append("{}: longer than promised, {} bytes, not {}".format(name, size, at))
    elif not bad and whole.hexdigest() != volume["sha256"]:
        bad.append(name + ": changed between its files (ZIP headers or directory)")
    return bad


def read_entry(args, manifest, entry):
    """The bytes of a file of the bundle, in chunks. They count once the last came without an Error."""
    start = 0
    if not entry["parts"]:
        hint = "Have the bundle built again; the tool's own files must be in it."
        raise Error(MISSING, entry["path"] + ": is not in this bundle but in its base", hint)
    for part in entry["parts"]:
        with open(os.path.join(args.dir, part["volume"]), "rb", buffering=0) as file:
            file.seek(part["offset"])
            for size, wanted, label in blocks_of(manifest, entry, part, start):
                digest = hashlib.sha256()
                for chunk in read_run(file, size):
                    digest.update(chunk)
                    yield chunk
                if digest.hexdigest() != wanted:
                    where = "{}: {}: changed".format(part["volume"], label)
                    raise Error(INTEGRITY, where, AGAIN)
        start += part["size"]


def part_of(path, text):
    """Whether checksums are those of a medium with sealed volumes: what else they list is right."""
    lines, known = read_file(path, MAX_MANIFEST_BYTES).split(b"\n")[:-1], set(text.split(b"\n"))
    sealed = [line for line in lines if line.endswith(b".sealed")]
    return bool(sealed) and all(line in known for line in lines if line not in sealed)


def beside(args, manifest, digest, signature_digest):
    """What is wrong with the small files beside the volumes; and every name that belongs here."""
    bad = []
    sums = {item["name"]: item["sha256"] for item in manifest["volumes"] + manifest["loose"]}
    sums[MANIFEST] = digest
    if signature_digest:
        sums[SIGNATURE] = signature_digest
    text = "".join("{}  {}\n".format(sums[name], name) for name in sorted(sums)).encode("utf-8")
    small = {item["name"]: (item["sha256"], item["size"]) for item in manifest["loose"]}
    small[CHECKSUMS] = (hashlib.sha256(text).hexdigest(), len(text))
    for name, (wanted, size) in sorted(small.items()):
        path = os.path.join(args.dir, name)
        if os.path.isfile(path):
            if name == CHECKSUMS and part_of(path, text):
                continue
            if digest_file(path, size + 1) != wanted:
                bad.append(name + ": changed")
    return bad, set(sums) | {CHECKSUMS}


def command_verify(args):
    """Check the signature, then every byte; name what is wrong."""
    manifest, digest, signature_digest = open_manifest(args)
    began, parts = time.monotonic(), parts_by_volume(manifest)
    bad, known = beside(args, manifest, digest, signature_digest)
    there = {name for name in os.listdir(args.dir) if os.path.isfile(os.path.join(args.dir, name))}
    volumes = [volume for volume in manifest["volumes"] if volume["name"] in there]
    progress = Progress("verify", sum(volume["size"] for volume in volumes))
    with ThreadPoolExecutor(2) as pool:
        for volume in volumes:
            path = os.path.join(args.dir, volume["name"])
            bad += scan_volume(path, volume, parts[volume["name"]], progress, pool)
    progress.show()
    sealed = {name for name in known if name + ".sealed" in there} - there
    missing = sorted(known - there - sealed)
    for line in bad + ["missing: " + name for name in missing]:
        put(sys.stderr, "  " + line)
    said = re.compile(r"(approval|rotation|revocations)-[0-9a-f]{16}\.json(\.sig)?\Z")
    others = there - known - {SIGNATURE} - {name + ".sealed" for name in sealed}
    strangers = sorted(name for name in others if not said.match(name))
    if strangers:
        put(sys.stderr, "note: not part of the bundle: " + ", ".join(strangers)[:500])
    if bad:
        more = " (and {} more, above)".format(len(bad) - 1) if len(bad) > 1 else ""
        raise Error(INTEGRITY, bad[0] + more, AGAIN)
    if missing:
        raise Error(MISSING, "missing: " + ", ".join(missing), "Copy them beside the others.")
    size, seconds = human(progress.done), time.monotonic() - began
    line = "bundle {} OK: {} volumes, {}, every byte as signed, {:.1f} s"
    if not signature_digest:
        line = line.replace("as signed", "as the UNSIGNED manifest says")
    say(line.format(manifest["name"], len(volumes), size, seconds), "번들 정상")
    if sealed:
        line = "not checked: {} sealed volume(s); airbundle verify --volume-key FILE does"
        say(line.format(len(sealed)), "봉인된 볼륨은 확인하지 않음")


# ---- What the host has. ----


def clean_environment():
    """No proxy, and no configuration of pip, uv or Python on this host, reaches the installation."""
    odd = re.compile("(UV_|PIP_|PYTHON|VIRTUAL_ENV|CONDA_)|.*_proxy$", re.IGNORECASE)
    return {name: value for name, value in os.environ.items() if not odd.match(name)}


def find_python(minor):
    """A CPython of that minor version on PATH, or None. A shim that does not run is not one."""
    code = "import sys; print(sys.implementation.name, '%d.%d' % sys.version_info[:2])"
    names = (sys.executable or "", "python" + minor, "python3")
    for path in filter(None, map(shutil.which, names)):
        if run([path, "-I", "-c", code], clean_environment())[1].split() == ["cpython", minor]:
            return path
    return None


def glibc_version():
    """For example (2, 34); None where there is no glibc."""
    try:
        words = os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (ValueError, OSError, AttributeError):
        words = " ".join(platform.libc_ver())
    found = re.match(r"glibc (\d+)\.(\d+)", words)
    return (int(found.group(1)), int(found.group(2))) if found else None


def free_bytes(path):
    """Free space where `path` is or will be."""
    path = os.path.abspath(path)
    while not os.path.exists(path):
        path = os.path.dirname(path)
    return shutil.disk_usage(path).free


def host_findings(manifest):
    """(whether it is there, one line) for what the bundle needs of the host."""
    target, has = manifest["target"], glibc_version()
    arch = platform.machine()
    yield arch == target["arch"], "processor {}, the bundle is for {}".format(arch, target["arch"])
    text = "glibc " + ".".join(map(str, has)) if has else "no glibc (another C library)"
    enough = has is not None and has >= tuple(map(int, target["glibc"].split(".")))
    yield enough, "{}, the bundle needs {} or newer".format(text, target["glibc"])
    minor, runtime = target["python"], find_runtime(manifest)
    path = None if runtime else find_python(minor)
    if runtime:
        yield True, "CPython {}: carried in the bundle ({})".format(minor, runtime["path"])
    elif path:
        yield True, "CPython {}: {}".format(minor, path)
    else:
        yield False, "CPython {}: none on PATH, none carried; {}".format(minor, GET_PYTHON)


def need_room(path, need):
    """Refuse to begin what the disk cannot hold."""
    free = free_bytes(path)
    if free < need:
        text = "{}: {} free, about {} needed".format(path, human(free), human(need))
        raise Error(SPACE, text, "Free space, or give another --root.")
    return "{} free at {}, about {} needed".format(human(free), path, human(need))


def command_check(args):
    """Say plainly, a line each, what this host has and lacks."""

    def show(good, text):
        say(("ok     " if good else "LACKS  ") + text)
        return [] if good else [text]

    show(True, "python3 {} ({})".format(platform.python_version(), sys.executable))
    way, about = openssl_state()
    lacks = show(way is not None, about)
    if args.key or args.unsigned:
        manifest = open_manifest(args)[0]
    else:
        say("note   the manifest is not verified yet; what follows is what it claims")
        manifest = parse_manifest(read_file(os.path.join(args.dir, MANIFEST), MAX_MANIFEST_BYTES))
    for good, text in host_findings(manifest):
        lacks += show(good, text)
    entries = manifest["entries"]
    wheels = sum(entry["size"] for entry in entries if entry["kind"] == "wheel")
    room = None
    try:
        # Imported files, and beside them the wheels unpacked, which is about three times their size.
        show(True, need_room(args.root, sum(entry["size"] for entry in entries) + 3 * wheels))
    except Error as cause:
        room = cause
        show(False, str(room))
    if lacks:
        raise Error(HOST, "this host lacks: " + "; ".join(lacks), "Add it, then check again.")
    if room:
        raise room
    say("this host has what the bundle needs", "준비 완료")


# ---- install: only below ROOT; the launcher is switched last, by one rename. ----


def store_entry(args, manifest, entry, path):
    """Bring one file of the bundle to `path`, each block checked by its SHA-256 on the way."""
    if os.path.isfile(path) and os.path.getsize(path) == entry["size"]:
        if digest_file(path, entry["size"]) == entry["sha256"]:
            return path  # from a run that was interrupted
    with open(path + ".new", "wb") as out:
        for chunk in read_entry(args, manifest, entry):
            out.write(chunk)
    os.rename(path + ".new", path)
    return path


def need_volumes(args, entries):
    """Refuse to begin when a volume that is to be read is not there."""
    names = {part["volume"] for entry in entries for part in entry["parts"]}
    missing = [x for x in sorted(names) if not os.path.isfile(os.path.join(args.dir, x))]
    if missing:
        hint = "Copy them beside the others; the tool itself lies in them."
        if any(os.path.isfile(os.path.join(args.dir, x + ".sealed")) for x in missing):
            hint = "They are sealed: this host needs an airbundle first, or volumes.sealable."
        raise Error(MISSING, "missing: " + ", ".join(missing), hint)


def unpack_uv(wheel, path):
    """Take the one binary out of uv's wheel."""
    with zipfile.ZipFile(wheel) as archive:
        names = [x for x in archive.namelist() if re.match(r"uv-[^/]+\.data/scripts/uv\Z", x)]
        require(len(names) == 1, "no uv binary inside")
        with archive.open(names[0]) as source, open(path + ".new", "wb") as out:
            shutil.copyfileobj(source, out, CHUNK)
    os.chmod(path + ".new", 0o755)
    os.rename(path + ".new", path)


def unpack_tar(archive, into):
    """Unpack a tar archive; nothing gets outside `into`, whatever the archive says.

    Names are handled as UTF-8 bytes, since this host's locale may be ASCII. Symbolic links are made
    last, so that no file is written through one, and each must lead to a place inside.
    """
    base, links = os.path.realpath(into).encode("utf-8", "surrogateescape"), []

    def place(name):
        path = name[2:] if name.startswith("./") else name
        return os.path.join(base, check_path(path).encode("utf-8", "surrogateescape"))

    with tarfile.open(archive, encoding="utf-8", errors="surrogateescape") as tar:
        for item in tar:
            if item.name in (".", "./"):
                continue
            path = place(item.name.rstrip("/"))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if item.isdir():
                os.makedirs(path, exist_ok=True)
            elif item.issym():
                links.append((path, item.linkname.encode("utf-8", "surrogateescape")))
            elif item.isreg() or item.islnk():
                source = open(place(item.linkname), "rb") if item.islnk() else tar.extractfile(item)
                with source, open(path, "xb") as out:
                    shutil.copyfileobj(source, out, CHUNK)
                os.chmod(path, 0o755 if item.mode & 0o100 else 0o644)
            else:
                raise ValueError("{!r} is no file, folder or link".format(item.name))
    for path, leads_to in links:
        os.symlink(leads_to, path)
    for path, leads_to in links:
        inside = os.path.realpath(path).startswith(base + b"/")
        require(inside and not leads_to.startswith(b"/"), "link {!r} leads outside".format(path))


def unpack(what, function, *arguments):
    """Run an unpacking function; whatever it stumbles over is one line."""
    try:
        function(*arguments)
    except (OSError, Error):
        raise
    except Exception as cause:  # noqa: BLE001 - tarfile, zipfile and zlib raise many kinds
        text = "{}: cannot be unpacked: {}".format(what, cause)
        raise Error(INSTALL, text, "Have the bundle built again with a sound file.")


def remove(path):
    """Remove a folder if it is there."""
    if os.path.lexists(path):
        shutil.rmtree(path)


def make_runtime(args, manifest, entry, root, work):
    """Unpack the carried Python once; gives its python3."""
    home = os.path.join(root, "runtime", entry["sha256"][:12])
    python = os.path.join(home, "python", "bin", "python3")
    if not os.path.exists(python):
        say("unpacking the carried Python", "파이썬 설치")
        archive = store_entry(args, manifest, entry, os.path.join(work, "runtime.tar"))
        remove(home + ".partial")
        remove(home)
        os.makedirs(home + ".partial")
        unpack(entry["path"], unpack_tar, archive, home + ".partial")
        if not os.path.exists(os.path.join(home + ".partial", "python", "bin", "python3")):
            text = entry["path"] + ": has no python/bin/python3 inside"
            raise Error(INSTALL, text, "Carry an `install_only` archive as python-runtime.")
        os.rename(home + ".partial", home)
    return python


def run_step(argv, lock, code, hint):
    """Run a program of the installation; its last words become the error."""
    status, text = run(argv, clean_environment(), (lock,))
    if status is None:
        raise Error(HOST, text, "Is --root mounted noexec, or the bundle for another processor?")
    if status != 0:
        lines = text.strip().splitlines() or ["exit status {}".format(status)]
        last = " ".join(lines[-1:] if lines[0].startswith("Traceback") else lines)[-600:]
        raise Error(code, "{}: {}".format(" ".join(argv[:2]), last), hint)


def make_tool(args, manifest, folder, root, lock):
    """The environment with airbundle in it, from carried files alone. `complete` is written last."""
    work, venv, tool = folder + ".partial", os.path.join(folder, "venv"), manifest["tool"]
    os.makedirs(os.path.join(work, "wheels"), exist_ok=True)
    requirements = find_entry(manifest, tool["requirements"])
    need_volumes(args, [requirements])
    listed = store_entry(args, manifest, requirements, os.path.join(work, "tool.txt"))
    with open(listed, "rb") as file:
        hashes = set(re.findall("sha256:([0-9a-f]{64})", file.read().decode("utf-8", "replace")))
    wheels = [x for x in manifest["entries"] if x["kind"] == "wheel" and x["sha256"] in hashes]
    runtime, uv_wheel = find_runtime(manifest), find_entry(manifest, tool["uv_wheel"])
    wanted = wheels + [uv_wheel] + ([runtime] if runtime else [])
    need_volumes(args, wanted)
    need_room(root, 4 * sum(entry["size"] for entry in wanted))
    say("reading the tool's files, each checked by SHA-256", "파일 확인")
    paths = {}
    for entry in wheels + [uv_wheel]:
        name = os.path.basename(entry["path"])
        paths[entry["path"]] = store_entry(
            args, manifest, entry, os.path.join(work, "wheels", name)
        )
    uv = os.path.join(work, "uv")
    unpack(uv_wheel["path"], unpack_uv, paths[uv_wheel["path"]], uv)
    minor = manifest["target"]["python"]
    python = make_runtime(args, manifest, runtime, root, work) if runtime else find_python(minor)
    say("making the environment, offline", "환경 설치")
    remove(folder)
    os.makedirs(folder)
    common = ["--offline", "--no-config", "--no-progress", "--color", "never"]
    common += ["--cache-dir", os.path.join(work, "cache")]
    argv = [uv, "venv"] + common + ["--no-python-downloads", "--python", python or minor, venv]
    run_step(argv, lock, HOST, "CPython {}: {}.".format(minor, GET_PYTHON))
    argv = [uv, "pip", "install"] + common + ["--python", os.path.join(venv, "bin", "python")]
    argv += ["--no-index", "--no-build", "--require-hashes", "--link-mode", "copy"]
    argv += ["--find-links", os.path.join(work, "wheels"), "-r", listed]
    hint = "Fix the cause and run the same command again; an older tool stays usable."
    run_step(argv, lock, INSTALL, hint)
    run_step([os.path.join(venv, "bin", "airbundle"), "--version"], lock, INSTALL, hint)
    write_file(os.path.join(folder, "complete"), os.path.basename(folder) + "\n")


def write_file(path, text, mode=0o644):
    """Write a small file whole or not at all."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".new", "wb") as file:
        file.write(os.fsencode(text))
    os.chmod(path + ".new", mode)
    os.rename(path + ".new", path)


LAUNCHER = """\
#!/bin/sh
unset PYTHONHOME PYTHONPATH
[ -n "${{AIRBUNDLE_ROOT-}}" ] || AIRBUNDLE_ROOT={root}
export AIRBUNDLE_ROOT
exec {airbundle} "$@"
"""


def check_policy(root, bundle):
    """Where a site's policy is in force, its own airbundle decides: this script knows no roles."""
    if not os.path.isfile(os.path.join(root, "trust", "policy.json")):
        return
    launcher = os.path.join(root, "bin", "airbundle")
    code, text = run([launcher, "status", "--root", root, "--json"], clean_environment())
    try:
        known = json.loads(text)["bundles"] if code == 0 else []
        refused = [str(one["refused"]) for one in known if one["bundle_id"] == bundle]
    except (ValueError, KeyError, TypeError):
        refused = []
    if refused != [""]:
        why = refused[0] if refused else "it was not imported by the airbundle that is there"
        hint = "{} import DIR --root {}; then run this again.".format(launcher, root)
        raise Error(TRUST, "{}: a policy is in force, and {}: {}".format(root, bundle, why), hint)


def command_install(args):
    """Signature, then host, then the tool; says how to go on."""
    manifest, digest, signature = open_manifest(args)
    check_policy(os.path.abspath(args.root), "{}-{}".format(manifest["name"], digest[:12]))
    lacks = [text for good, text in host_findings(manifest) if not good]
    if lacks:
        raise Error(HOST, "this host lacks: " + "; ".join(lacks), "Add it, then rerun.")
    root = os.path.abspath(args.root)
    folder = os.path.join(root, "tool", digest[:12])
    os.makedirs(os.path.join(root, "tool"), exist_ok=True)
    # uv inherits the lock: when this script is killed, a rerun waits for the uv that it left behind.
    lock = os.open(os.path.join(root, "tool", ".lock"), os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        put(sys.stderr, "waiting for another installation below " + root)
        fcntl.flock(lock, fcntl.LOCK_EX)
    except OSError:
        pass  # a file system without locks
    airbundle = os.path.join(folder, "venv", "bin", "airbundle")
    complete = os.path.isfile(os.path.join(folder, "complete"))
    if not complete or run([airbundle, "--version"], clean_environment())[0] != 0:
        make_tool(args, manifest, folder, root, lock)
    remove(folder + ".partial")
    launcher, quote = os.path.join(root, "bin", "airbundle"), shlex.quote
    write_file(launcher, LAUNCHER.format(root=quote(root), airbundle=quote(airbundle)), 0o755)
    say("installed airbundle {} in {}".format(manifest["tool"]["version"], root), "설치 완료")
    say("next:", "다음 단계:")
    trust = "".join(" --key " + quote(os.path.abspath(key)) for key in args.key or [])
    trust += "" if signature else " --unsigned"
    for step in ("import " + quote(args.dir) + trust, "install", "start", "accept", "report"):
        say("  {} {} --root {}".format(quote(launcher), step, quote(root)))


# ---- The command line. ----


def parse_arguments():
    """Commands and options."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", metavar="check | verify | install")
    commands.required = True
    here = os.path.dirname(os.path.abspath(__file__))
    home = os.path.join(os.path.expanduser("~"), "airbundle")
    for function in (command_check, command_verify, command_install):
        name = function.__name__[len("command_") :]
        command = commands.add_parser(name, help=function.__doc__)
        command.set_defaults(function=function)
        command.add_argument("--dir", default=here, help="the bundle's folder (this script's)")
        command.add_argument("--key", action="append", help="the supplier's public key, PEM")
        command.add_argument("--unsigned", action="store_true", help="accept if without signature")
        if name != "verify":
            text = "where the service is to live (~/airbundle)"
            command.add_argument("--root", default=home, required=name == "install", help=text)
    args = parser.parse_args()
    if args.command != "check" and not args.key and not args.unsigned:
        parser.error("give --key PUBLIC.pem (or --unsigned for a bundle without a signature)")
    args.dir = os.path.abspath(args.dir)
    return args


def stop(number, _):
    """Turn the first signal to end into an exception, so that everything is left in order."""
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    raise KeyboardInterrupt(number)


def main():
    """Run a command; a failure is one line of what and where, one of what to do, and its code."""
    args = parse_arguments()
    try:
        for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(name) != signal.SIG_IGN:  # as it is under nohup
                signal.signal(name, stop)
        args.function(args)
        return 0
    except Error as cause:
        code, text, hint = cause.code, str(cause), cause.hint
    except KeyboardInterrupt as cause:
        code = INTERRUPTED + (cause.args or (signal.SIGINT,))[0]
        text, hint = "interrupted", "Run the same command again; it continues."
    except BrokenPipeError:
        os._exit(INTERRUPTED + signal.SIGINT)  # whoever read our output has gone
    except OSError as cause:
        full = cause.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        place = cause.filename or getattr(args, "root", None) or args.dir
        code, text = SPACE if full else FILE_ACCESS, os.fsdecode(place) + ": " + str(cause.strerror)
        hint = "Free space." if full else "Check the owner, the mount and the disk."
        hint += " Then run the same command again."
    if wants_korean():
        put(sys.stderr, "오류: " + told(text))
        put(sys.stderr, "조치: " + told(hint))
        return code
    put(sys.stderr, "error: " + text)
    put(sys.stderr, "hint: " + hint)
    return code


if __name__ == "__main__":
    sys.exit(main())
