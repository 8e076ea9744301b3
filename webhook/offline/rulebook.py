"""Every rule, with what its file and its example say of it."""

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from webhook.offline.examples import Example, load_example
from webhook.rules.base import Mutation, Validation
from webhook.rules.registry import MUTATIONS, VALIDATIONS

REPAIR = "repair"

# A word, a colon, and text that may go on in indented lines.
_PART = re.compile(r"^(\w+):[ ]+(\S.*(?:\n[ ]+\S.*)*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Row:
    """A rule as the table tells it.

    Attributes:
        id: the rule's.
        kind: `mutation` or `validation`.
        level: the default level of a validation; `repair` for a mutation.
        what: its summary.
        module: where it is written.
    """

    id: str
    kind: str
    level: str
    what: str
    module: str

    @property
    def file(self) -> str:
        """The rule's file, from the root of the source tree."""
        return self.module.replace(".", "/") + ".py"

    @property
    def example_file(self) -> str:
        """The file of its example, likewise."""
        room = self.module.split(".")[-2]
        return f"webhook/rules/examples/{room}/{self.id}.yaml"

    @property
    def text(self) -> str:
        """What the rule's file says of itself: what it reads, refuses or writes, and why."""
        return (sys.modules[self.module].__doc__ or self.what).strip()

    @property
    def parts(self) -> Mapping[str, str]:
        """The parts of the text by their word, each on one line: Reads, Refuses or Writes, Why."""
        return {word: " ".join(part.split()) for word, part in _PART.findall(self.text)}

    @property
    def why(self) -> str:
        """Why the rule is there, as the cell of a table."""
        return self.parts.get("Why", "").removesuffix(".")

    def example(self) -> Example:
        """The rule's example, reviewed.

        Raises:
            ConfigError: it is missing or cannot be read.
        """
        return load_example(self.example_file)


def rows() -> list[Row]:
    """Every rule: mutations in the order they run, then validations in the order they are told."""
    return [_mutation(rule) for rule in MUTATIONS] + [_validation(rule) for rule in VALIDATIONS]


def _mutation(rule: Mutation) -> Row:
    return Row(rule.id, "mutation", REPAIR, rule.summary, rule.propose.__module__)


def _validation(rule: Validation) -> Row:
    return Row(rule.id, "validation", rule.level, rule.summary, rule.check.__module__)
