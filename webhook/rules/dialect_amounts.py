"""The amounts of a container in the names of another system, and those of this cluster's names that say the same.

A dialect's memory wins over its percentage, and all memory of a card without a word about cores is a card for oneself.
"""

import re
from collections.abc import Collection
from fractions import Fraction
from typing import Any, NamedTuple

from webhook.devices import wording
from webhook.devices.config import VgpuConfig
from webhook.devices.dialects import Dialect, Place, Word
from webhook.devices.families import Role
from webhook.devices.model import CARD_CORES
from webhook.devices.requests import MAX_MEMORY, MAX_QUANTITY
from webhook.pod import quantity

CONTRADICTED = "the container requests the same by this cluster's names, too; remove one of the two"
SIZES = frozenset({Role.MEMORY, Role.PERCENTAGE})
_NUMBER = re.compile(r"[0-9]{1,18}(\.[0-9]{0,18})?|\.[0-9]{1,18}", re.ASCII)  # in annotations and labels
_WHOLE = Fraction(CARD_CORES)
_OF_CONTAINER = (Place.RESOURCE, Place.CONTAINER_ANNOTATION)  # quantities, as resources are
_ROLES = (Role.NUMBER, Role.MEMORY, Role.PERCENTAGE, Role.CORES)

Asked = dict[Word, Any]  # what a pod has under each name


class Untranslatable(Exception):
    """Why an amount has no counterpart."""


