"""Kubernetes quantities as exact numbers.

The API server sends `3000` as `3k`: text cannot be compared, numbers can. Every form of
k8s.io/apimachinery/pkg/api/resource is read: plain, decimal suffix, binary suffix, exponent.
"""

import math
import re
from fractions import Fraction

_QUANTITY = re.compile(r"([+-]?)([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:([eE][+-]?[0-9]{1,3})|([numkMGTPE]|[KMGTPE]i)?)")
MAX_LENGTH = 64  # no sane quantity is longer; keeps the arithmetic small

_SUFFIXES: dict[str, Fraction] = {
    "": Fraction(1),
    "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 10**3),
    "k": Fraction(10**3), "M": Fraction(10**6), "G": Fraction(10**9),
    "T": Fraction(10**12), "P": Fraction(10**15), "E": Fraction(10**18),
    "Ki": Fraction(2**10), "Mi": Fraction(2**20), "Gi": Fraction(2**30),
    "Ti": Fraction(2**40), "Pi": Fraction(2**50), "Ei": Fraction(2**60),
}  # fmt: skip


def parse(value: object) -> int | Fraction:
    """Read a quantity exactly; whole numbers come back as int.

    Args:
        value: as in the JSON: a string, or a bare number as YAML gives it.

    Raises:
        ValueError: it is no Kubernetes quantity.
    """
    if isinstance(value, str):
        if len(value) <= MAX_LENGTH and value.isascii() and value.isdigit():
            return int(value)  # by far the most common form
        if len(value) <= MAX_LENGTH:
            return _parse_text(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        return value
    elif isinstance(value, float) and math.isfinite(value):
        return _simplify(Fraction(repr(value)))
    raise ValueError("not a quantity")


def whole(value: object) -> int | None:
    """Read a quantity as a whole number; None if it is not one."""
    try:
        number = parse(value)
    except ValueError:
        return None
    return number if isinstance(number, int) else None


def _parse_text(text: str) -> int | Fraction:
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise ValueError("not a quantity")
    sign, digits, exponent, suffix = match.groups()
    number = Fraction(digits.rstrip("."))
    number *= Fraction(10) ** int(exponent[1:]) if exponent else _SUFFIXES[suffix or ""]
    return _simplify(-number if sign == "-" else number)


def _simplify(number: Fraction) -> int | Fraction:
    return number.numerator if number.denominator == 1 else number
