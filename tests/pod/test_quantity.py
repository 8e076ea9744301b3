"""Quantities: every form of Kubernetes is read exactly, and anything else is refused."""

from fractions import Fraction

import pytest
from hypothesis import given

from tests.cases import each_case
from tests.strategies import anything_as_quantity
from tests.timing import within
from webhook.pod.quantity import parse, whole


@each_case(
    "text, number",
    [
        ("0", 0), ("007", 7), ("+5", 5), ("-5", -5), ("3.0", 3), ("3.", 3), ("3000000m", 3000), ("0.003M", 3000),
        (".5", Fraction(1, 2)), ("-.5k", -500), ("5n", Fraction(5, 10**9)), ("5u", Fraction(5, 10**6)),
        ("1500m", Fraction(3, 2)), ("3k", 3000), ("2M", 2 * 10**6), ("2G", 2 * 10**9), ("2T", 2 * 10**12),
        ("2P", 2 * 10**15), ("1E", 10**18), ("3Ki", 3072), ("1.5Mi", 3 * 2**19), ("8Gi", 8 * 2**30), ("1Ti", 2**40),
        ("1Pi", 2**50), ("1Ei", 2**60), ("3e3", 3000), ("3E3", 3000), ("3e+3", 3000), ("3000e-3", 3), ("1e400", 10**400),
    ],
)  # fmt: skip
def test_every_form_of_kubernetes_is_read(text, number):
    assert parse(text) == number
    assert type(parse(text)) is type(number)
    assert whole(text) == (number if isinstance(number, int) else None)


@each_case(
    "value",
    [
        "", " ", "1 ", " 1", "1\n", "k", "Ki", ".", "+", "-", "+-1", "--1", "1.2.3", "1,5", "1_000", "0x10", "1K", "1ki",
        "1kk", "1Kib", "1e", "1e3k", "1e1000", "e3", "NaN", "inf", "Infinity",
        "\u0661\u0662\u0663", "\u0661k", "\uff11", "\u00b2", "9" * 65, "9" * 400,
        "1" + "0" * 400 + "k", True, False, None, [], {}, ["1"], float("inf"), float("-inf"), float("nan"),
    ],
)  # fmt: skip
def test_an_invalid_quantity_is_refused(value):
    with pytest.raises(ValueError, match="not a quantity"):
        parse(value)
    assert whole(value) is None


@pytest.mark.parametrize(
    "value, number",
    [(3, 3), (-3, -3), (10**30, 10**30), (3.0, 3), (0.5, Fraction(1, 2)), (0.1, Fraction(1, 10)), (1e22, 10**22)],
)
def test_a_bare_number_from_yaml_is_read_as_its_decimal_text(value, number):
    assert parse(value) == number


@given(anything_as_quantity)
def test_any_value_is_read_or_refused(value):
    try:
        number = parse(value)
    except ValueError:
        assert whole(value) is None
    else:
        assert isinstance(number, int | Fraction)
        assert not isinstance(number, bool)
        assert whole(value) == (number if number == int(number) else None)


def test_long_texts_are_read_quickly():
    for text in ("9" * 10**6, "1" * 63 + "E", "." * 10**6, "1e999", "1e-999", "0." + "0" * 61 + "1n", "-" * 10**6):
        within(0.2, lambda text=text: whole(text))
