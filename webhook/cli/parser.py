"""Command lines: a mistake in one is one sentence that says what to do."""

import argparse
import math
import re
from difflib import get_close_matches
from typing import Any, NoReturn

from webhook.texts import visible

EXIT_BAD_INPUT = 2
MAX_PORT = 65535
MAX_SECONDS = 3600

# What argparse finds, and the same in plain words.
_REWORDED = (
    (r"the following arguments are required: (.*?)(?:, arguments)?", r"\1 is missing"),
    (r"argument (?:\S+/)?(\S+): expected (?:one|at least one) argument", r"\1 needs a value"),
    (r"argument (?:\S+/)?(\S+): ignored explicit argument .*", r"\1 takes no value"),
    (r"argument (?:\S+/)?(\S+): not allowed with argument (?:\S+/)?(\S+)", r"\1 does not go with \2"),
    (r"argument (?:\S+/)?(\S+): invalid \S+ value: (.*)", r"\1: \2 cannot be used"),
    (r"ambiguous option: (\S+) could match (.*)", r"\1 may be one of \2: write it in full"),
    (r"argument (?:\S+/)?(\S+: .*)", r"\1"),
)


class Parser(argparse.ArgumentParser):
    """The arguments of a command."""

    def error(self, message: str) -> NoReturn:
        """End the program with one sentence."""
        for pattern, words in _REWORDED:
            if found := re.fullmatch(pattern, message, re.DOTALL):
                message = found.expand(words)
                break
        if found := re.fullmatch(r"unrecognized arguments: (\S+).*", message, re.DOTALL):
            message = self._unknown(found[1])
        more = "" if message.endswith("?") else f"; see {self.prog} --help"
        self.exit(EXIT_BAD_INPUT, f"{self.prog}: {visible(message)}{more}\n")

    def _unknown(self, argument: str) -> str:
        if not argument.startswith("-"):
            return f"{argument!r} is one argument too many"
        name = argument.partition("=")[0]
        near = get_close_matches(name, self._option_string_actions, 1)
        return f"there is no option {name}{f'; did you mean {near[0]}?' if near else ''}"

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        choices = [str(choice) for choice in action.choices]
        near = get_close_matches(str(value), choices, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(choices)}"
        raise argparse.ArgumentError(action, f"{value!r} cannot be chosen; {hint}")


def port(text: str) -> int:
    """A port, for an option."""
    if not text.isdecimal() or len(text) > len(str(MAX_PORT)) or int(text) > MAX_PORT:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a port; write a number up to {MAX_PORT}, or 0 for a free one"
        )
    return int(text)


def seconds(text: str) -> float:
    """A time in seconds, for an option."""
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 <= found <= MAX_SECONDS:  # also what is no number
        raise argparse.ArgumentTypeError(f"{text!r} is not a time; write seconds from 0 to {MAX_SECONDS}")
    return found
