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
ROOT and, for the moment of the signature check, in the folder for temporary files. Read it from the
bottom: main, then the three commands.
"""

import base64
import ctypes
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

MANIFEST, SIGNATURE, CHECKSUMS = "manifest.json", "manifest.json.sig", "SHA256SUMS"
MAX_MANIFEST_BYTES, MAX_ENTRIES = 256 * 2**20, 500000
CHUNK = 4 * 2**20
SPACE, INTEGRITY, TRUST, FORMAT, INSTALL = 6, 7, 8, 9, 12
MISSING, STATE, HOST, KEY_FILE, FILE_ACCESS, INTERRUPTED = 16, 17, 18, 19, 20, 130
AGAIN = "Copy the named files again from the source, then run the same command again."
# The fixed bytes before the 32 of an Ed25519 public key (RFC 8410), and RFC 8032's second test: key,
# message, signature. With it we learn whether this host can check a signature before we judge ours.
DER_HEAD = bytes.fromhex("302a300506032b6570032100")
TEST_KEY = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"
TEST_SIGNATURE = (
    "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
    "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
)


class Stop(Exception):
    """A failure with a name: exit code, one line of what and where, one line of what to do."""

    def __init__(self, code, message, hint):
        Exception.__init__(self, message)
        self.code, self.hint = code, hint


# ---- Output: any terminal, also an ASCII one, and no control characters from a file name. ----


def put(stream, text):
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
        self.done += amount
        if time.monotonic() - self.shown >= 5:
            self.show()

    def show(self):
        self.shown = time.monotonic()
        rate = self.done / max(self.shown - self.began, 0.001)
        left = int(max(self.total - self.done, 0) / max(rate, 1))
        share = 100 * self.done // max(self.total, 1)
        line = "{}: {} of {} ({} %), {}/s, {}:{:02d} left"
        figures = (human(self.done), human(self.total), share, human(rate), left // 60, left % 60)
        put(sys.stderr, line.format(self.label, *figures))


# ---- Trust: the key, the signature. ----


def read_key(path):
    """The 32 bytes of an Ed25519 public key in PEM, and its short name (as airbundle shows it)."""
    hint = (
        "Give --key the supplier's PUBLIC key, a PEM file, received by another way than the bundle."
    )
    if not os.path.isfile(path):
        raise Stop(KEY_FILE, path + ": no such key file", hint)
    with open(path, "rb") as file:
        text = file.read(65536).decode("ascii", "replace")
    body = re.search("-----BEGIN PUBLIC KEY-----([^-]+)-----END PUBLIC KEY-----", text)
    try:
        der = base64.b64decode("".join(body.group(1).split()), validate=True) if body else b""
    except ValueError:
        der = b""
    if len(der) != 44 or not der.startswith(DER_HEAD):
        raise Stop(KEY_FILE, path + ": not an Ed25519 public key in PEM form", hint)
    return der[12:], hashlib.sha256(der).hexdigest()[:16]


def run(argv, env=None, pass_fds=()):
    """Exit status, stdout and stderr of a program; its stdin is empty."""
    pipe = subprocess.PIPE
    with open(os.devnull, "rb") as nothing:
        done = subprocess.run(
            argv, stdin=nothing, stdout=pipe, stderr=pipe, env=env, pass_fds=pass_fds
        )
    return (
        done.returncode,
        done.stdout.decode("utf-8", "replace"),
        done.stderr.decode("utf-8", "replace"),
    )


def verify_by_command(key, data, signature):
    """`openssl pkeyutl -verify -rawin`, on private copies: a medium may answer otherwise twice."""
    folder = tempfile.mkdtemp(prefix="airbundle-")
    try:
        pem = b"-----BEGIN PUBLIC KEY-----\n%s\n-----END PUBLIC KEY-----\n"
        files = {"key": pem % base64.b64encode(DER_HEAD + key), "sig": signature, "data": data}
        paths = {name: os.path.join(folder, name) for name in files}
        for name, content in files.items():
            with open(paths[name], "wb") as file:
                file.write(content)
        command = [shutil.which("openssl"), "pkeyutl", "-verify", "-rawin", "-pubin"]
        command += ["-inkey", paths["key"], "-sigfile", paths["sig"], "-in", paths["data"]]
        return run(command)[0] == 0
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def verify_by_library(key, data, signature):
    """OpenSSL 1.1.1 knows Ed25519 but its command has no -rawin: ask the same library directly."""
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
    words = (
        " ".join(run([shutil.which("openssl"), "version"])[1].split()[:2])
        or "openssl of no version"
    )
    key, message, signature = (bytes.fromhex(x) for x in (TEST_KEY, "72", TEST_SIGNATURE))
    for way, how in ((verify_by_command, "pkeyutl -rawin"), (verify_by_library, "libcrypto")):
        if way(key, message, signature) and not way(key, b"s", signature):
            return way, "{} can check Ed25519 signatures ({})".format(words, how)
    return None, words + " cannot check Ed25519 signatures (too old, LibreSSL, or in FIPS mode)"


def read_file(path, limit):
    if not os.path.isdir(os.path.dirname(path)):
        raise Stop(
            STATE, os.path.dirname(path) + ": no such folder", "Give --dir the bundle's folder."
        )
    if not os.path.isfile(path):
        raise Stop(MISSING, path + ": not there", "Copy every file of the bundle into one folder.")
    with open(path, "rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise Stop(FORMAT, "{}: over the limit of {} bytes".format(path, limit), AGAIN)
    return data


def open_manifest(args):
    """Signature first, parse second. Gives the manifest, its SHA-256 and that of the signature."""
    data = read_file(os.path.join(args.dir, MANIFEST), MAX_MANIFEST_BYTES)
    digest, path = hashlib.sha256(data).hexdigest(), os.path.join(args.dir, SIGNATURE)
    if not os.path.exists(path):
        if not args.unsigned:
            hint = "Ask the supplier for it. A bundle without a signature needs --unsigned."
            raise Stop(TRUST, path + ": there is no signature", hint)
        line = "warning: UNSIGNED bundle, accepted because of --unsigned / 서명 없는 번들"
        put(sys.stderr, line + ", SHA-256 of the manifest: " + digest)
        return parse_manifest(data), digest, None
    signature = read_file(path, 65536)
    if not args.key:
        raise Stop(TRUST, path + ": no public key to check it with", "Give --key PUBLIC.pem.")
    keys = [read_key(name) for name in args.key]
    way, about = openssl_state()
    if way is None:
        hint = "Put OpenSSL 3 (or 1.1.1) on PATH, or verify on a host that has it."
        raise Stop(HOST, about + ": the signature cannot be checked", hint)
    good = [name for key, name in keys if len(signature) == 64 and way(key, data, signature)]
    if not good:
        hint = "Do not install. Ask the supplier, by another way, for the right key and bundle."
        names = ", ".join(name for _, name in keys)
        message = (
            "{}: the signature is not by key {}: manifest or signature changed, or another's key"
        )
        raise Stop(TRUST, message.format(os.path.join(args.dir, MANIFEST), names), hint)
    say("signature OK, key " + good[0], "서명 확인")
    say("manifest SHA-256 " + digest)
    return parse_manifest(data), digest, hashlib.sha256(signature).hexdigest()


# ---- The manifest: trusted by now, but still checked before anything is done with it. ----


def parse_manifest(data):
    try:
        manifest = json.loads(data.decode("utf-8"))
        if manifest.get("format_version") != 1:
            version = repr(manifest.get("format_version"))[:20]
            raise ValueError("format_version {}; this script reads 1".format(version))
        text = json.dumps(manifest, ensure_ascii=False, sort_keys=True, indent=2) + "\n"
        if text.encode("utf-8") != data:
            raise ValueError("not in canonical form")
        check_manifest(manifest)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as cause:
        hint = "Have the bundle built again, or use the bootstrap that came with it."
        raise Stop(FORMAT, "{}: {}: {}".format(MANIFEST, type(cause).__name__, cause), hint)
    return manifest


def require(condition, what):
    if not condition:
        raise ValueError(what)


def check_path(path):
    """Relative, no `..`, nothing odd."""
    parts = path.split("/")
    odd = len(path) > 1024 or re.search(r'[\x00-\x1f\x7f<>:"|?*\\]', path)
    require(
        not odd and not {"", ".", ".."}.intersection(parts), "path {!r} is refused".format(path)
    )
    return path


def check_manifest(manifest):
    target, tool, entries = manifest["target"], manifest["tool"], manifest["entries"]
    for key, pattern in (
        ("python", r"3\.\d{1,2}"),
        ("glibc", r"2\.\d{1,2}"),
        ("arch", r"\w{1,20}"),
    ):
        require(re.match(pattern + r"\Z", target[key]), "target." + key)
    require(len(entries) <= MAX_ENTRIES, "over {} entries".format(MAX_ENTRIES))
    volumes = {volume["name"]: volume["size"] for volume in manifest["volumes"]}
    for item in manifest["volumes"] + manifest["loose"]:
        require("/" not in check_path(item["name"]), "a path in place of a file name")
        require(item["name"] not in (MANIFEST, SIGNATURE, CHECKSUMS), "a reserved file name")
        check_bytes(item)
    for entry in entries:
        check_path(entry["path"])
        check_bytes(entry)
        for part in entry["parts"]:
            check_bytes(part)
            require(type(part["offset"]) is int and part["offset"] >= 0, "offset")
            require(isinstance(part["member"], str), "member")
            require(
                part["offset"] + part["size"] <= volumes[part["volume"]],
                "a part outside its volume",
            )
        total = sum(part["size"] for part in entry["parts"])
        require(total == entry["size"], "the parts of {} do not add up".format(entry["path"]))
    paths = {entry["path"] for entry in entries}
    wanted = [tool["requirements"], tool["uv_wheel"]] + [item["path"] for item in manifest["files"]]
    require(
        len(paths) == len(entries) and paths.issuperset(wanted), "paths twice or without an entry"
    )


def check_bytes(item):
    require(type(item["size"]) is int and item["size"] >= 0, "size")
    require(re.match(r"[0-9a-f]{64}\Z", item["sha256"]), "sha256")


def find_entry(manifest, path):
    return next(entry for entry in manifest["entries"] if entry["path"] == path)


def find_runtime(manifest):
    """The entry of the carried Python runtime, or None."""
    paths = [item["path"] for item in manifest["files"] if item["role"] == "python-runtime"]
    return find_entry(manifest, paths[0]) if paths else None


# ---- verify ----


def read_run(file, size):
    while size > 0:
        chunk = file.read(min(CHUNK, size))
        if not chunk:
            return
        size -= len(chunk)
        yield chunk


def scan_volume(path, volume, parts, progress, pool):
    """One pass over a volume, two digests: of the whole, and of each part. Gives what is wrong."""
    whole, bad, at = hashlib.sha256(), [], 0
    with open(path, "rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        if size != volume["size"]:
            what = "truncated" if size < volume["size"] else "longer than promised"
            bad.append(
                "{}: {}: {} bytes, not {}".format(volume["name"], what, size, volume["size"])
            )
        for part in sorted(parts, key=lambda part: (part["offset"], part["size"])) + [None]:
            for run_end, digest in (
                (part["offset"] if part else volume["size"], None),
                (None, hashlib.sha256()),
            ):
                if run_end is None and part is None:
                    break
                length = run_end - at if digest is None else part["size"]
                require(length >= 0, "parts overlap")
                for chunk in read_run(file, length):
                    pending = pool.submit(whole.update, chunk)
                    if digest is not None:
                        digest.update(chunk)
                    pending.result()
                    at += len(chunk)
                    progress.advance(len(chunk))
                if digest is not None and digest.hexdigest() != part["sha256"]:
                    bad.append("{}: {}: changed".format(volume["name"], part["member"]))
    if not bad and whole.hexdigest() != volume["sha256"]:
        bad.append(volume["name"] + ": changed between its files (ZIP headers or directory)")
    return bad


def command_verify(args):
    manifest, digest, signature_digest = open_manifest(args)
    bad, there = [], set(os.listdir(args.dir))
    sums = {item["name"]: item["sha256"] for item in manifest["volumes"] + manifest["loose"]}
    sums[MANIFEST] = digest
    if signature_digest:
        sums[SIGNATURE] = signature_digest
    missing = sorted((set(sums) | {CHECKSUMS}) - there)
    return manifest, bad, missing
