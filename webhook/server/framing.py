"""Where a request ends, strictly: a proxy that reads the same bytes in another way would see other requests in them.

The grammar is that of RFC 9112 without what only some parsers understand: no bare LF, no folded header, no space before a
colon, no trailer, no coding but `chunked`, and never both a length and chunks.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from webhook.errors import RequestError, TooLarge

MAX_BODY = 8 << 20  # bytes; an API server sends 3 MiB at the most, twice on UPDATE
MAX_READ_SECONDS = 30.0  # Kubernetes' own limit for a webhook's timeoutSeconds
HEAD_BYTES = 64 << 10
MAX_FIELDS = 100
LINE_BYTES = 1 << 10  # for the size of a chunk and its extensions
FRAMING_BYTES = 64 << 10  # of sizes and extensions; each byte of body permits one more

_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]++"
_HEAD = re.compile(
    rb"(?:\r\n)?+(" + _TOKEN + rb") ([!-~]++) HTTP/1\.([01])\r\n((?:" + _TOKEN + rb":[\t -~\x80-\xff]*+\r\n)*+)\r\n"
)
_SIZE = re.compile(rb"([0-9A-Fa-f]+)(?:;[^\r\n]*)?\r\n")
_DURATION = re.compile(rb"(?:^|&)timeout=(?:(\d{1,3})m)?(?:(\d{1,6}(?:\.\d{1,9})?)(s|ms))?(?:&|$)")


class HeadTooLarge(RequestError, status=431, reason="RequestHeaderFieldsTooLarge"):
    """A head has too many bytes or fields."""


class Head(NamedTuple):
    """The head of a request.

    Attributes:
        path: without the query; not decoded.
        length: of the body in bytes; None if it is chunked.
        media_type: the Content-Type; empty without one.
        waits: the client sends the body only after `100 Continue`.
        closes: the connection ends after the response.
    """

    method: str
    path: str
    query: bytes
    length: int | None
    media_type: bytes
    waits: bool
    closes: bool


def read_head(received: bytes) -> tuple[Head, bytes] | None:
    """Read a head.

    Returns:
        The head and the bytes after it; None if it goes on.

    Raises:
        HeadTooLarge: it has too many bytes or fields.
        RequestError: it is malformed, or parsers could interpret it in different ways.
    """
    end = received.find(b"\r\n\r\n", 1)  # at 0 it would be before the head
    if (len(received) if end < 0 else end) > HEAD_BYTES:
        raise HeadTooLarge(f"the head has more than {HEAD_BYTES} bytes; send fewer and shorter headers")
    if end >= 0:
        return _head(received[: end + 4]), received[end + 4 :]
    if received.count(b"\n") != received.count(b"\r\n"):
        raise RequestError("a line of the head ends with a bare LF; end it with CR LF")
    return None


def _head(text: bytes) -> Head:
    match = _HEAD.fullmatch(text)
    if match is None:
        raise RequestError(
            "the head is no HTTP/1.1; write `NAME: VALUE` on one line each, and end each line with CR LF"
        )
    method, target, minor, lines = match.groups()
    fields: dict[bytes, bytes] = {}
    count = lines.count(b"\n")
    if count > MAX_FIELDS:
        raise HeadTooLarge(f"the head has {count} headers; {MAX_FIELDS} are the most that is read")
    for line in lines.split(b"\r\n")[:count]:
        name, _, value = line.partition(b":")
        name, value = name.lower(), value.strip(b" \t")
        fields[name] = fields[name] + b"," + value if name in fields else value
    if b"upgrade" in fields:
        raise RequestError("no other protocol than HTTP/1.1 is served; leave out the header Upgrade")
    path, _, query = target.partition(b"?")
    return Head(
        method=method.decode(),
        path=path.decode(),
        query=query,
        length=_length(fields, old=minor == b"0"),
        media_type=fields.get(b"content-type", b""),
        waits=minor == b"1" and fields.get(b"expect", b"").lower() == b"100-continue",
        closes=minor == b"0" or (b"connection" in fields and b"close" in fields[b"connection"].lower()),
    )


def _length(fields: dict[bytes, bytes], *, old: bool) -> int | None:
    coding, length = fields.get(b"transfer-encoding"), fields.get(b"content-length")
    if coding is not None:
        if coding.lower() != b"chunked" or length is not None or old:
            raise RequestError("the body must have either a Content-Length or the one Transfer-Encoding `chunked`")
        return None
    if length is None:
        return 0
    if not length.isdigit():
        raise RequestError("the Content-Length is malformed; send one decimal number")
    return int(length) if len(length) < len(str(1 << 64)) else 1 << 64


@lru_cache(maxsize=64)
def read_seconds(query: bytes, usual: float) -> float:
    """The time limit for a body: the API server's `?timeout=5s`, at most MAX_READ_SECONDS; without it the usual one."""
    match = _DURATION.search(query)
    if match is None or match[1] == match[2] is None:
        return usual
    seconds = int(match[1] or 0) * 60 + float(match[2] or 0) * (0.001 if match[3] == b"ms" else 1)
    return min(max(seconds, 0.001), MAX_READ_SECONDS)


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
