"""Write docs/man/airbundle.1 from the commands: `python -m scripts.gen_man`."""

from pathlib import Path

from bundler.cli.man_cmds import page

PAGE = Path(__file__).parent.parent / "docs" / "man" / "airbundle.1"


def main() -> None:
    """Write it."""
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
