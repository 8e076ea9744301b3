"""A look ahead: for people on a terminal, as JSON and as YAML."""

from collections.abc import Iterable, Iterator, Sequence

from webhook.cli.terminal import INDENT, Piece, Row, Style, Terminal
from webhook.devices import registry, wording
from webhook.devices.model import Amounts
from webhook.questions.what_if.answer import Headroom, WhatIf
from webhook.questions.what_if.search import PodFate
from webhook.questions.why.placing import Fate
from webhook.texts import and_more, counted, legible

MAX_CELL = 48  # characters on a terminal
MAX_PODS = 50  # of a table on a terminal
MAX_NAMES = 5  # of nodes in a sentence

STYLES = {
    Fate.STARTS: Style.GOOD,
    Fate.DEPENDS: Style.WARNING,
    Fate.UNKNOWN: Style.WARNING,
    Fate.IDLES: Style.WARNING,
    Fate.WAITS: Style.PLAIN,
    Fate.NEVER: Style.BAD,
    Fate.ENDS: Style.BAD,
}


def show(answer: WhatIf, terminal: Terminal, *, wide: bool) -> None:
    """Write what would happen.

    Args:
        answer: the look ahead.
        terminal: where to write.
        wide: list also what does not change.
    """
    changed = [pod for pod in answer.waiting if pod.before is not pod.after]
    lost = [pod for pod in (*answer.moved, *answer.displaced) if not pod.after.placed]
    terminal.line((Style.BOLD, "waiting pods"), f": {_summary(answer.waiting)}; {len(changed)} because of the change")
    _table(answer.waiting if wide else changed, terminal)
    if answer.moved:
        terminal.line((Style.BOLD, "pods of drained nodes"), f": {_summary(answer.moved)}")
        _table(sorted(answer.moved, key=lambda pod: pod.after is Fate.STARTS), terminal)
    if answer.displaced:
        text = f": {counted(len(answer.displaced), 'running pod')} would not fit again if created again"
        terminal.line((Style.BOLD, "cards registered anew"), text)
        _table(answer.displaced, terminal)
    if answer.more:
        terminal.line((Style.WARNING, f"{answer.more} pods that the scheduler takes later are left out"))
    if lost:
        owners = dict.fromkeys(f"{pod.namespace}/{pod.owner or pod.name}" for pod in lost)
        terminal.paragraph("", ((Style.BAD, "owners to ask"),), f": {', '.join(list(owners)[:MAX_PODS])}")
    for finding in answer.findings[:MAX_PODS]:
        where = f"{finding.node}: {finding.pod}: " if finding.pod else f"{finding.node}: "
        terminal.paragraph("", ((Style.WARNING, finding.rule), "  "), f"{where}{finding.message}")
    _show_node_changes(answer, terminal)
    terminal.line()
    _show_nodes(answer, terminal, wide=wide)
    terminal.line()
    _show_rooms(answer, terminal, wide=wide)


def _summary(pods: Sequence[PodFate]) -> str:
    counts = {fate: sum(pod.after is fate for pod in pods) for fate in Fate}
    return ", ".join(f"{count} {WORDS[fate][count != 1]}" for fate, count in counts.items() if count) or "none"


WORDS = {  # of one pod, and of several
    Fate.STARTS: ("starts", "start"),
    Fate.DEPENDS: ("depends on the nodes of others", "depend on the nodes of others"),
    Fate.UNKNOWN: ("is not decided", "are not decided"),
    Fate.IDLES: ("idles, as others of its job wait", "idle, as others of their job wait"),
    Fate.WAITS: ("waits", "wait"),
    Fate.NEVER: ("never fits", "never fit"),
    Fate.ENDS: ("ends", "end"),
}


def _table(pods: Iterable[PodFate], terminal: Terminal) -> None:
    pods = list(pods)
    rows: list[Row] = [
        (
            INDENT + terminal.cell(f"{pod.namespace}/{pod.name}", MAX_CELL),
            terminal.cell(pod.owner or "-", MAX_CELL),
            str(pod.priority),
            pod.held or str(pod.before),
            (STYLES[pod.after], str(pod.after)),
            terminal.cell(pod.node or "-", MAX_CELL),
            pod.reason,
        )
        for pod in pods[:MAX_PODS]
    ]
    head = (f"{INDENT}POD", "OWNER", "PRIORITY", "NOW", "THEN", "NODE", "WHY")
    terminal.table(head, rows, right={2}, folded=True, optional=("PRIORITY", "OWNER"))
    if len(pods) > MAX_PODS:
        terminal.line(f"{INDENT}and {len(pods) - MAX_PODS} more; -o json lists all")


def _show_node_changes(answer: WhatIf, terminal: Terminal) -> None:
    for change in answer.node_changes:
        style, word = (Style.GOOD, "gain") if change.gained else (Style.BAD, "lose")
        listed = and_more([legible(name, MAX_CELL) for name in change.nodes], MAX_NAMES)
        head = (style, f"nodes that {word} their {change.family} devices")
        terminal.paragraph("", (head,), f": {listed}")
        if change.lacks:
            terminal.paragraph(INDENT, (), f"{'so far: ' if change.gained else ''}{wording.lacks(change.lacks)}")


def _show_nodes(answer: WhatIf, terminal: Terminal, *, wide: bool) -> None:
    def share(used: Amounts | None, has: Amounts) -> Iterator[Piece]:
        for amount, most in ((used and used.memory, has.memory), (used and used.cores, has.cores)):
            yield "-" if amount is None else f"{amount}/{most}" if most else str(amount)

    rows = [
        (
            terminal.cell(one.node, MAX_CELL),
            one.family,
            *share(one.before, one.capacity),
            *share(one.after, one.capacity),
        )
        for one in answer.nodes
        if wide or one.before != one.after
    ]
    head = ("NODE", "FAMILY", "MEMORY NOW", "CORES NOW", "MEMORY THEN", "CORES THEN")
    terminal.table(head, rows, optional=("FAMILY",))
    if not rows:
        terminal.line("no node is used in another way")


def _show_rooms(answer: WhatIf, terminal: Terminal, *, wide: bool) -> None:
    now, then = ({room.family: _room(room) for room in rooms} for rooms in (answer.room_before, answer.room))
    rows = [
        (family, what, before, after)
        for family in now | then
        for what, before, after in zip(LARGEST, now.get(family, NO_ROOM), then.get(family, NO_ROOM), strict=True)
        if wide or before != after
    ]
    terminal.table(("FAMILY", "LARGEST", "NOW", "THEN"), rows)
    if not rows:
        terminal.line("the largest slice, the most whole devices on a node and the largest gang stay the same")


LARGEST = ("slice", "whole devices on a node", "gang of one device each")
NO_ROOM = ("-", "-", "-")


def _room(room: Headroom) -> tuple[str, str, str]:
    best, unit = room.slice, next(family.unit for family in registry.FAMILIES if family.id == room.family)
    largest = f"{best.memory or best.cores} {unit}".rstrip() + f" on {best.node}" if best is not None else "-"
    return largest, f"{room.cards} on {room.node}" if room.cards else "-", counted(room.gang, "pod")
