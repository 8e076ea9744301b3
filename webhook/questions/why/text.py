"""Why pods wait: for people on a terminal, as JSON and as YAML."""

from collections.abc import Iterable
from datetime import datetime

from webhook.cli.terminal import INDENT, Style, Terminal
from webhook.devices import registry, wording
from webhook.devices.model import PERCENT
from webhook.devices.nearest import Change, Removal
from webhook.durations import format_age
from webhook.questions.why.answer import WaitAnswer
from webhook.questions.why.listing import WaitingPod, WaitingPods
from webhook.questions.why.node_reasons import MAX_NAMED, NodeHolder, WaitReason, WaitVerdict
from webhook.texts import and_more, counted, shorten

MAX_NAME = 80
MAX_CELL = 40  # characters on a terminal
MAX_MESSAGE = 1000  # characters of a text from the cluster

_VERDICTS = {
    WaitVerdict.BOUND: (Style.GOOD, "NOT WAITING"),
    WaitVerdict.FITS_NOW: (Style.GOOD, "FITS NOW"),
    WaitVerdict.UNKNOWN: (Style.WARNING, "UNKNOWN"),
    WaitVerdict.NOT_NOW: (Style.WARNING, "NOT NOW"),
    WaitVerdict.NEVER: (Style.REFUSED, "NEVER"),
}


def show_answers(answers: Iterable[WaitAnswer], terminal: Terminal) -> None:
    """Write answers, with an empty line between two."""
    for number, answer in enumerate(answers):
        if number:
            terminal.line()
        show(answer, terminal)


def show(answer: WaitAnswer, terminal: Terminal) -> None:
    """Write why an object's pods wait."""
    style, word = _VERDICTS[answer.verdict]
    name = shorten(answer.name or "(no name)", MAX_NAME)
    terminal.line((style, word), (Style.BOLD, f"  {answer.kind} {name}"), f" in {answer.namespace}")
    terminal.paragraph(INDENT, (), answer.summary)
    others = [reason for reason in answer.reasons if not reason.family]
    for reason in (*others, *answer.by_node):
        _show_reason(reason, answer.summary, terminal)
    if answer.change is not None:
        terminal.paragraph(INDENT, ((Style.BOLD, "nearest change  "),), nearest_words(answer, answer.change))
    if answer.gang is not None:
        terminal.line(INDENT, (Style.BOLD, "gang  "), answer.gang.words)
    _show_group(answer, terminal)
    for finding in answer.findings:
        head = ((Style.WARNING, f"{finding.level}  "), (Style.BOLD, f"{finding.rule}: "))
        terminal.paragraph(INDENT, head, finding.message)
    for sentence in answer.not_judged:
        terminal.paragraph(INDENT, ((Style.WARNING, "note  "),), sentence)


def _show_reason(reason: WaitReason, summary: str, terminal: Terminal) -> None:
    if not reason.family:
        if reason.message != summary:
            terminal.paragraph(INDENT, ((Style.BOLD, f"{reason.reason}  "),), reason.message)
        return
    style, word = _VERDICTS[reason.verdict]
    named = and_more(reason.names, MAX_NAMED, reason.nodes)
    about = named if reason.names else f"{reason.family} nodes"
    where = f" for {reason.pod}" if reason.pod else ""
    kind = f": {reason.kind}" if reason.kind else ""
    inner = INDENT + " " * 10
    terminal.paragraph(INDENT, ((style, f"{word.lower():<8}"), INDENT, (Style.BOLD, about)), f"{where}{kind}", inner)
    at = f"{reason.node}: " if reason.nodes > 1 and reason.node else ""
    terminal.paragraph(inner, (at,) if at else (), reason.message)
    if reason.obstacles and reason.reason != "out of service":
        listed = ", ".join(f"{what} ({count})" for what, count in reason.obstacles.items())
        terminal.paragraph(inner, (), f"not counted, by number of nodes: {listed}")
    if reason.verdict is not WaitVerdict.NOT_NOW:
        return
    for holder in reason.holders:
        terminal.paragraph(inner, ((Style.DIM, "held by "),), holder_words(holder))
    if reason.more_holders:
        terminal.line(inner, (Style.DIM, f"and by {reason.more_holders} more pods"))
    for hint in hints(reason):
        terminal.paragraph(inner, ((Style.GOOD, "→ "),), hint)


