"""The reviewer's pack of an engine's whole closure: how long it takes, how much memory, and whether it is complete.

Builds the bundle once (some 5 GB from the index), makes its pack in a process of its own, and holds it against the official
schemas and against a count of shared objects that knows nothing of the pack:

    .venv/bin/python -m scripts.pack_of_closure manifests/qwen35-35b-a3b-h200.yaml --work DIR

`--osv all.zip` looks packages up; `--advisories` asks the index at the build, one request for each package. A bundle
that lies in the work folder is not built again. Exit code 10: something is missing.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from openpyxl import load_workbook
from spdx_tools.spdx.parser.parse_anything import parse_file
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document

from bundler import wiring
from bundler.format.contents import Contents, InVolumes
from bundler.format.places import find_volumes
from bundler.format.trust import open_manifest

AIRBUNDLE = [sys.executable, "-m", "bundler"]
_SHARED = re.compile(r"\.so(\.[0-9.]+)?$")
_MOST_MEMORY = 2**30
_LEAST_KNOWN = 0.95


def built(spec: Path, work: Path, *, advisories: bool) -> Path:
    """The bundle, and the seconds that it took to build."""
    bundle = work / "bundle"
    if not (bundle / "manifest.json").is_file():
        run("keygen", "--out", work / "closure")
        asked = "--advisories" if advisories else "--no-advisories"
        words = ("build", spec, "--engine-only", asked, "--lock", work / "lock.json", "--cache",
                 work / "cache", "--key", work / "closure.key.pem", "--out", bundle, "-q")  # fmt: skip
        seconds, memory = run(*words)
        print(f"built in {seconds:.0f} s, peak {memory / 2**20:.0f} MiB")
    return bundle


def run(*words: object) -> tuple[float, int]:
    """Run airbundle; its seconds and its peak memory, bytes."""
    begin = time.monotonic()
    child = subprocess.Popen([*AIRBUNDLE, *map(str, words)], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"airbundle {words[0]}: exit code {child.returncode}")
    return time.monotonic() - begin, used.ru_maxrss * 1024


def with_shared_objects(bundle: Path, public: Path) -> dict[str, int]:
    """Distribution -> number of `.so` files, by the names in each wheel alone."""
    manifest = open_manifest(bundle, wiring.verifiers([public])).manifest
    contents = Contents(manifest, (InVolumes(find_volumes(manifest, [bundle])),))
    found = {}
    for entry in manifest.entries:
        if entry.kind == "wheel":
            with contents.open(entry) as file, zipfile.ZipFile(file) as archive:
                count = sum(1 for name in archive.namelist() if _SHARED.search(name))
            if count:
                found[entry.path] = count
    return found


def faults(bundle: Path, pack: Path, public: Path) -> list[str]:
    """What is missing or wrong; prints the figures."""
    inventory: dict[str, Any] = json.loads((pack / "inventory.json").read_bytes())
    wheels = [one for one in inventory["components"] if one["kind"] == "wheel"]
    wrong = [*licences(wheels), *boms(pack), *natives(wheels, with_shared_objects(bundle, public))]
    looked_up = pack / "vulnerabilities.json"
    if looked_up.is_file():
        known = json.loads(looked_up.read_bytes())
        print(f"vulnerabilities: {len(known['found'])}, {known['checked']} packages looked up in"
              f" {known['source']} of {known['date']}, {len(known['unchecked'])} not")  # fmt: skip
        if not known["date"]:
            wrong.append("the look-up of vulnerabilities has no date")
    else:
        print("vulnerabilities: not looked up, and the page says so")
        if "not checked" not in (pack / "review.en.md").read_text(encoding="utf-8"):
            wrong.append("nobody looked vulnerabilities up, and the page does not say so")
    book = load_workbook(pack / "transfer-form.xlsx", read_only=True)
    rows = {sheet.title: sheet.max_row for sheet in book}
    print(f"transfer-form.xlsx opens: {rows}")
    for name in ("review.html", "review.ko.md", "sbom.cdx.json", "sbom.spdx.json"):
        print(f"{name}: {(pack / name).stat().st_size / 1000:.0f} kB")
    return wrong


def licences(wheels: list[dict[str, Any]]) -> list[str]:
    """Too few known licences."""
    unknown = [one for one in wheels if not one["licence"]["expression"]]
    share = 1 - len(unknown) / len(wheels)
    names = ", ".join(f"{one['name']} {one['version']}" for one in unknown)
    print(f"{len(wheels)} wheels, licence known of {share:.1%}; unknown: {names or 'none'}")
    return [] if share >= _LEAST_KNOWN else [f"only {share:.1%} of the licences are known"]


def boms(pack: Path) -> list[str]:
    """Bills of materials that break their schemas."""
    text = (pack / "sbom.cdx.json").read_text(encoding="utf-8")
    broken = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    messages = validate_full_spdx_document(parse_file(str(pack / "sbom.spdx.json")))
    print(f"CycloneDX 1.6: {broken or 'valid'}; SPDX 2.3: {messages or 'valid'}")
    return ([f"CycloneDX: {broken}"] if broken else []) + [f"SPDX: {one}" for one in messages]


def natives(wheels: list[dict[str, Any]], counted: dict[str, int]) -> list[str]:
    """Wheels with shared objects by name that the pack does not list."""
    listed = {
        one["files"][0]["path"]: sum(run["count"] for run in one["executes"] if run["kind"] == "native")
        for one in wheels
    }  # fmt: skip
    listed = {path: count for path, count in listed.items() if count}
    print(f"native code in {len(listed)} wheels ({sum(listed.values())} files);"
          f" by name `.so` in {len(counted)} ({sum(counted.values())} files)")  # fmt: skip
    for path in sorted(listed.keys() - counted.keys()):
        print(f"  native, without a .so: {path}")
    wrong = [
        f"native code is not listed: {path}" for path in sorted(counted.keys() - listed.keys())
    ]
    fewer = [path for path, count in counted.items() if 0 < listed.get(path, 0) < count]
    for path in fewer:
        print(f"  {counted[path]} names with .so, {listed[path]} of them machine code: {path}")
    return wrong


def main() -> int:
    """Print the figures; 10 when something is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("spec", type=Path)
    parser.add_argument("--work", type=Path, default=Path(".closure"))
    parser.add_argument("--osv", type=Path)
    parser.add_argument("--advisories", action="store_true")
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    bundle = built(given.spec, given.work, advisories=given.advisories)
    public, pack = given.work / "closure.pub.pem", given.work / "review"
    known = bundle / "review" / "vulnerabilities.json"
    more = ("--osv", given.osv) if given.osv else ("--known", known) if known.is_file() else ()
    seconds, memory = run("review", bundle, "--key", public, "--out", pack, "-q", *more)
    print(f"pack in {seconds:.1f} s, peak {memory / 2**20:.0f} MiB")
    wrong = faults(bundle, pack, public)
    if memory > _MOST_MEMORY:
        wrong.append(f"over {_MOST_MEMORY / 2**20:.0f} MiB of memory")
    for one in wrong:
        print(f"WRONG {one}")
    return 10 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
