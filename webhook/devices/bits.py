"""Sets of nodes as integers: bit i stands for the fleet's node i, so that two sets of 50,000 meet in a microsecond."""

from collections.abc import Iterable


def bits(numbers: Iterable[int]) -> int:
    """A set of small numbers."""
    found = bytearray()
    for number in numbers:
        byte = number >> 3
        if byte >= len(found):
            found.extend(bytes(byte + 1 - len(found)))
        found[byte] |= 1 << (number & 7)
    return int.from_bytes(found, "little")


def lowest(members: int) -> int:
    """The smallest number of a set that is not empty."""
    return (members & -members).bit_length() - 1
