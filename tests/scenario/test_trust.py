"""Keys and roles, approvals, rotation, revocation, older bundles: through the command line."""

import json
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from bundler import wiring
from bundler.cli.app import run
from bundler.domain.trust import Approval
from bundler.format import layout
from bundler.format.codec import parse_manifest, to_bytes
from bundler.format.statements import read_statement
from tests.fakes.small_bundle import SmallBundle

pytestmark = pytest.mark.slow


class Place:
    """A supplier's bundle, some people with keys, and a closed site."""

    def __init__(
        self, small: SmallBundle, folder: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.small, self.folder, self.capsys = small, folder, capsys
        self.root = folder / "root"
        self.keys = folder / "people"
        self.ids = {name: self.pair(name) for name in ("reviewer", "second", "next")}
        self.ids["builder"] = wiring.verifier(small.public).key_id

    @property
    def bundle(self) -> Path:
        return self.small.out

    def pair(self, name: str) -> str:
        return wiring.generate_keys(self.private(name), self.public(name))

    def private(self, name: str) -> Path:
        return self.small.private if name == "builder" else self.keys / f"{name}.key.pem"

    def public(self, name: str) -> Path:
        return self.small.public if name == "builder" else self.keys / f"{name}.pub.pem"

    def do(self, *words: object, code: int = 0) -> str:
        found = run([str(word) for word in words])
        captured = self.capsys.readouterr()
        assert found == code, captured.out + captured.err
        return " ".join((captured.out + captured.err).split())

    def policy(self, *, code: int = 0, replace: bool = False, **changes: Any) -> str:
        keys = [
            {"role": "builder", "file": str(self.public("builder")), "note": "공급사"},
            {"role": "reviewer", "file": "people/reviewer.pub.pem", "note": "보안팀"},
            {"role": "reviewer", "file": "people/second.pub.pem"},
        ]
        wanted = {"require": ["builder", "reviewer"], "keys": keys, **changes}
        path = self.folder / "policy.yaml"
        path.write_text(yaml.safe_dump(wanted, allow_unicode=True), encoding="utf-8")
        more = ["--replace"] if replace else []
        return self.do("trust", "use", path, "--root", self.root, *more, code=code)

    def approve(self, who: str = "reviewer", *more: object, verb: str = "approve",
                code: int = 0, folder: Path | None = None) -> str:  # fmt: skip
        return self.do(
            verb, folder or self.bundle, "--by", "김보안", "--sign-with", self.private(who),
            "--key", self.small.public, "--quiet", *more, code=code,
        )  # fmt: skip

    def bring(self, *more: object, code: int = 0) -> str:
        return self.do("import", self.bundle, "--root", self.root, "--quiet", *more, code=code)

    def verify(self, code: int = 0) -> str:
        return self.do("verify", self.bundle, "--root", self.root, "--quiet", code=code)

    def install(self, code: int = 0, bundle: str | None = None) -> str:
        words = ["install", *([bundle] if bundle else []), "--root", self.root, "--quiet"]
        return self.do(*words, code=code)

    def statement(self, kind: str, who: str) -> Path:
        return self.bundle / layout.statement_name(kind, self.ids[who])

    @property
    def bundle_id(self) -> str:
        data = (self.bundle / layout.MANIFEST).read_bytes()
        from bundler.format.digests import sha256_hex

        return f"{parse_manifest(data).name}-{sha256_hex(data)[:12]}"


def at(monkeypatch: pytest.MonkeyPatch, seconds: int) -> None:
    """Set this host's clock."""
    text = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
    monkeypatch.setattr(wiring, "wall_time", lambda: text)


@pytest.fixture
def place(session_bundle: SmallBundle, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Place:
    return Place(session_bundle.copy(tmp_path), tmp_path, capsys)


def test_a_bundle_is_installed_only_when_every_required_role_has_vouched(place: Place) -> None:
    assert "requires builder, reviewer" in place.policy()
    assert "requires reviewer" in place.verify(code=8)
    # It may come in, so that it can be reviewed here; it is not installed.
    place.bring()
    assert "requires reviewer" in place.install(code=8)
    assert place.do("status", "--root", place.root).count("requires reviewer") == 1
    place.approve("reviewer", "--expires", "2999-12-31")
    assert "OK" in place.verify()
    said = place.do("trust", "add", place.statement("approval", "reviewer"), "--root", place.root)
    assert "approved by 김보안" in said
    assert "installed" in place.install()


def test_an_approval_beside_the_bundle_comes_in_with_it(place: Place) -> None:
    place.policy()
    place.approve()
    place.bring()
    assert place.statement("approval", "reviewer").name in [
        path.name for path in (place.root / "bundles" / place.bundle_id).rglob("*.json")
    ]
    place.install()


def test_two_reviewers_are_two_keys(place: Place) -> None:
    place.policy(require=["builder", "reviewer", "reviewer"])
    place.approve("reviewer")
    assert "requires reviewer" in place.verify(code=8)
    place.approve("second")
    place.verify()


def test_an_approval_of_another_bundle_or_by_a_stranger_counts_for_nothing(place: Place) -> None:
    place.policy()
    place.approve("next")
    assert "requires reviewer" in place.verify(code=8)
    said = read_statement(
        Approval, place.statement("approval", "next"), wiring.verifier(place.public("next"))
    )
    other = said.model_copy(update={"manifest_sha256": "0" * 64})
    signer = wiring.signer(place.private("reviewer"))
    path = place.statement("approval", "reviewer")
    path.write_bytes(to_bytes(other))
    path.with_name(path.name + ".sig").write_bytes(signer.sign(to_bytes(other)))
    assert "requires reviewer" in place.verify(code=8)


def test_a_changed_approval_is_refused(place: Place) -> None:
    place.policy()
    place.approve("reviewer", "--expires", "2030-01-01")
    path = place.statement("approval", "reviewer")
    path.write_bytes(path.read_bytes().replace(b"2030", b"2099"))
    assert "was changed" in place.verify(code=8)
    path.with_name(path.name + ".sig").unlink()
    assert "no signature" in place.verify(code=8)


def test_an_expired_approval_lets_nothing_in(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.policy()
    place.approve("reviewer", "--expires", "2030-06-01")
    place.bring()
    at(monkeypatch, 1906588799)  # 2030-06-01T23:59:59Z
    assert "expired at 2030-06-01T23:59:59Z" in place.install(code=8)
    at(monkeypatch, 1906588798)
    place.install()


def test_a_rejection_outweighs_every_approval_until_its_own_key_approves(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.policy()
    place.approve("reviewer")
    place.approve("second", "--comment", "CVE-2026-0001", verb="reject")
    refused = place.bring(code=8)
    assert "rejected by 김보안" in refused
    assert "CVE-2026-0001" in refused
    assert not (place.root / "bundles").exists()
    at(monkeypatch, 4000000000)
    place.approve("second")
    place.bring()
    place.install()


def test_an_older_decision_does_not_come_back(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.policy()
    at(monkeypatch, 1800000000)
    place.approve("reviewer")
    old = place.folder / "old"
    old.mkdir()
    for path in place.bundle.glob("approval-*"):
        shutil.copy(path, old)
    place.bring()
    at(monkeypatch, 1800000001)
    place.approve("reviewer", verb="reject")
    path = place.statement("approval", "reviewer")
    place.do("trust", "add", path, "--root", place.root)
    place.install(code=8)
    place.do("trust", "add", old / path.name, "--root", place.root)
    assert "rejected" in place.install(code=8)


def test_who_builds_cannot_review(place: Place) -> None:
    assert "cannot review" in place.approve("builder", code=8)
    place.policy()
    place.approve("reviewer", "--role", "builder")
    assert "is of role reviewer here" in place.verify(code=8)
    keys = [
        {"role": role, "file": str(place.public("builder"))} for role in ("builder", "reviewer")
    ]
    assert "twice" in place.policy(keys=keys, replace=True, code=8)


def test_nobody_approves_what_is_damaged_and_anybody_may_reject_it(place: Place) -> None:
    volume = place.small.volumes()[0]
    data = bytearray(volume.read_bytes())
    data[1000] ^= 1
    volume.write_bytes(data)
    place.approve(code=7)
    assert not place.statement("approval", "reviewer").exists()
    place.approve(verb="reject")


def test_an_approval_is_checked_with_openssl_alone(place: Place) -> None:
    place.approve()
    path = place.statement("approval", "reviewer")
    done = subprocess.run(
        ["openssl", "pkeyutl", "-verify", "-rawin", "-pubin", "-inkey", place.public("reviewer"),
         "-sigfile", path.with_name(path.name + ".sig"), "-in", path],
        capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"require": ["builder", "auditor"]}, "1 key(s) of role auditor"),
        ({"require": ["Builder"]}, "require.0"),
        ({"keys": [{"role": "builder", "file": "nothing.pem"}]}, "no such key file"),
        ({"keys": [{"role": "builder", "pem": "text"}]}, "not a PEM public key"),
        ({"keys": [{"role": "builder", "file": "a", "pem": "b"}]}, "not both"),
        ({"downgrade": "maybe"}, "downgrade"),
        ({"requires": []}, "requires"),
        ({"keys": "all"}, "keys"),
        ({"revoked": [{"what": "me", "reason": "x"}]}, "revoked"),
    ],
)
def test_a_policy_that_cannot_be_is_refused(
    place: Place, changes: dict[str, Any], words: str
) -> None:
    if "keys" in changes and "require" not in changes:
        changes = {"require": ["builder"], **changes}
    path = place.folder / "policy.yaml"
    keys = [{"role": "builder", "file": str(place.public("builder"))}]
    path.write_text(yaml.safe_dump({"require": ["builder"], "keys": keys, **changes}))
    found = run(["trust", "use", str(path), "--root", str(place.root)])
    assert found in (19, 22)
    assert words in " ".join(place.capsys.readouterr().err.split())
    assert not (place.root / "trust" / "policy.json").exists()


def test_a_policy_in_force_is_not_gone_round(place: Place) -> None:
    place.policy()
    assert "not in the policy" in place.bring("--key", place.public("next"), code=8)
    place.bring("--unsigned", code=8)
    place.bring("--key", place.public("builder"))
    assert "another policy" in place.policy(require=["builder"], code=17)
    place.policy(require=["builder"], replace=True)
    place.install()


def test_a_policy_that_no_longer_has_the_builder_stops_what_came_in(place: Place) -> None:
    place.bring("--key", place.public("builder"))
    keys = [{"role": "builder", "file": str(place.public("next"))}]
    place.policy(require=["builder"], keys=keys)
    assert "not in the policy" in place.install(code=8)


def test_a_key_hands_over_to_the_next(place: Place) -> None:
    keys = [{"role": "builder", "file": str(place.public("builder")), "note": "공급사"}]
    place.policy(require=["builder"], keys=keys)
    place.bring()
    shutil.copytree(place.bundle, place.folder / "again")
    place.do("trust", "rotate", "--old", place.private("builder"), "--new", place.public("next"),
             "--out", place.bundle, "--reason", "yearly")  # fmt: skip
    rotation = place.statement("rotation", "builder")
    # A bundle by the next key: the rotation that came along is not believed by itself.
    place.do("sign", place.bundle, "--key", place.private("next"), "--replace")
    refused = place.verify(code=8)
    assert rotation.name in refused
    assert "trust add" in refused
    said = place.do("trust", "add", rotation, "--root", place.root)
    assert f"{place.ids['next']} follows key {place.ids['builder']}" in said
    place.verify()
    # What the old key let in stays usable; it lets nothing in any more.
    place.install()
    refused = place.do("verify", place.folder / "again", "--root", place.root, code=8)
    assert f"handed over to key {place.ids['next']}" in refused
    shown = json.loads(place.do("trust", "show", "--root", place.root, "--json"))
    assert [key["key_id"] for key in shown["keys"]] == [place.ids["builder"], place.ids["next"]]
    # And on to a third.
    place.pair("third")
    place.do("trust", "rotate", "--old", place.private("next"), "--new", place.public("third"),
             "--out", place.folder)  # fmt: skip
    second = place.folder / layout.statement_name("rotation", place.ids["next"])
    place.do("trust", "add", second, "--root", place.root)
    assert "handed over" in place.verify(code=8)
    # The old key cannot name a second successor.
    place.do("trust", "rotate", "--old", place.private("builder"), "--new", place.public("second"),
             "--out", place.folder)  # fmt: skip
    again = place.folder / layout.statement_name("rotation", place.ids["builder"])
    assert "handed over" in place.do("trust", "add", again, "--root", place.root, code=8)


def test_a_revoked_bundle_neither_comes_in_nor_starts(place: Place) -> None:
    place.bring("--key", place.public("builder"))
    place.install()
    digest = json.loads(place.do("inspect", place.bundle, "--json"))["manifest_sha256"]
    place.do("trust", "revoke", digest, "--sign-with", place.private("builder"), "--reason",
             "키 유출", "--out", place.folder)  # fmt: skip
    path = place.folder / layout.statement_name("revocations", place.ids["builder"])
    words = ("trust", "add", path, "--root", place.root, "--key", place.public("builder"))
    assert "1 revoked" in place.do(*words)
    place.do(*words)
    for command in ("install", "start", "accept"):
        assert "revoked: 키 유출" in place.do(command, "--root", place.root, code=8)
    assert "revoked" in place.bring("--key", place.public("builder"), code=8)
    assert "revoked: 키 유출" in place.do("status", "--root", place.root)
    # Looking for drift goes on.
    place.do("verify", "--quick", "--root", place.root)


def test_a_list_beside_a_bundle_revokes_before_anything_comes_in(place: Place) -> None:
    place.do("trust", "revoke", place.ids["builder"], "--sign-with", place.private("reviewer"),
             "--reason", "stolen", "--out", place.bundle)  # fmt: skip
    # By a key that nobody here knows: nothing.
    place.do("verify", place.bundle, "--key", place.public("builder"), "--quiet")
    place.policy(require=["builder"])
    assert "revoked: stolen" in place.bring(code=8)


def test_nothing_that_was_revoked_comes_back(place: Place) -> None:
    """Not by another list, not by a new policy, not when the key that revoked it ends."""
    place.policy()
    place.approve("second")
    place.bring()
    digest = json.loads(place.do("inspect", place.bundle, "--json"))["manifest_sha256"]
    words = ("--sign-with", place.private("reviewer"), "--reason", "구멍")
    name = layout.statement_name("revocations", place.ids["reviewer"])
    place.do("trust", "revoke", digest, digest, *words, "--out", place.folder / "one")
    said = place.do("trust", "add", place.folder / "one" / name, "--root", place.root)
    assert "1 revoked" in said
    assert "revoked: 구멍" in place.install(code=8)
    # A list that was begun anew in another folder.
    place.do("trust", "revoke", "1" * 64, *words, "--out", place.folder / "two")
    place.do("trust", "add", place.folder / "two" / name, "--root", place.root)
    assert "revoked: 구멍" in place.install(code=8)
    place.do("trust", "rotate", "--old", place.private("reviewer"), "--new", place.public("next"),
             "--out", place.folder)  # fmt: skip
    rotation = place.folder / layout.statement_name("rotation", place.ids["reviewer"])
    place.do("trust", "add", rotation, "--root", place.root)
    assert "revoked: 구멍" in place.install(code=8)
    place.policy(
        keys=[
            {"role": "builder", "file": str(place.public("builder"))},
            {"role": "reviewer", "file": str(place.public("second"))},
        ],
        replace=True,
    )
    assert "revoked: 구멍" in place.install(code=8)
    shown = json.loads(place.do("trust", "show", "--root", place.root, "--json"))
    assert {one["what"] for one in shown["revoked"]} == {digest, "1" * 64}
    place.do("trust", "revoke", "nonsense", *words, code=3)
    place.do("trust", "add", place.folder / "nowhere" / name, "--root", place.root, code=8)


def test_a_revocation_that_is_not_there_is_not_taken_in(place: Place) -> None:
    place.policy()
    path = place.statement("revocations", "reviewer")
    place.do("trust", "add", path, "--root", place.root, code=16)


def test_who_builds_has_no_say_over_who_reviews(place: Place) -> None:
    place.policy()
    place.approve("second")
    place.approve("reviewer", verb="reject")
    place.do("trust", "revoke", place.ids["reviewer"], "--sign-with", place.private("builder"),
             "--reason", "x", "--out", place.bundle)  # fmt: skip
    assert "rejected" in place.bring(code=8)
    # Nor does a colleague take a rejection away, although their list ends the key otherwise.
    place.do("trust", "revoke", place.ids["reviewer"], "--sign-with", place.private("second"),
             "--reason", "x", "--out", place.bundle)  # fmt: skip
    assert "rejected" in place.bring(code=8)
    place.policy(revoked=[{"what": place.ids["reviewer"], "reason": "lost"}], replace=True)
    place.bring()
    place.install()
    # The reviewers still end a builder's key.
    place.do("trust", "revoke", place.ids["builder"], "--sign-with", place.private("second"),
             "--reason", "stolen", "--out", place.folder)  # fmt: skip
    path = place.folder / layout.statement_name("revocations", place.ids["second"])
    place.do("trust", "add", path, "--root", place.root)
    assert "stolen" in place.install(code=8)


def test_of_two_decisions_in_one_second_the_rejection_counts(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.policy()
    at(monkeypatch, 1_800_000_000)
    path = place.statement("approval", "reviewer")
    place.approve("reviewer")
    place.bring()
    place.approve("reviewer", verb="reject")
    assert "rejected" in place.do("trust", "add", path, "--root", place.root)
    assert "rejected" in place.install(code=8)
    at(monkeypatch, 1_799_999_999)
    place.approve("reviewer")
    said = place.do("trust", "add", path, "--root", place.root)
    assert "a later decision counts: rejected" in said


def test_no_variable_turns_the_clock_back(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.policy()
    with monkeypatch.context() as patch:
        at(patch, 1_600_000_000)
        place.approve("reviewer", "--expires", "2020-12-31")
    place.bring()
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1600000000")
    assert "expired" in place.install(code=8)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "253402300800")
    place.do("trust", "show", "--root", place.root)
    place.do("copy", place.bundle, "--to", place.folder, "--key", place.public("builder"), code=18)


def test_a_policy_as_people_write_it(place: Place) -> None:
    """Dates and ids of digits only are texts; a key that is there twice is refused."""
    path = place.folder / "policy.yaml"
    keys = f"keys:\n- {{role: builder, file: {place.public('builder')}, expires: 2099-12-31}}\n"
    path.write_text(f"{keys}revoked: [{{what: 1234567890123456, reason: lost}}]\n")
    place.do("trust", "use", path, "--root", place.root)
    path.write_text(f"require: [builder]\n{keys}require: []\n")
    assert "there twice" in place.do(
        "trust", "use", path, "--root", place.root, "--replace", code=22
    )
    for text in (
        '!!bool "abc"',
        '!!timestamp "abc"',
        '!!int ""',
        "{",
        "null",
        "2",
        "[a, b]",
        "&a [*a]",
    ):
        path.write_text(f"{keys}require: {text}\n")
        place.do("trust", "use", path, "--root", place.root, "--replace", code=22)
    (place.root / "trust" / "policy.json").unlink()
    (place.root / "trust" / "policy.json").symlink_to("nowhere")
    assert "nothing is trusted" in place.bring("--key", place.public("builder"), code=22)


def test_a_policy_may_know_the_next_key_already(place: Place) -> None:
    keys = [{"role": "builder", "file": str(place.public(name))} for name in ("builder", "next")]
    place.policy(require=["builder"], keys=keys)
    place.do("trust", "rotate", "--old", place.private("builder"), "--new", place.public("next"),
             "--out", place.folder)  # fmt: skip
    path = place.folder / layout.statement_name("rotation", place.ids["builder"])
    place.do("trust", "add", path, "--root", place.root)
    assert "handed over" in place.verify(code=8)
    place.policy(require=["builder"], keys=keys[:1], replace=True)
    place.do("trust", "show", "--root", place.root)
    # One whose next key has another role here is refused before it is in force.
    wrong = [keys[0], {"role": "reviewer", "file": str(place.public("next"))}]
    assert "another role" in place.policy(require=[], keys=wrong, replace=True, code=8)


def test_without_a_policy_no_key_hands_over(place: Place) -> None:
    place.bring("--key", place.public("builder"))
    place.do("trust", "rotate", "--old", place.private("builder"), "--new", place.public("next"),
             "--out", place.folder)  # fmt: skip
    path = place.folder / layout.statement_name("rotation", place.ids["builder"])
    words = ("trust", "add", path, "--root", place.root, "--key", place.public("builder"))
    assert "no policy" in place.do(*words, code=17)
    place.do("trust", "rotate", "--old", place.private("builder"), "--new", place.public("next"),
             "--out", place.folder, "--reason", "two\nlines", code=3)  # fmt: skip


def test_a_kill_while_a_statement_is_taken_in_locks_nothing(place: Place) -> None:
    place.policy()
    place.approve("reviewer")
    place.bring()
    half = place.root / "bundles" / place.bundle_id / "decisions" / "0123456789abcdef.new"
    half.mkdir()
    (half / place.statement("approval", "reviewer").name).write_bytes(b"half")
    place.install()


def test_an_older_bundle_is_refused_and_a_known_one_is_not(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer = place.folder / "newer"
    shutil.copytree(place.bundle, newer)
    path = newer / layout.MANIFEST
    manifest = parse_manifest(path.read_bytes())
    path.write_bytes(to_bytes(manifest.model_copy(update={"sequence": manifest.sequence + 1})))
    place.do("sign", newer, "--key", place.private("builder"), "--replace")
    key = ("--key", place.public("builder"), "--root", place.root, "--quiet")
    place.do("import", newer, *key)
    older = place.bundle_id
    refused = place.bring("--key", place.public("builder"), code=8)
    assert str(manifest.sequence + 1) in refused
    assert "--allow-downgrade" in refused
    place.bring("--key", place.public("builder"), "--allow-downgrade")
    # Both are here now: each may be completed, and installed by its name.
    place.bring("--key", place.public("builder"))
    place.do("import", newer, *key)
    place.install(bundle=older)
    # With a policy in force, the policy decides.
    shutil.rmtree(place.root / "bundles" / older)
    place.policy(require=["builder"])
    assert "downgrade: allow" in place.bring("--allow-downgrade", code=8)
    place.policy(require=["builder"], downgrade="allow", replace=True)
    place.bring()


def test_the_number_is_the_locks_time_or_the_specs(place: Place) -> None:
    manifest = parse_manifest((place.bundle / layout.MANIFEST).read_bytes())
    assert str(manifest.sequence) == "".join(filter(str.isdigit, manifest.created))


def test_a_device_signs_a_line(place: Place) -> None:
    """The private key never meets airbundle: OpenSSL stands for the device."""
    (place.bundle / layout.SIGNATURE).unlink()
    line, sign = place.folder / "line", place.folder / "line.sig"
    place.do("sign", place.bundle, "--digest-only", "--out", line)
    found = subprocess.run(
        ["sha256sum", layout.MANIFEST], cwd=place.bundle, capture_output=True, check=True
    )
    assert line.read_bytes() == found.stdout
    openssl_sign(place.private("builder"), line, sign)
    assert "signs" in place.do(
        "attach", place.bundle, sign, "--key", place.public("builder"), "--json"
    )
    place.do("verify", place.bundle, "--key", place.public("builder"), "--quiet")
    sums = subprocess.run(
        ["sha256sum", "-c", "--quiet", layout.CHECKSUMS], cwd=place.bundle, check=False
    )
    assert sums.returncode == 0
    # And the bootstrap takes it too.
    done = subprocess.run(
        ["python3", place.bundle / layout.BOOTSTRAP, "verify", "--key", place.public("builder")],
        capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_a_device_signs_a_decision(place: Place) -> None:
    place.policy()
    place.do("approve", place.bundle, "--by", "김", "--sign-later", place.public("reviewer"),
             "--key", place.public("builder"), "--quiet")  # fmt: skip
    path, sign = place.statement("approval", "reviewer"), place.folder / "sig"
    assert "no signature" in place.verify(code=8)
    openssl_sign(place.private("reviewer"), path, sign)
    place.do("attach", place.bundle, sign, "--key", place.public("reviewer"))
    place.verify()


def test_a_signature_of_something_else_is_not_attached(place: Place) -> None:
    sign = place.folder / "sig"
    before = (place.bundle / layout.SIGNATURE).read_bytes()
    openssl_sign(place.private("builder"), place.bundle / layout.READ_ME, sign)
    place.do("attach", place.bundle, sign, "--key", place.public("builder"), code=8)
    openssl_sign(place.private("next"), place.bundle / layout.MANIFEST, sign)
    place.do("attach", place.bundle, sign, "--key", place.public("builder"), code=8)
    # Another's good signature does not silently take the place of the one that is there.
    place.do("attach", place.bundle, sign, "--key", place.public("next"), code=17)
    assert (place.bundle / layout.SIGNATURE).read_bytes() == before
    sign.write_bytes(b"short")
    place.do("attach", place.bundle, sign, "--key", place.public("builder"), code=8)
    place.do("sign", place.bundle, "--key", place.private("next"), code=17)
    place.do("sign", place.bundle, "--key", place.private("builder"))


def test_statements_travel_with_a_copy(place: Place) -> None:
    place.approve()
    stick = place.folder / "stick"
    stick.mkdir()
    place.do("copy", place.bundle, "--to", stick, "--key", place.public("builder"), "--quiet")
    place.policy()
    place.do("verify", stick, "--root", place.root, "--quiet")


def openssl_sign(key: Path, path: Path, out: Path) -> None:
    subprocess.run(
        ["openssl", "pkeyutl", "-sign", "-rawin", "-inkey", key, "-in", path, "-out", out],
        check=True, capture_output=True,
    )  # fmt: skip
