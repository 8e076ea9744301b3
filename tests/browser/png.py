"""PNG, a little: a picture's size, and the same picture in fewer bytes."""

import struct
import zlib
from collections import Counter
from collections.abc import Iterator

SIGNATURE = b"\x89PNG\r\n\x1a\n"
COLOURS = 256  # of a palette
CHANNELS = {2: 3, 6: 4}  # by colour type: RGB, RGBA

Colour = tuple[int, int, int]


def size(data: bytes) -> tuple[int, int]:
    """Width and height in pixels.

    Raises:
        AssertionError: it is no PNG.
    """
    assert data.startswith(SIGNATURE)
    kind, head = next(_chunks(data))
    assert kind == b"IHDR"
    width, height = struct.unpack(">II", head[:8])
    return width, height


def small(data: bytes) -> bytes:
    """The same picture with a palette; colours beyond 256, which are few pixels, become the nearest of it.

    Args:
        data: 8 bits a channel, RGB or opaque RGBA, not interlaced: what Chromium takes.
    """
    width, height = size(data)
    pixels = _pixels(data, width)
    counted = Counter(pixels)
    palette = [colour for colour, _ in counted.most_common(COLOURS)]
    place = {colour: at for at, colour in enumerate(palette)}
    for colour in counted:
        if colour not in place:
            place[colour] = min(range(len(palette)), key=lambda at, one=colour: _distance(palette[at], one))
    indices = bytes([place[pixel] for pixel in pixels])
    rows = b"".join([b"\0" + indices[at : at + width] for at in range(0, len(indices), width)])
    return b"".join(
        [
            SIGNATURE,
            _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
            _chunk(b"PLTE", bytes([channel for colour in palette for channel in colour])),
            _chunk(b"IDAT", _deflated(rows)),
            _chunk(b"IEND", b""),
        ]
    )


def _deflated(rows: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, 15, 9)
    return packer.compress(rows) + packer.flush()


def _distance(one: Colour, other: Colour) -> int:
    return sum([(a - b) ** 2 for a, b in zip(one, other, strict=True)])


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(SIGNATURE)
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        yield data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        at += length + 12


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def _pixels(data: bytes, width: int) -> list[Colour]:
    chunks = list(_chunks(data))
    depth, kind, _, _, interlaced = chunks[0][1][8:13]
    assert (depth, interlaced) == (8, 0)
    channels = CHANNELS[kind]
    raw = zlib.decompress(b"".join([content for name, content in chunks if name == b"IDAT"]))
    stride = width * channels + 1
    lines = [raw[at : at + stride] for at in range(0, len(raw), stride)]
    found: list[Colour] = []
    before = bytearray(stride - 1)
    for line in lines:
        before = _unfiltered(line[0], bytearray(line[1:]), before, channels)
        found += zip(before[::channels], before[1::channels], before[2::channels], strict=True)
    return found


def _unfiltered(kind: int, line: bytearray, above: bytearray, channels: int) -> bytearray:
    """A line of bytes, from what was written instead of it: the difference to its neighbours."""
    if kind == 0:
        return line
    for at, value in enumerate(line):
        left = line[at - channels] if at >= channels else 0
        corner = above[at - channels] if at >= channels else 0
        line[at] = (value + (0, left, above[at], (left + above[at]) // 2, _paeth(left, above[at], corner))[kind]) & 255
    return line


def _paeth(left: int, above: int, corner: int) -> int:
    guess = left + above - corner
    return min((left, above, corner), key=lambda value: abs(guess - value))