def _show_group(answer: WaitAnswer, terminal: Terminal) -> None:
    group = answer.group
    if group is not None:
        facts = [f"phase {group.phase}" if group.phase else "", f"queue {group.queue}" if group.queue else ""]
        terminal.line(INDENT, (Style.BOLD, "podgroup  "), group.name, "".join(f", {fact}" for fact in facts if fact))
        for condition in group.conditions[:MAX_NAMED]:
            since = f" ({condition.since})" if condition.since else ""
            head = ((Style.BOLD, f"{condition.type}{'' if condition.status == 'True' else '=' + condition.status}: "),)
            words = " ".join(filter(None, [condition.reason, condition.message]))
            terminal.paragraph(INDENT * 2, head, shorten(words, MAX_MESSAGE) + since)
    if answer.scheduler:
        terminal.paragraph(INDENT, ((Style.BOLD, "scheduler  "),), shorten(answer.scheduler, MAX_MESSAGE))


def show_waiting(found: WaitingPods, terminal: Terminal, now: datetime) -> None:
    """Write a row for each pod that waits."""
    rows = [
        (
            terminal.cell(pod.namespace, MAX_CELL),
            terminal.cell(pod.name, MAX_CELL),
            (_VERDICTS[pod.verdict][0], str(pod.verdict)),
            age(pod, now),
            shorten(waiting_words(pod), MAX_MESSAGE),
        )
        for pod in found.pods
    ]
    head = ("NAMESPACE", "POD", "VERDICT", "AGE", "WHY")
    terminal.table(head, rows, right={3}, folded=True, optional=("AGE",))
    if not rows:
        terminal.line("no pod waits for devices")
    if found.more:
        terminal.line((Style.WARNING, f"and {found.more:,} younger pods"))


def hints(reason: WaitReason) -> list[str]:
    """What would let the pod start on nodes that could take it, and do not now."""
    if reason.verdict is not WaitVerdict.NOT_NOW:
        return []
    ends = [f"once {reason.ends} has ended it fits on {reason.node}"] if reason.ends else []
    change = reason.change
    return ends + ([f"{change_words(change)} it fits on {reason.node} now"] if change is not None else [])


ANOTHER = "a pod of another namespace"  # instead of its name


def waiting_words(pod: WaitingPod, *, names_others: bool = True) -> str:
    """What a pod waits for, as a sentence without its end: what would let it start, or else what refuses it.

    With `names_others` off, it neither names the pods of other namespaces nor says what they hold.
    """
    if not pod.node:
        return pod.summary
    ends = pod.ends if names_others or pod.ends.startswith(f"{pod.namespace}/") else ANOTHER
    holder = pod.holder
    held = (
        "" if holder is None else holder_words(holder) if names_others or holder.namespace == pod.namespace else ANOTHER
    )
    found = [
        f"once {ends} has ended it fits on {pod.node}" if pod.ends else "",
        f"{change_words(pod.change)} it fits now" if pod.change is not None else "",
        "" if pod.ends or not held else f"{pod.node} is held by {held}",
    ]
    return "; ".join(filter(None, found)) or pod.summary


def age(pod: WaitingPod, now: datetime) -> str:
    """How long a pod has existed; empty if that is not known."""
    try:
        return format_age(now - datetime.fromisoformat(pod.since))
    except (OverflowError, TypeError, ValueError):  # a pod of a file
        return ""


def change_words(change: Change) -> str:
    """A change, as the beginning of a sentence."""
    if isinstance(change, Removal):
        return f"without {change.remove}"
    where = f" in {wording.container(change.container)}"
    if change.most == 0:
        return f"without {change.resource}{where}"
    return f"with {change.resource} {change.most}{' or less' if change.most > 1 and not change.exact else ''}{where}"


def nearest_words(answer: WaitAnswer, change: Change) -> str:
    """What lets a pod, or a gang, start now."""
    if answer.gang is None or answer.gang.fit is None:
        return f"{change_words(change)} it fits now"
    named = and_more([wording.quoted(name) for name in answer.changed], MAX_NAMED)
    which = f"each pod of {named}" if named else "each of its pods"
    return f"{change_words(change)} of {which} they fit together now"


def holder_words(holder: NodeHolder) -> str:
    """What a pod holds, for people."""
    family = next(family for family in registry.FAMILIES if family.id == holder.family)
    cores = f"{holder.cores} {holder.core_unit}{' of cores' if holder.core_unit == PERCENT else ''}"
    amounts = [f"{holder.memory} {family.unit or 'of memory'}" if holder.memory else "", cores if holder.cores else ""]
    what = " and ".join(filter(None, amounts))
    devices = f"on {counted(holder.devices, 'NPU' if family.device == 'NPU' else 'card')}"
    leaving = ", being deleted" if holder.terminating else ""
    if holder.refilled_by:
        leaving = f"; its {holder.refilled_by} makes it anew"
    held = " ".join(filter(None, [what, devices]))
    return f"{holder.key}: {held}{f', since {holder.since}' if holder.since else ''}{leaving}"
