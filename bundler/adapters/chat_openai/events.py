"""Cuts bytes into the data of server-sent events."""

from __future__ import annotations

from bundler.adapters.chat_openai.safe_text import failure, message

DONE = "[DONE]"
_MOST_LINE = 2**20


class Events:
    """Follows https://html.spec.whatwg.org/multipage/server-sent-events.html as far as engines use it.

    Every `data` line is an event of its own, as OpenAI's API promises. Lines are cut as bytes, so a
    character that is split over two reads is whole again before it is decoded.
    """

    def __init__(self, most: int) -> None:
        """`most` bytes are what the whole answer may have."""
        self._rest = b""
        self._left = most
        self.done = False

    @property
    def inside(self) -> bool:
        """Whether the last bytes were the beginning of a line."""
        return bool(self._rest)

    def count(self, size: int) -> None:
        """So many bytes more have come.

        Raises:
            EngineError: more than an answer can need.
        """
        self._left -= size
        if self._left < 0:
            raise failure("the engine streams far more than was asked for")

    def feed(self, data: bytes) -> list[str]:
        """The events that are complete with these bytes, up to the one that ends the answer.

        Raises:
            EngineError: an error event, or more bytes than an answer can need.
        """
        self.count(len(data))
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(data) + len(self._rest) > _MOST_LINE and any(
            len(line) > _MOST_LINE for line in (*lines, self._rest)
        ):
            raise failure(f"an event of over {_MOST_LINE // 2**20} MiB")
        events = []
        for line in lines:
            if not line:
                continue
            name, _, value = line.strip(b"\r").partition(b":")
            if name == b"error":  # llama.cpp has sent failures in a field of this name
                raise failure(f"the engine reported: {message(value)}")
            if name != b"data":
                continue
            text = value.decode("utf-8", errors="replace").strip()
            if text == DONE:
                self.done = True
                break
            events.append(text)
        return events
