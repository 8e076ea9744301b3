"""Describes a drawing in words, for its legend and for screen readers."""

from collections import Counter
from collections.abc import Iterator, Sequence

from webhook.devices.drawing import DrawnCard, DrawnNode, DrawnPart
from webhook.texts import and_more, legible

MAX_SENTENCES = 12
MAX_WORDS = 1500
LARGEST = 10**12  # larger numbers are not written out


def amount(number: int, unit: str = "") -> str:
    """A number with its unit."""
    written = str(number) if number < LARGEST else "over 10¹²"
    return f"{written} {unit}" if unit else written


def share(part: DrawnPart, drawing: DrawnNode, *, cores: bool = False) -> str:
    """The memory or cores of a part."""
    if not cores and part.memory:
        return amount(part.memory, drawing.unit) if drawing.unit else f"memory {amount(part.memory)}"
    return amount(part.cores, drawing.core_unit) if part.cores else "nothing counted"


def describe(part: DrawnPart, drawing: DrawnNode) -> str:
    """A part with its container, memory, cores and label."""
    amounts = [share(part, drawing)] if part.memory else []
    if part.cores:
        amounts.append(amount(part.cores, "% of the cores" if drawing.core_unit == "%" else drawing.core_unit))
    if part.label:
        amounts.append(legible(part.label, 24))
    return f"{legible(part.container, 40) or 'the pod'}: {', '.join(amounts) or 'nothing accounted'}"


def totals(drawing: DrawnNode) -> dict[str, str]:
    """What each container gets of the drawn cards: `2 × 4000 MiB, 30 %`."""
    return {
        container: "; ".join([f"{count} × {_one(part, drawing)}" for part, count in list(parts.items())[:2]])
        + ("; …" if len(parts) > 2 else "")
        for container, parts in _by_container(drawing).items()
    }


def description(drawing: DrawnNode, title: str) -> str:
    """A few sentences: the cards, which containers they hold, and why cards refuse."""
    return legible(" ".join(_sentences(drawing, title)), MAX_WORDS)


def _by_container(drawing: DrawnNode) -> dict[str, Counter[DrawnPart]]:
    by_container: dict[str, Counter[DrawnPart]] = {container: Counter() for container in drawing.containers}
    for card in drawing.cards:
        for part in card.parts:
            by_container.setdefault(part.container, Counter())[part] += 1
    return {container: parts for container, parts in by_container.items() if parts}


def _one(part: DrawnPart, drawing: DrawnNode) -> str:
    memory = share(part, drawing) if drawing.unit or not part.memory else f"{amount(part.memory)} of memory"
    cores = f", {amount(part.cores, drawing.core_unit)}" if part.cores and part.memory else ""
    label = f" ({legible(part.label, 40)})" if part.label else ""
    return f"{memory}{cores}{label}"


def _sentences(drawing: DrawnNode, title: str) -> Iterator[str]:
    count = len(drawing.cards) + drawing.more
    counts = Counter(card.kind for card in drawing.cards if card.kind)
    kinds = [f"{number} × {legible(kind, 40)}" for kind, number in counts.items()]
    made = f" ({', '.join(kinds[:4])})" if kinds and not drawing.more else ""
    yield f"{title}: {count} card{'' if count == 1 else 's'}{made}."
    for container, parts in list(_by_container(drawing).items())[:MAX_SENTENCES]:
        on = names_of([card for card in drawing.cards if any(part.container == container for part in card.parts)])
        who = f"Container {legible(container, 40)}" if container else "The pod"
        each = " each" if parts.total() > 1 else ""
        amounts = _one(next(iter(parts)), drawing) + each if len(parts) == 1 else totals(drawing)[container]
        yield f"{who} on {on} with {amounts}."
    refusals: dict[str, list[DrawnCard]] = {}
    for card in drawing.cards:
        if card.refusal:
            refusals.setdefault(card.refusal, []).append(card)
    for reason, cards in list(refusals.items())[:MAX_SENTENCES]:
        yield f"Refused by {names_of(cards)}: {legible(reason, 120)}."
    if drawing.note:
        yield legible(drawing.note, 400)


def names_of(cards: Sequence[DrawnCard], most: int = 40) -> str:
    """`cards 0 to 3, 5`: the names, at most so many characters of each, with the word that they share written once."""
    parts = [legible(card.name, most).rpartition(" ") for card in cards]
    common = {kind for kind, _, _ in parts}
    if len(common) > 1:
        return and_more([legible(card.name, most) for card in cards], 8)
    kind = f"{common.pop()}{'s' if len(cards) > 1 else ''} "
    return f"{kind}{and_more(list(_runs([last for _, _, last in parts])), 8)}".strip()


def _runs(numbers: Sequence[str]) -> Iterator[str]:
    """Three and more consecutive numbers as `0 to 2`."""
    start = 0
    for end in range(1, len(numbers) + 1):
        if end < len(numbers) and _follows(numbers[end - 1], numbers[end]):
            continue
        run = numbers[start:end]
        yield from run if len(run) < 3 else [f"{run[0]} to {run[-1]}"]
        start = end


def _follows(one: str, other: str) -> bool:
    return all(each.isdecimal() and each.isascii() for each in (one, other)) and int(other) == int(one) + 1
