"""The result of a scan as a table."""

from collections.abc import Iterator
from typing import Any

from webhook.cli.ci import ScanRow
from webhook.cli.inputs import FLEET_UNKNOWN
from webhook.cli.terminal import LEVEL_STYLES, Piece, Row, Style, Terminal
from webhook.document_review import only_pods_reviewed
from webhook.questions.scan.answer import Scan
from webhook.questions.scan.tally import Tally
from webhook.texts import counted

MAX_CELL = 60  # characters of all but the message, on a terminal

_HEAD = ("NAMESPACE", "OBJECT", "LEVEL", "RULE", "MESSAGE")


def show_table(scan: Scan, terminal: Terminal) -> None:
    """Write the table, and the counts below it."""
    rows = scan.tally.rows()
    good, style = ("fine", Style.GOOD) if scan.knows_nodes else ("unchecked", Style.WARNING)
    terminal.table(_HEAD, [_cells(row, (style, good), terminal) for row in rows], folded=True)
    if rows:
        terminal.line()
    for pieces in _summary(scan.tally, scan.passed_over):
        terminal.line(*pieces)
    for note in unchecked(scan):
        terminal.paragraph("", ((Style.BOLD, "note  "),), note)


def not_reviewed(tally: Tally) -> list[str]:
    """A line for each reason for which objects with pods were not reviewed, unknown kind and device that is not judged."""
    left = [f"not reviewed: {why} ({counted(number, 'object')})" for why, number in tally.left.items()]
    unknown = [only_pods_reviewed(kind, f" ({counted(number, 'object')})") for kind, number in tally.by_shape.items()]
    others = [f"{sentence} ({counted(number, 'object')})" for sentence, number in tally.not_judged.items()]
    return left + unknown + others


def unchecked(scan: Scan) -> list[str]:
    """A line for what could not be checked of the objects that were reviewed."""
    return [] if scan.knows_nodes or not scan.tally.requesting else [FLEET_UNKNOWN]


def _cells(row: ScanRow, good: Piece, terminal: Terminal) -> Row:
    subject, finding = row.subject, row.finding
    name = terminal.cell(subject.kind_and_name, MAX_CELL)
    if row.pods:
        name += f" ({counted(row.pods, 'pod')})"
    namespace = terminal.cell(subject.namespace, MAX_CELL)
    if finding is None:
        return namespace, name, good, "", ""
    return namespace, name, (LEVEL_STYLES[finding.level], finding.level), (Style.BOLD, finding.rule), finding.message


def _summary(tally: Tally, passed_over: int) -> Iterator[list[Any]]:
    reviewed = tally.pods + tally.workloads
    yield [
        (Style.BOLD, f"{reviewed} reviewed: "),
        f"{counted(tally.pods, 'pod')}, {counted(tally.workloads, 'workload')}; requesting devices: {tally.requesting}",
    ]
    counts = [level for level in LEVEL_STYLES if tally.findings[level]]
    for level in counts:
        text = f"{tally.findings[level]} {level}"
        yield [(LEVEL_STYLES[level], text), f" in {counted(tally.objects[level], 'object')}"]
    if not counts:
        yield [(Style.GOOD, "nothing found")]
    if tally.left_out:
        yield [(Style.WARNING, f"{tally.left_out} findings are counted, but left out of the table")]
    for line in not_reviewed(tally):
        yield [(Style.WARNING, line)]
    if passed_over:
        yield [(Style.DIM, f"skipped: {passed_over} finished pods and other objects")]