class DialectAmounts(NamedTuple):
    """Translates the amounts of a dialect.

    Attributes:
        dialect: the dialect.
        config: what the resources of this cluster are called.
    """

    dialect: Dialect
    config: VgpuConfig

    def translated(self, asked: Asked, own: Collection[Role], *, several: bool) -> dict[Role, int]:
        """The amounts of each of this cluster's names that say the same.

        Args:
            asked: what the container has, and the pod.
            own: what it has of this cluster's names.
            several: whether other containers of the pod request cards in this dialect, too.

        Raises:
            Untranslatable: no amounts say the same.
        """
        config, counted = self.config, self._counted
        given = {word.role: self._exact(word, raw) for word, raw in asked.items() if word.role is not None}
        given = {word.also: given[word.role] for word in asked if word.role and word.also} | given
        if whole := counted in given and Role.NUMBER not in given and given[counted] >= _WHOLE:
            given = _whole_cards(given[counted], next(word for word in asked if word.role is counted))
        wanted: dict[Role, Fraction] = {} if Role.NUMBER in own else {Role.NUMBER: Fraction(1)}
        wanted |= {role: amount for role, amount in given.items() if amount or role in (Role.NUMBER, Role.CORES)}
        if wanted.keys() & own or (SIZES.intersection(own) and wanted.keys() & SIZES):
            raise Untranslatable(CONTRADICTED)
        if not whole:
            of_pod = any(word.role is Role.NUMBER and word.place not in _OF_CONTAINER for word in asked)
            self._divide(wanted, unclear=several and of_pod)
        if Role.MEMORY in wanted:
            wanted.pop(Role.PERCENTAGE, None)
            if wanted[Role.MEMORY] > MAX_MEMORY:
                raise Untranslatable(self._unit_meant(asked))
            wanted[Role.MEMORY] /= config.memory_factor
        if 0 < wanted.get(Role.NUMBER, 1) < 1:
            raise Untranslatable(self._part_of_card(wanted))
        if not own and Role.MEMORY not in wanted:
            alone = Role.CORES not in given and Role.MEMORY not in given
            if alone and (wanted if Role.PERCENTAGE in wanted else given).get(Role.PERCENTAGE, _WHOLE) == _WHOLE:
                wanted[Role.CORES] = _WHOLE
            if Role.PERCENTAGE not in wanted and config.default_memory:
                wanted[Role.PERCENTAGE] = _WHOLE
        return {role: self._whole(role, wanted[role]) for role in _ROLES if role in wanted}

    @property
    def _counted(self) -> Role | None:
        """The amount of which 100 are a whole card, and more are several."""
        if self.dialect.cores_are_cards:
            return Role.CORES
        return Role.PERCENTAGE if Role.PERCENTAGE in self.dialect.sums else None

    def _divide(self, wanted: dict[Role, Fraction], *, unclear: bool) -> None:
        """Make the amounts of all cards together those of each; unclear if containers share the cards of the pod."""
        cards, shared = wanted.get(Role.NUMBER, Fraction(1)), self.dialect.sums & wanted.keys()
        for role in shared:
            wanted[role] /= cards or 1
        if shared and unclear and cards > 1:
            raise Untranslatable(
                "it is not known how several containers share several cards; "
                f"write {self.config.number_name} and {self.config.memory_name} for each container"
            )

    def _part_of_card(self, wanted: dict[Role, Fraction]) -> str:
        """What to write for a part of a card, where a fraction is written as the number of cards."""
        share, called = wanted[Role.NUMBER] * 100, self.config.role_names
        size = {} if wanted.keys() & SIZES else {Role.PERCENTAGE: share}
        amounts = {Role.CORES: share} | size | wanted | {Role.NUMBER: Fraction(1)}
        here = ", ".join(f"{called[role]}: {round(amounts[role])}" for role in _ROLES if role in amounts)
        return (
            f"cards are counted in whole numbers, and the API server refuses others; for a part of a card write {here}"
        )

    def _whole(self, role: Role, amount: Fraction) -> int:
        name, below = self.config.role_names[role], int(amount)
        if not 0 <= amount <= MAX_QUANTITY:
            raise Untranslatable(f"{name} would be {below}; write a number from 1 to {MAX_QUANTITY}")
        if amount.denominator == 1:
            return below
        nearest = f"{below} or {below + 1}" if below else "1"
        raise Untranslatable(f"{name} would be {float(amount):.6g}, which is no whole number; write {nearest}")

    def _exact(self, word: Word, raw: Any) -> Fraction:
        """What is written, in MiB, cards or per cent."""
        quantities = word.place in _OF_CONTAINER
        written = quantities or (isinstance(raw, str) and _NUMBER.fullmatch(raw))
        try:
            amount = Fraction(quantity.parse(raw if written else None)) * word.unit
        except ValueError:
            number = f"a number of {_unit(word)}" if word.role is Role.MEMORY else "a number"
            raise Untranslatable(f"{word.name} {wording.quoted(raw)} is no number; write {number}") from None
        if not quantities and not (amount > 0 and (word.role is not Role.PERCENTAGE or amount < 100)):
            between = "between 0 and 1" if word.role is Role.PERCENTAGE else "above 0"
            title = self.dialect.title
            raise Untranslatable(f"{word.name} is {wording.quoted(raw)}, but {title} takes only what is {between}")
        return amount

    def _unit_meant(self, asked: Asked) -> str:
        """Why the memory is more than any card has, such as `8Gi` where 8192 is meant, or MiB where GiB are counted."""
        word, raw = next((word, raw) for word, raw in asked.items() if word.role is Role.MEMORY)
        amount, config = int(quantity.parse(raw)), self.config
        if word.note and amount <= MAX_MEMORY:
            here = f"{config.memory_name}: {amount // config.memory_factor}"
            return f"{word.name} is {wording.quoted(raw)}, which no card has in {_unit(word)}; if it is in MiB, write {here}"
        meant = int(amount // 2**20 // word.unit)
        advice = f"write {meant}" if 0 < meant * word.unit <= MAX_MEMORY else "write a smaller number"
        title = self.dialect.title
        return f"{word.name} is {wording.quoted(raw)}, but {title} counts {_unit(word)}, not bytes; {advice}"


def fraction_refused(word: Word, raw: Any) -> str:
    """What is wrong with an amount that is no whole number, though it becomes one here; empty if nothing is."""
    if word.place is not Place.RESOURCE or Fraction(quantity.parse(raw)).denominator == 1:
        return ""
    return f"{word.name} {wording.quoted(raw)} is no whole number, which the API server refuses"


def _whole_cards(cores: Fraction, word: Word) -> dict[Role, Fraction]:
    """What a container requests whose cores are whole cards, with all their memory."""
    cards = cores / CARD_CORES
    if cards.denominator != 1:
        raise Untranslatable(
            f"{word.name} counts whole cards from {CARD_CORES} on; write less, or a multiple of {CARD_CORES}"
        )
    return {Role.NUMBER: cards, Role.CORES: _WHOLE}


def _unit(word: Word) -> str:
    return {1: "MiB", 1024: "GiB"}.get(int(word.unit), f"{word.unit} MiB" if word.unit > 1 else "bytes")
