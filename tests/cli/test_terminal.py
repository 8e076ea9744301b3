"""Output on a terminal differs from output to a pipe."""

import os
from io import StringIO

import pytest

from webhook.cli.terminal import MAX_CELL, Style, Terminal

ENVIRONMENTS = [
    ({}, True, True),
    ({}, False, False),
    ({"NO_COLOR": "1"}, True, False),
    ({"NO_COLOR": ""}, True, True),
    ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, True, False),
    ({"FORCE_COLOR": "1"}, False, True),
    ({"TERM": "dumb"}, True, False),
]


class TerminalStream(StringIO):
    """A stream that reports that it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("environment, terminal, coloured", ENVIRONMENTS)
def test_the_environment_can_switch_colours_on_and_off(environment: dict[str, str], terminal: bool, coloured: bool):
    stream = TerminalStream() if terminal else StringIO()
    Terminal(stream, environment).line((Style.BAD, "text"))
    assert stream.getvalue() == ("\x1b[31mtext\x1b[0m\n" if coloured else "text\n")


def test_a_cell_is_truncated_only_on_a_terminal():
    name = "n" * 253
    assert Terminal(TerminalStream(), os.environ).cell(name, 60) == "n" * 59 + "…"
    assert Terminal(StringIO(), os.environ).cell(name, 60) == name
    assert len(Terminal(StringIO(), os.environ).cell("n" * 5000, 60)) == MAX_CELL


def test_a_narrow_terminal_gets_fewer_columns_and_shorter_cells(monkeypatch: pytest.MonkeyPatch):
    head, row = ("NAME", "BAR", "SUM", "WHY"), ("n" * 60, "###", "1", "because " * 8)

    def lines(columns: int, *, wide: bool = False) -> list[str]:
        monkeypatch.setenv("COLUMNS", str(columns))
        terminal = Terminal(stream := TerminalStream(), {"NO_COLOR": "1"}, wide=wide)
        terminal.table(head, [row], right={2}, folded=True, optional=("BAR",))
        return stream.getvalue().splitlines()

    below = "    because because because because"
    assert lines(200) == [f"{'NAME':60}  BAR  SUM  WHY", f"{'n' * 60}  ###    1  {'because ' * 8}"]
    assert lines(101)[:2] == [f"{'NAME':60}  SUM  WHY", f"{'n' * 60}    1  because because because because"]
    assert lines(101)[2:] == [
        f"{'':67}because because because because",
        "too narrow for BAR: -o wide writes all columns",
    ]
    assert lines(96)[:2] == [f"{'NAME':60}  SUM", f"{'n' * 60}    1"]
    assert lines(40)[:3] == [f"{'NAME':35}  SUM", f"{'n' * 34}…    1", below]
    assert lines(40, wide=True)[0] == f"{'NAME':60}  BAR  SUM  WHY"
