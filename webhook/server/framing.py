"""Where a request ends, strictly. gunicorn's C parser also takes a bare LF as a line end, and chunk sizes modulo 2 to the 64.

A proxy that reads the same bytes in another way would see other requests in them.
"""

import re
from collections.abc import Callable

from webhook.errors import RequestError, TooLarge
from webhook.server.body import MAX_BODY

LINE_BYTES = 1 << 10  # for the size of a chunk and its extensions
FRAMING_BYTES = 64 << 10  # of sizes and extensions; each byte of body permits one more

_SIZE = re.compile(rb"([0-9A-Fa-f]+)(?:;[^\r\n]*)?\r\n")


class HeadLines:
    """Checks the line ends of heads, which may arrive in pieces."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last = b""  # bytes of the piece before, where a line end may begin

    def check(self, piece: bytes) -> None:
        """Check a piece of a head; what follows the head is not checked.

        Raises:
            RequestError: a line ends with a bare LF.
        """
        piece = self._last + piece
        end = piece.find(b"\r\n\r\n", 1)  # at 0 it would be before the head
        self._last = piece[-4:].lstrip(b"\n") if end < 0 else b""
        lines = piece if end < 0 else piece[:end]
        if lines.count(b"\n") != lines.count(b"\r\n"):
            raise RequestError("a line of the head ends with a bare LF; end it with CR LF")


class ChunkedBody:
    """Decodes a chunked body without trailers."""

    __slots__ = ("_framing", "_left", "_line", "_on_data", "_take_line")

    def __init__(self, on_data: Callable[[bytes], None]) -> None:
        """Begin.

        Args:
            on_data: takes each piece of the body.
        """
        self._on_data = on_data
        self._take_line = ChunkedBody._read_size  # the next one; not bound, because that would be a cyclic reference
        self._line = b""
        self._left = 0  # bytes of the current chunk
        self._framing = 0

    def feed(self, data: bytes) -> bytes | None:
        """Decode.

        Returns:
            The bytes after the body; None if it goes on.

        Raises:
            RequestError: it is malformed.
            TooLarge: a chunk is larger than a body may be.
        """
        at = 0
        while at < len(data):
            if self._left:
                piece = data[at : at + self._left]
                at += len(piece)
                self._left -= len(piece)
                self._framing = max(0, self._framing - len(piece))
                self._on_data(piece)
                continue
            end = data.find(b"\n", at) + 1 or len(data)
            self._line += data[at:end]
            at = end
            if len(self._line) > LINE_BYTES or self._framing > FRAMING_BYTES:
                raise RequestError("the chunks are too small, or their extensions too long; send larger chunks")
            if self._line.endswith(b"\n"):
                line, self._line = self._line, b""
                self._framing += len(line)
                if self._take_line(self, line):
                    return data[at:]
        return None

    # Each takes a line, and returns whether the body ends with it.

    def _read_size(self, line: bytes) -> bool:
        size = _SIZE.fullmatch(line)
        if size is None:
            raise RequestError("the size of a chunk is malformed; write it in hexadecimal, and end the line with CR LF")
        self._left = int(size[1], 16)
        if self._left > MAX_BODY:
            raise TooLarge(f"a chunk has more than {MAX_BODY} bytes, the most that is read of a body")
        self._take_line = ChunkedBody._end_chunk if self._left else ChunkedBody._end_body
        return False

    def _end_chunk(self, line: bytes) -> bool:
        if line != b"\r\n":
            raise RequestError("a chunk is longer than its size")
        self._take_line = ChunkedBody._read_size
        return False

    def _end_body(self, line: bytes) -> bool:
        if line != b"\r\n":
            raise RequestError("trailers are not supported; leave them out")
        return True
