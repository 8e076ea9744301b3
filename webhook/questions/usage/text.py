"""The usage of the devices as a table."""

from collections.abc import Callable, Iterator, Sequence

from webhook.cli.terminal import INDENT, Piece, Row, Style, Terminal
from webhook.devices import registry
from webhook.devices.ledger import OccupiedCard, OccupiedNode
from webhook.devices.model import Amounts
from webhook.devices.usage import FamilyUsage, UsageReport, by_namespace, capacity, holders, total
from webhook.texts import counted

MAX_CELL = 48  # characters on a terminal
MAX_FINDINGS = 20  # below a table
BAR = 16  # characters
NEARLY_FULL = 0.9

FAMILIES = {family.id: family for family in registry.FAMILIES}


def show(report: UsageReport, by: str, terminal: Terminal, *, wide: bool) -> None:
    """Write a table, the totals below it, and what is wrong.

    Args:
        report: the usage.
        by: `node`, `card`, `namespace` or `pod`: what a row is.
        terminal: where to write.
        wide: write all columns.
    """
    head, rows = _TABLES[by](report.nodes, terminal, wide)
    lines = list(rows)
    terminal.table(head, lines, optional=_OPTIONAL)
    if lines:
        terminal.line()
    for one in report.totals:
        _show_totals(one, terminal)
    if not report.totals:
        terminal.line("no node has devices that the scheduler uses")
    in_doubt = {node.name: node.shape.doubt for node in report.nodes if node.shape.doubt}
    for name, doubt in list(in_doubt.items())[:MAX_FINDINGS]:
        terminal.paragraph("", ((Style.WARNING, "in doubt"), "  "), f"{name}: {doubt}, so no pod gets its devices now")
    for finding in report.findings[:MAX_FINDINGS]:
        where = f"{finding.node}: {finding.pod}: " if finding.pod else f"{finding.node}: "
        terminal.paragraph("", ((Style.WARNING, finding.rule), "  "), f"{where}{finding.message}; {finding.remedy}")
    if len(report.findings) > MAX_FINDINGS:
        terminal.line((Style.WARNING, f"and {len(report.findings) - MAX_FINDINGS} more findings; -o json lists all"))


# --- rows -------------------------------------------------------------------------------------------------------------


def _nodes(nodes: Sequence[OccupiedNode], terminal: Terminal, wide: bool) -> tuple[Sequence[str], Iterator[Row]]:
    def rows() -> Iterator[Row]:
        for node in nodes:
            has, accounted, assigned = (
                total(map(capacity, node.cards)),
                total(card.accounted for card in node.cards),
                total(card.assigned for card in node.cards),
            )
            yield (
                terminal.cell(node.name, MAX_CELL),
                node.family,
                str(len(node.cards)),
                terminal.cell(", ".join(dict.fromkeys(card.type for card in node.cards)) or "-", MAX_CELL),
                *_amounts(accounted, has, terminal),
                _share(max((card.free.memory for card in node.cards), default=0)),
                *((_memory(assigned), str(assigned.slices)) if wide else ()),
            )

    head = ("NODE", "FAMILY", "DEVICES", "TYPE", "SLICES", *_used(terminal), "MEMORY", "CORES", "LARGEST")
    return (*head, *(("ASSIGNED", "HELD") if wide else ())), rows()


def _cards(nodes: Sequence[OccupiedNode], terminal: Terminal, wide: bool) -> tuple[Sequence[str], Iterator[Row]]:
    reserved = any([card.reserved for node in nodes for card in node.cards])

    def rows() -> Iterator[Row]:
        for node in nodes:
            for card in node.cards:
                yield (
                    terminal.cell(node.name, MAX_CELL),
                    card.id if wide else terminal.cell(card.id, MAX_CELL),
                    *((node.family, card.type) if wide else ()),
                    *_amounts(card.accounted, capacity(card), terminal),
                    _share(card.free.memory),
                    *((_memory(card.assigned),) if wide else ()),
                    _pods(card, wide=wide),
                    *((terminal.cell(" or ".join(card.reserved), MAX_CELL),) if reserved else ()),
                )

    head = ("NODE", "DEVICE", *(("FAMILY", "TYPE") if wide else ()), "SLICES", *_used(terminal), "MEMORY")
    head = (*head, "CORES", "LARGEST")
    return (*head, *(("ASSIGNED",) if wide else ()), "PODS", *(("RESERVED",) if reserved else ())), rows()


def _namespaces(nodes: Sequence[OccupiedNode], terminal: Terminal, _wide: bool) -> tuple[Sequence[str], Iterator[Row]]:
    rows = (
        (
            terminal.cell(namespace, MAX_CELL),
            family,
            str(usage.pods),
            str(usage.held.slices),
            _memory(usage.held),
            _share(usage.held.cores),
        )
        for (namespace, family), usage in by_namespace(nodes).items()
    )
    return ("NAMESPACE", "FAMILY", "PODS", "SLICES", "MEMORY", "CORES"), rows


