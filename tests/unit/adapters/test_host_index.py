"""What pip and uv are configured with is what a build uses: read through the real pip."""

import sys
from pathlib import Path

import pytest

from bundler.adapters.host_index import read_host_index
from bundler.adapters.process import LocalProcesses
from bundler.errors import ToolError


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A host where nothing is configured."""
    import os

    for name in list(os.environ):
        if name.startswith(("PIP_", "UV_")) or name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"):
            monkeypatch.delenv(name)
    config = tmp_path / "pip.conf"
    config.write_text("")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "none"))
    return config


def read():  # type: ignore[no-untyped-def]
    return read_host_index(LocalProcesses(), python=sys.executable)


def test_files_and_environment_are_read_with_pips_precedence(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare.write_text(
        "[global]\nindex-url = https://a.invalid/simple\nextra-index-url =\n  https://b.invalid/s\n"
        "  https://c.invalid/s\ncert = /ca.pem\ntrusted-host = b.invalid\n[install]\nfind-links = /w1 /w2\n"
    )
    found = read()
    assert found.default_index == "https://a.invalid/simple"
    assert found.extra_indexes == ("https://b.invalid/s", "https://c.invalid/s")
    assert found.find_links == ("/w1", "/w2")
    assert str(found.cert) == "/ca.pem"
    assert found.trusted_hosts == ("b.invalid",)
    monkeypatch.setenv("PIP_INDEX_URL", "https://env.invalid/simple")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert read().default_index == "https://env.invalid/simple"
    assert read().no_index


def test_an_unconfigured_host_gives_nothing(bare: Path) -> None:
    found = read()
    # Debian's own pip.conf may still name a certificate; nothing else comes from nowhere.
    assert found.default_index is None
    assert found.find_links == ()


def test_uvs_own_default_index_keeps_its_place(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bare.write_text("[global]\nindex-url = https://a.invalid/simple\n")
    config = bare.parent / "xdg" / "uv" / "uv.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[[index]]\nurl = "https://uv.invalid/simple"\ndefault = true\n')
    found = read()
    assert found.default_index is None
    assert found.extra_indexes == ("https://a.invalid/simple",)
    config.unlink()
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://uv.invalid/simple")
    assert read().default_index is None


def test_a_python_without_pip_is_no_error(bare: Path, tmp_path: Path) -> None:
    import venv

    venv.create(tmp_path / "v", with_pip=False)
    found = read_host_index(LocalProcesses(), python=str(tmp_path / "v" / "bin" / "python"))
    assert found.default_index is None


def test_credentials_of_uvs_indexes_are_known_to_the_downloads(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = bare.parent / "uv.toml"
    config.write_text('[[index]]\nname = "corp-a"\nurl = "https://a.invalid/simple"\n')
    monkeypatch.setenv("UV_CONFIG_FILE", str(config))
    monkeypatch.setenv("UV_INDEX_CORP_A_USERNAME", "me")
    monkeypatch.setenv("UV_INDEX_CORP_A_PASSWORD", "p@ss")
    monkeypatch.setenv("UV_INDEX", "b=https://u:v@b.invalid/simple")
    monkeypatch.setenv("UV_INSECURE_HOST", "c.invalid")
    found = read()
    assert found.uv_indexes == (
        "https://u:v@b.invalid/simple",
        "https://me:p%40ss@a.invalid/simple",
    )
    assert found.trusted_hosts == ("c.invalid",)


def test_a_broken_configuration_is_one_line(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = bare.parent / "uv.toml"
    config.write_text("not toml")
    monkeypatch.setenv("UV_CONFIG_FILE", str(config))
    with pytest.raises(ToolError, match=r"uv\.toml"):
        read()
    config.write_text("")
    bare.write_text("nonsense\n")
    with pytest.raises(ToolError, match="pip config list"):
        read()


@pytest.mark.parametrize(
    "data",
    [b"not toml", b"\xff\xfe", b"pip = 3", b"index = 3", b"index = [3]", b"[[index]]\nurl = 3",
     b"index-url = 3", b'extra-index-url = "https://a"'],
)  # fmt: skip
def test_a_uv_toml_that_uv_would_refuse_is_one_line(
    bare: Path, monkeypatch: pytest.MonkeyPatch, data: bytes
) -> None:
    config = bare.parent / "uv.toml"
    config.write_bytes(data)
    monkeypatch.setenv("UV_CONFIG_FILE", str(config))
    with pytest.raises(ToolError, match=r"reading .*uv\.toml: ") as caught:
        read()
    assert "\n" not in str(caught.value)


def test_a_uv_toml_that_cannot_be_opened_is_one_line(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> str:
        raise PermissionError(13, "Permission denied")

    config = bare.parent / "uv.toml"
    config.touch()
    monkeypatch.setenv("UV_CONFIG_FILE", str(config))
    for method in ("is_file", "read_text"):
        with monkeypatch.context() as patch:
            patch.setattr(Path, method, refuse)
            with pytest.raises(ToolError, match=r"uv\.toml: .*Permission denied"):
                read()


def test_an_address_that_is_none_is_one_line(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_INDEX", "a=https://[h/simple")
    monkeypatch.setenv("UV_INDEX_A_USERNAME", "me")
    with pytest.raises(ToolError, match="UV_INDEX: "):
        read()


def test_a_user_without_a_home_has_no_configuration(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setattr(Path, "home", homeless)
    assert read().default_index is None
