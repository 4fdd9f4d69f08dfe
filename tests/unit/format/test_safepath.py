"""Paths that may be in a bundle, and those that may not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundler.errors import FormatError
from bundler.format.safepath import check_path, check_paths

REFUSED = [
    "", "/etc/passwd", "../x", "a/../b", "a//b", "./a", "a/.", "a\\b", "C:x", "a\0b", "a\nb",
    "con", "NUL.txt", "a/COM1", "lpt9.log", "trailing.", "trailing ", "x" * 300, "a?b", "a*b",
    "e\u0301", "\ud800",
]  # fmt: skip


@pytest.mark.parametrize("path", REFUSED)
def test_hostile_paths_are_refused(path: str) -> None:
    with pytest.raises(FormatError):
        check_path(path)


@pytest.mark.parametrize(
    "path", ["a", "models/모델/파일.gguf", "wheels/x-1+cpu.whl", ".gitattributes"]
)
def test_ordinary_paths_are_accepted(path: str) -> None:
    assert check_path(path) == path


@pytest.mark.parametrize("paths", [["A/b", "a/B"], ["straße", "STRASSE"], ["a", "a/b"], ["x", "x"]])
def test_clashes_are_refused(paths: list[str]) -> None:
    with pytest.raises(FormatError):
        check_paths(paths)


@given(st.text(max_size=40))
def test_an_accepted_path_never_leaves_its_folder(text: str) -> None:
    import posixpath

    try:
        check_path(text)
    except FormatError:
        return
    joined = posixpath.normpath(posixpath.join("/base", text))
    assert joined.startswith("/base/")
    assert joined == "/base/" + text