def _holders(nodes: Sequence[OccupiedNode], terminal: Terminal, wide: bool) -> tuple[Sequence[str], Iterator[Row]]:
    held = sorted(holders(nodes), key=lambda one: (one[2].namespace, one[2].name))
    rows = (
        (
            terminal.cell(holder.namespace, MAX_CELL),
            terminal.cell(holder.name, MAX_CELL),
            terminal.cell(holder.container, MAX_CELL),
            terminal.cell(node.name, MAX_CELL),
            card.id if wide else terminal.cell(card.id, MAX_CELL),
            *((node.family, holder.part) if wide else ()),
            str(holder.memory),
            _share(holder.cores),
            holder.since,
            _state(terminating=holder.terminating, accounted=holder.accounted),
        )
        for node, card, holder in held
    )
    head = ("NAMESPACE", "POD", "CONTAINER", "NODE", "DEVICE", *(("FAMILY", "PART") if wide else ()))
    return (*head, "MEMORY", "CORES", "SINCE", "STATE"), rows


# What a narrow terminal leaves out. The sentences below the tables name the families.
_OPTIONAL = ("USED", "FAMILY", "CONTAINER", "SINCE", "TYPE", "CORES")

_Table = Callable[[Sequence[OccupiedNode], Terminal, bool], tuple[Sequence[str], Iterator[Row]]]
_TABLES: dict[str, _Table] = {"node": _nodes, "card": _cards, "namespace": _namespaces, "pod": _holders}
WAYS = tuple(_TABLES)


# --- cells ------------------------------------------------------------------------------------------------------------


def _used(terminal: Terminal) -> tuple[str, ...]:
    """The head of the column with bars, which only people get."""
    return ("USED",) if terminal.interactive else ()


def _amounts(accounted: Amounts, has: Amounts, terminal: Terminal) -> Iterator[Piece]:
    share = accounted.memory / has.memory if has.memory else 0
    style = Style.BAD if share > 1 else Style.WARNING if share > NEARLY_FULL else Style.PLAIN
    yield f"{accounted.slices}/{has.slices}"
    if _used(terminal):
        yield (style, f"[{'#' * min(round(share * BAR), BAR):.<{BAR}}]" if has.memory else "-")
    yield (style, f"{accounted.memory}/{has.memory} {share:.0%}") if has.memory else "-"
    yield f"{accounted.cores}/{has.cores}" if has.cores else "-"


def _memory(amounts: Amounts) -> str:
    return _share(amounts.memory)


def _share(amount: int) -> str:
    return str(amount) if amount else "-"


def _pods(card: OccupiedCard, *, wide: bool) -> str:
    names = list(dict.fromkeys(f"{holder.namespace}/{holder.name}" for holder in card.pods))
    most = len(names) if wide else 2
    more = f" +{len(names) - most}" if len(names) > most else ""
    return ",".join(names[:most]) + more


def _state(*, terminating: bool, accounted: bool) -> Piece:
    if terminating:
        return Style.WARNING, "terminating" if accounted else "terminating, not accounted"
    return "" if accounted else (Style.WARNING, "not accounted")


# --- totals -----------------------------------------------------------------------------------------------------------


def _show_totals(one: FamilyUsage, terminal: Terminal) -> None:
    family = FAMILIES[one.family]
    unit = f" {family.unit}" if family.unit else ""
    parts = [f"{one.accounted.slices} of {one.capacity.slices} slices"]
    if one.capacity.memory:
        share = one.accounted.memory / one.capacity.memory
        parts.append(f"{one.accounted.memory} of {one.capacity.memory}{unit} ({share:.0%})")
    if one.capacity.cores:
        parts.append(f"{one.accounted.cores} of {one.capacity.cores} cores")
    counts = f"{counted(one.nodes, 'node', 'nodes')}, {counted(one.devices, family.device, family.devices)}"
    terminal.paragraph("", ((Style.BOLD, one.family),), f": {counts}; accounted {', '.join(parts)}")
    if note := uncounted(one.accounted, one.assigned, unit):
        terminal.paragraph(INDENT, (), note)
    fits = [
        f"{big.number} × {f'{big.memory}{unit}' if big.memory else f'{big.cores} cores'} on {terminal.cell(big.node, MAX_CELL)}"
        for big in one.largest
    ]
    terminal.paragraph(INDENT, (), f"largest pod that fits now: {', '.join(fits) or 'none'}")
    free = [f"{count} × {terminal.cell(model or family.device, MAX_CELL)}" for model, count in one.idle.items()]
    terminal.paragraph(INDENT, (), f"free: {', '.join(free) or f'no {family.device}'}")
    if one.unusable is not None:
        left = max(one.capacity.memory - one.accounted.memory, 0)
        text = f"free on {family.devices} that cannot give a slice of this size: {one.unusable} of {left}{unit}"
        terminal.paragraph(INDENT, (), text)


def uncounted(accounted: Amounts, assigned: Amounts, unit: str) -> str:
    """What live pods hold, as a sentence, if the scheduler counts something else; `unit` begins with a space."""
    held = f"{assigned.slices} slices, {assigned.memory}{unit}, {assigned.cores} cores"
    return "" if assigned == accounted else f"live pods hold {held}; the scheduler does not count all of it"
