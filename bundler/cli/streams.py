r"""Standard output and error as streams of safe lines.

Text may hold the names of strangers' files: whatever would steer the terminal, or cannot be written in its
encoding, is shown as an escape such as `\x1b`. A stream that is closed takes nothing and breaks nothing.
rich draws on terminals; a pipe or a file gets plain lines without it, since loading it takes longer than a
small command's own work.
"""

from __future__ import annotations

import codecs
import os
import re
import sys
import threading
from typing import TYPE_CHECKING, TextIO

from bundler.cli import language

if TYPE_CHECKING:
    from rich.console import Console

# Into a pipe or a file, lines are as long as they are: a digest must not be folded.
_WIDE = 240
# Control characters but tab and newline, and marks that reorder a line.
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()


class Stream:
    """Standard output or error, whatever `sys` holds for it at the moment."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._drawn: Console | None = None
        self._drawn_on_terminal = False

    @property
    def file(self) -> TextIO | None:
        """The stream; None when Python was started with the descriptor closed."""
        file: TextIO | None = getattr(sys, self._name)
        return file

    @property
    def encoding(self) -> str:
        """The encoding of what is written, UTF-8 where the stream does not say."""
        return (getattr(self.file, "encoding", None) or "utf-8").lower()

    @property
    def is_terminal(self) -> bool:
        """Whether to draw: on a terminal, or where the environment asks for it as rich documents."""
        if plain_wanted():
            return False
        if os.environ.get("FORCE_COLOR") or os.environ.get("TTY_COMPATIBLE") == "1":
            return True
        try:
            return self.file is not None and self.file.isatty()
        except ValueError:  # closed by what runs us
            return False

    @property
    def width(self) -> int:
        """Columns."""
        return self.drawn.width if self.is_terminal else _WIDE

    @property
    def drawn(self) -> Console:
        """Where rich draws: with escape codes on a terminal alone, whatever rich itself would make of it."""
        terminal = self.is_terminal
        if self._drawn is None or self._drawn_on_terminal != terminal:
            from bundler.cli.drawing import Drawn

            stderr = self._name == "stderr"
            width = None if stderr or terminal else _WIDE
            self._drawn = Drawn(
                stderr=stderr, highlight=False, soft_wrap=True, width=width, force_terminal=terminal
            )
            self._drawn_on_terminal = terminal
        return self._drawn

    def shown(self, text: str) -> str:
        """The text with all that is unsafe or unwritable as escapes."""
        safe = _STEERING.sub(_escaped, text)
        return safe.encode(self.encoding, "backslashreplace").decode(self.encoding)

    @property
    def korean(self) -> bool:
        """Whether Korean is wanted and can be shown here."""
        return language.korean() and language.can_show(self.encoding)

    def spoken(self, text: str) -> str:
        """A message in the reader's language."""
        if not self.korean:
            return text
        from bundler.cli.korean import translate

        return "\n".join(map(translate, text.split("\n")))

    def word(self, text: str) -> str:
        """A heading, a label or a state in the reader's language."""
        if not self.korean:
            return text
        from bundler.cli.korean import word

        return word(text)

    def unit(self, text: str) -> str:
        """What is counted, in the reader's language."""
        if not self.korean:
            return text
        from bundler.cli.korean import unit

        return unit(text)

    def line(self, text: str, style: str = "") -> None:
        """One message, in the reader's language and made safe."""
        self.verbatim(self.spoken(text), style)

    def verbatim(self, text: str, style: str = "") -> None:
        """A line as it is, such as an engine's log has it, made safe."""
        if self.is_terminal:
            from rich.text import Text

            self.drawn.print(Text(self.shown(text), style=style))
        elif self.file is not None:
            try:
                self.file.write(self.shown(text) + "\n")
                self.file.flush()
            except BrokenPipeError:
                self._end()

    def _end(self) -> None:
        """End as rich does when nobody reads any more; a helper thread leaves that to the main one."""
        if threading.current_thread() is not threading.main_thread():
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1)


def plain_wanted() -> bool:
    """Whether the user wants no escape codes at all (https://no-color.org): plain lines, as into a pipe."""
    return bool(os.environ.get("NO_COLOR"))


OUT = Stream("stdout")
ERR = Stream("stderr")


def unicode_out() -> bool:
    """Whether the output can draw block characters."""
    return codecs.lookup(OUT.encoding).name == "utf-8"
