"""The manual page is what the commands say, and roff has nothing against it."""

import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from bundler.build.toolwheel import write_tool_wheel
from scripts.gen_man import PAGE


def test_the_page_is_current() -> None:
    from bundler.cli.man_cmds import page

    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m scripts.gen_man"


def test_the_tools_wheel_carries_it(tmp_path: Path) -> None:
    with zipfile.ZipFile(write_tool_wheel(tmp_path)) as wheel:
        [name] = [one for one in wheel.namelist() if one.endswith("airbundle.1")]
        assert name.endswith(".data/data/share/man/man1/airbundle.1")
        assert wheel.read(name) == PAGE.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [["mandoc", "-T", "lint", "-W", "warning"], ["groff", "-man", "-ww", "-z", "-Tutf8"],
     ["man", "--warnings", "-E", "UTF-8", "-l"]],
    ids=lambda words: words[0],
)  # fmt: skip
def test_no_reader_complains(words: list[str]) -> None:
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not on this host")
    done = subprocess.run([*words, PAGE], capture_output=True, text=True)
    said = done.stdout if words[0] == "mandoc" else done.stderr
    # The page has no date, so that the same commands give the same page.
    complaints = [line for line in said.splitlines() if "missing date" not in line]
    assert not complaints
