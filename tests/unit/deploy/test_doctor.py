"""`airbundle doctor`'s judgements, each in each state, and a root in every kind of half-finished state."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from bundler import wiring
from bundler.build.checkup import clock_row, hub_rows, index_rows, store_rows
from bundler.build.storehealth import look_at_store
from bundler.cli.app import run
from bundler.deploy.doctor import device_rows, host_rows
from bundler.domain.host import Devices, GpuProcess, GpuState, Host, Mount
from bundler.domain.workplace import (
    Answer,
    Folder,
    KeyFile,
    Package,
    Program,
    Role,
    StoreHealth,
    Workplace,
)
from bundler.errors import EXIT_FAIL
from tests.fakes.small_bundle import SmallBundle

GIB = 2**30
NOW = "2026-05-01T00:00:00Z"
PLACE = Workplace(
    airbundle="0.1.0",
    python="3.12.4",
    executable="/usr/bin/python3",
    packages=(
        Package(extra="", name="rich", version="14.0"),
        Package(extra="connected", name="requests", version="2.32"),
        Package(extra="review", name="cvss", version="3.2"),
    ),
    programs=(Program(name="uv", version="0.9.17"), Program(name="openssl", version="3.0.13")),
    folders=(Folder(path="/srv/llm", exists=True, writable=True, case_sensitive=True),),
    keys=(KeyFile(path="k.key.pem", mode=0o600),),
    encoding="utf-8",
    locale="C.UTF-8",
    code_from="2026-04-01T00:00:00Z",
)
MOUNT = Mount(path="/srv/llm", mount="/srv", file_system="ext4", free_bytes=500 * GIB)
HOST = Host(mounts=(MOUNT,), now=NOW, synchronised=True, limits={"nofile": 65536})


def states(place: Workplace = PLACE, host: Host = HOST, role: Role = "connected") -> dict[str, str]:
    return {row.name: row.state for row in host_rows(place, host, role)}


def test_a_good_host_is_ok_throughout() -> None:
    assert set(states().values()) == {"ok"}
    assert set(states(role="closed").values()) == {"ok"}


@pytest.mark.parametrize(
    ("name", "state", "place", "host"),
    [
        ("Python", "fail", {"python": "3.9.2"}, {}),
        ("packages", "fail", {"packages": (Package(extra="", name="rich"),)}, {}),
        ("packages", "unknown", {"packages": ()}, {}),
        ("extra connected", "fail", {"packages": (Package(extra="connected", name="x"),)}, {}),
        ("extra review", "ok", {"packages": (Package(extra="review", name="x"),)}, {}),
        ("uv", "fail", {"programs": (Program(name="uv", fault="no such command"),)}, {}),
        ("openssl", "warn", {"programs": (Program(name="openssl", version="1.1.1k"),)}, {}),
        ("unshare", "warn", {"programs": (Program(name="unshare", fault="denied"),)}, {}),
        ("disk /srv/llm", "warn", {}, {"free_bytes": 20 * GIB}),
        ("disk /srv/llm", "fail", {}, {"free_bytes": GIB}),
        ("disk /srv/llm", "unknown", {}, {"path": "/elsewhere"}),
        ("kind /srv/llm", "fail", {}, {"file_system": "vfat"}),
        ("kind /srv/llm", "fail", {}, {"noexec": True}),
        ("kind /srv/llm", "fail", {}, {"read_only": True}),
        ("kind /srv/llm", "warn", {}, {"network": True}),
        ("write /srv/llm", "fail", {"writable": False}, {}),
        ("names /srv/llm", "fail", {"case_sensitive": False}, {}),
        ("mode /srv/llm", "warn", {"open_to_others": True}, {}),
        ("clock", "fail", {"code_from": "2026-06-01T00:00:00Z"}, {}),
        ("clock", "unknown", {"code_from": ""}, {}),
        ("text", "warn", {"encoding": "ascii"}, {}),
        ("key k.key.pem", "fail", {"keys": (KeyFile(path="k.key.pem", mode=0o644),)}, {}),
    ],
)
def test_each_row_in_each_state(
    name: str, state: str, place: dict[str, Any], host: dict[str, Any]
) -> None:
    folder = {key: place.pop(key) for key in list(place) if key in Folder.model_fields}
    seen = PLACE.model_copy(
        update={**place, "folders": (PLACE.folders[0].model_copy(update=folder),)}
    )
    rows = states(seen, HOST.model_copy(update={"mounts": (MOUNT.model_copy(update=host),)}))
    assert rows[name] == state


@pytest.mark.parametrize(("most", "state"), [(None, "ok"), (1024, "ok"), (256, "warn")])
def test_open_files(most: int | None, state: str) -> None:
    assert states(host=HOST.model_copy(update={"limits": {"nofile": most}}))["open files"] == state


def test_gpus_matter_where_they_serve() -> None:
    none = Devices(fault="no driver")
    assert [row.state for row in device_rows(none, "connected")] == ["ok"]
    assert [row.state for row in device_rows(none, "closed")] == ["warn"]
    bad = GpuState(
        index=0, name="NVIDIA H200", ecc_errors=2, processes=(GpuProcess(pid=1, alive=False),)
    )
    rows = list(device_rows(Devices(driver="570", gpus=(bad,)), "closed"))
    assert [row.state for row in rows] == ["ok", "ok", "fail", "warn"]


@pytest.mark.parametrize(
    ("answer", "state"),
    [({"status": 200}, "ok"), ({"status": 404}, "warn"), ({"status": 401}, "fail"),
     ({"status": 503}, "fail"), ({"fault": "refused"}, "fail")],
)  # fmt: skip
def test_indexes(answer: dict[str, Any], state: str) -> None:
    [row] = index_rows([Answer(what="index", url="http://i", **answer)])
    assert row.state == state
    assert bool(row.fix) is (state != "ok")


def test_hub_cache_and_servers_clocks() -> None:
    there = Answer(what="Hub", url="http://h", status=200, date="2026-05-01T00:00:09Z")
    late = there.model_copy(update={"date": "2026-05-01T02:00:00Z"})
    assert [row.state for row in hub_rows(there, token=True)] == ["ok", "ok"]
    assert next(hub_rows(Answer(what="Hub", url="h", fault="x"), token=False)).state == "fail"
    assert [clock_row([a], NOW).state for a in (there, late)] == ["ok", "warn"]
    assert clock_row([], NOW).state == "unknown"
    damaged = StoreHealth(path="/c", files=1, doubtful=("ab" * 32,))
    assert [row.state for row in store_rows(damaged)] == ["ok", "warn"]


def test_a_store_whose_object_was_cut_short_is_doubted(tmp_path: Path) -> None:
    from bundler.build.store import ContentStore

    store = ContentStore(tmp_path)
    incoming = tmp_path / "incoming"
    incoming.write_bytes(b"abc")
    blob = store.admit(incoming, "x")
    assert not look_at_store(tmp_path).doubtful
    blob.path.write_bytes(b"ab")
    assert look_at_store(tmp_path).doubtful == (blob.path.name,)
    assert look_at_store(tmp_path / "none").files == 0


def rows_of(root: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, str]]:
    capsys.readouterr()
    code = run(["doctor", "--role", "closed", "--root", str(root), "--json"])
    answer = json.loads(capsys.readouterr().out)
    return code, {row["name"]: row["state"] for row in answer["rows"]}


@pytest.mark.slow
def test_a_root_in_every_state(
    session_bundle: SmallBundle, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small, root = session_bundle, tmp_path / "root"
    assert rows_of(root, capsys)[1]["root"] == "ok"
    assert not root.exists()
    part = tmp_path / "stick"
    part.mkdir()
    for path in small.out.iterdir():
        if path.is_file() and not path.name.endswith("vol002.zip"):
            shutil.copy(path, part)
    key = ["--key", str(small.public), "--root", str(root), "--quiet"]
    assert run(["import", str(part), *key]) != 0
    half = rows_of(root, capsys)[1]
    [name] = [one for one in half if one.startswith("import ")]
    assert half[name] == "warn"
    assert run(["import", str(small.out), *key]) == 0
    (root / "releases" / "gone-123").mkdir(parents=True)
    (root / "secrets").mkdir()
    (root / "secrets" / "port-1.key").write_text("k")
    os.chmod(root / "secrets" / "port-1.key", 0o644)
    code, rows = rows_of(root, capsys)
    assert code == EXIT_FAIL
    assert rows[name] == "ok"
    assert rows["release gone-123"] == "warn"
    assert rows[f"key {root}/secrets/port-1.key"] == "fail"
    (root / "secrets" / "port-1.key").chmod(0o600)
    manifest = root / "bundles" / name.removeprefix("import ") / "manifest.json"
    manifest.write_bytes(manifest.read_bytes().replace(b"toy", b"boy", 1))
    assert rows_of(root, capsys)[1][name] == "fail"


@pytest.mark.slow
def test_while_another_command_works_it_looks_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from bundler.deploy.root import Root

    root = Root(tmp_path / "root")
    with root.alone():
        assert rows_of(root.path, capsys)[1]["root"] == "warn"


def test_the_probe_sees_this_very_process(tmp_path: Path) -> None:
    key = tmp_path / "a.key.pem"
    key.touch(0o640)
    seen = wiring.workplace_probe().look((tmp_path, tmp_path / "x" / "y"), (key, tmp_path / "none"))
    assert seen.keys == (KeyFile(path=str(key), mode=key.stat().st_mode & 0o777),)
    assert [folder.exists for folder in seen.folders] == [True, False]
    assert seen.folders[0].case_sensitive is True
    installed = {one.name: one.version for one in seen.packages}
    assert installed["pydantic"]
    assert "pytest" not in installed


@pytest.mark.slow
def test_connected_with_servers_on_the_loopback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from bundler import connecting
    from bundler.demo.hub import LoopbackHub
    from bundler.domain.hostindex import HostIndex
    from tests.fakes.simple_index import serving

    monkeypatch.chdir(tmp_path)
    with serving(tmp_path / "wheels") as index, LoopbackHub(tmp_path) as hub:
        (index.folder / "pip-1.0-py3-none-any.whl").write_bytes(b"")
        host = HostIndex(
            default_index=index.url.replace("://", "://user:geheim@"),
            extra_indexes=("http://127.0.0.1:9/simple", (tmp_path / "wheels").as_uri()),
        )
        monkeypatch.setattr(connecting, "reading_host", lambda: lambda: host)
        monkeypatch.setattr(connecting, "hub_access", lambda: (hub, True))
        code = run(["doctor", "--role", "connected", "--json", "--timeout", "3"])
    text = capsys.readouterr().out
    assert "geheim" not in text
    rows = {row["name"]: row for row in json.loads(text)["rows"]}
    found = {
        name.partition(" ")[2]: row["state"]
        for name, row in rows.items()
        if name.startswith("index ")
    }
    assert sorted(found.values()) == ["fail", "ok", "ok"]
    assert rows[f"Hub {hub}/api/models?limit=1"]["state"] == "ok"
    assert rows["Hub token"]["found"] == "there"
    assert code == EXIT_FAIL
