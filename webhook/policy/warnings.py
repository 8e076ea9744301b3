"""Likely mistakes in a valid policy."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from fnmatch import fnmatchcase

from webhook import names
from webhook.policy.levels import Source
from webhook.policy.policy import Policy
from webhook.policy.schema import NamespaceEntry
from webhook.rules.choices import Level
from webhook.rules.context import Finding
from webhook.rules.registry import DEFAULT_LEVELS, FLEET_RULES, VALIDATIONS
from webhook.rules.validate import (
    count_missing,
    foreign_dialect,
    foreign_scheduler,
    memory_above_card,
    percentage_unresolved,
    reserved_annotation,
)
from webhook.texts import and_more, shorten

MAX_COMPARED = 200  # different globs; with more of them only equal ones are found, since comparing takes minutes
MAX_NAMED = 3
MAX_GLOB = 70  # of a message; a name has 63 characters at most

# The check for pods that need a repair, where that repair is off.
CHECKS_OF_REPAIRS = {rule.instead_of: rule.id for rule in VALIDATIONS if rule.instead_of} | {
    "default-number": count_missing.check.id,
    "percentage-to-memory": percentage_unresolved.check.id,
    "lower-memory": memory_above_card.check.id,
    "scheduler-name": foreign_scheduler.check.id,
    "translate-dialect": foreign_dialect.check.id,
}
_MILDER = list(Level)  # from deny to off
_CLASS = re.compile(r"\[!?[^][]+\]")  # of a glob; its content is not read
_FOREIGN = re.compile(r"[^a-z0-9*?-]")


def warnings_of(policy: Policy, today: date | None = None) -> list[Finding]:
    """Everything that looks like a mistake, each with what to write instead; of exceptions only with a day."""
    warnings = [*_softened(policy, "rules", policy.rules), *_untrusted(policy), *_unanswered(policy, None)]
    warnings += _useless_exceptions(policy, today) if today is not None else ()
    for index, entry in enumerate(policy.namespaces):
        place = f"namespaces.{index}"
        warnings += _impossible(entry, place)
        warnings += _softened(policy, f"{place}.rules", entry.rules)
        warnings += [] if entry.exempt else _unanswered(policy, index)
        useless = next((key for key, value in entry if value and key not in ("match", "exempt")), None)
        if entry.exempt and useless:
            warnings.append(
                Finding(place, f"it has {useless}, yet exempt: true lets every pod pass; remove one of the two")
            )
    warnings += [*_hidden(policy.namespaces), *_idle(policy), *_all_exempt(policy)]
    return sorted(warnings, key=_place)


def _place(warning: Finding) -> list[tuple[int, str]]:
    """Where it belongs: entries in the order of their numbers."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in warning.path.split(".")]


def _softened(policy: Policy, place: str, levels: Mapping[str, Level]) -> Iterator[Finding]:
    for rule, level in levels.items():
        if policy.fleet.autoscaled and level is Level.DENY and rule in FLEET_RULES:
            yield Finding(
                f"{place}.{rule}",
                "it warns instead of denying, because fleet.autoscaled is true and a larger node may come; write warn, or "
                "set fleet.autoscaled: false",
            )


def _useless_exceptions(policy: Policy, today: date) -> Iterator[Finding]:
    comparable = len(policy.by_glob) <= MAX_COMPARED
    for index, exception in enumerate(policy.exceptions):
        where = policy.of(exception.namespace) if comparable else policy.at(None)
        recorded = {where.levels[rule] for rule in exception.rules} <= {Level.AUDIT, Level.OFF}
        mild = comparable and (where.exempt or recorded)
        why = f"it ended on {exception.until}, so findings have their levels again; remove it, or move until"
        if exception.until >= today and mild:
            why = f"it changes nothing: its rules neither deny nor warn in namespace {exception.namespace}; remove it"
        if exception.until < today or mild:
            yield Finding(f"exceptions.{index}", why)


def _untrusted(policy: Policy) -> Iterator[Finding]:
    users = policy.trusted_users
    denies = policy.at(None).levels[reserved_annotation.check.id] is Level.DENY
    if denies and not any(user.startswith(names.SERVICE_ACCOUNT) for user in users):
        yield Finding(
            "trustedUsers",
            "no service account is listed, so what Volcano's scheduler assigns is refused and no vGPU pod starts; add "
            f"{names.SERVICE_ACCOUNT}NAMESPACE:NAME of the scheduler and of the device plugins",
        )


def _unanswered(policy: Policy, index: int | None) -> Iterator[Finding]:
    """Repairs that are off while the check for pods that need them is lowered; of an entry, those it makes so."""
    switched, levels = policy.switched(index), policy.written(index)
    for repair, check in CHECKS_OF_REPAIRS.items():
        level, default = levels[check].value, DEFAULT_LEVELS[check]
        if switched[repair].value or _MILDER.index(level) <= _MILDER.index(default):
            continue
        path = f"repairs.{repair}"
        if index is not None:
            by_repair = switched[repair].source is Source.NAMESPACES
            if not by_repair and levels[check].source is not Source.NAMESPACES:
                continue
            path = f"namespaces.{index}.{path if by_repair else f'rules.{check}'}"
        yield Finding(
            path,
            f"the repair {repair} is off while {check}, the check for pods that need it, is lowered from {default} to {level}: "
            f"such pods are admitted as they are, and do not run as meant; set {check} to {default}, or switch the repair on",
        )


def _impossible(entry: NamespaceEntry, place: str) -> Iterator[Finding]:
    for glob in entry.match:
        foreign = _FOREIGN.search(_CLASS.sub("", glob))
        if glob and not foreign:
            continue
        why = f"no namespace has {foreign[0]!r} in its name" if foreign else "no name is empty"
        lower = glob.lower()
        advice = "write a-z, 0-9 and -, with * and ? for the rest"
        if foreign and not _FOREIGN.search(lower):
            advice = f"write {_quoted(lower)}"
        yield Finding(f"{place}.match", f"{_quoted(glob)} matches nothing: {why}; {advice}")


def _hidden(entries: Sequence[NamespaceEntry]) -> Iterator[Finding]:
    """Entries that never apply, wholly or in part, because a later one matches the same namespaces."""
    last = {glob: index for index, entry in enumerate(entries) for glob in entry.match}
    wide = last if len(last) <= MAX_COMPARED else {}
    for index, entry in enumerate(entries):
        globs = dict.fromkeys(entry.match)
        later = {glob: number for glob in globs if (number := _later(glob, index, last, wide)) is not None}
        if not later:
            continue
        hiding = and_more([f"{_quoted(glob)} (namespaces.{number})" for glob, number in later.items()], MAX_NAMED)
        what = "it never decides" if len(later) == len(globs) else "it does not decide for all of its globs"
        yield Finding(
            f"namespaces.{index}",
            f"{what}: a later entry matches the same, and the last one decides: {hiding}; move the narrower entry down, "
            "or remove it",
        )


def _later(glob: str, index: int, last: Mapping[str, int], wide: Mapping[str, int]) -> int | None:
    if last[glob] > index:
        return last[glob]
    return next((number for other, number in wide.items() if number > index and _within(glob, other)), None)


def _within(narrow: str, wide: str) -> bool:
    """Whether the wide glob matches all that the narrow one does; False also if that is unclear.

    The narrow glob is read as a name: its `*` and `?` can then be matched by nothing but those of the wide one.
    """
    if "[" in narrow + wide or ("*" in narrow and "?" in wide):
        return False
    return fnmatchcase(narrow, wide)


def _idle(policy: Policy) -> Iterator[Finding]:
    """Entries that change nothing; one that follows an entry which does is an exception to it."""
    elsewhere = policy.at(None)
    for index in range(len(policy.namespaces)):
        if policy.at(index) != elsewhere:
            return
        yield Finding(
            f"namespaces.{index}",
            "it changes nothing: the same holds in every namespace; remove it, or give it other rules or exempt: true",
        )


def _all_exempt(policy: Policy) -> Iterator[Finding]:
    everywhere = policy.everywhere
    if everywhere is not None and all(entry.exempt for entry in policy.namespaces[everywhere:]):
        yield Finding(
            f"namespaces.{everywhere}",
            "it exempts every namespace, so no pod is repaired or checked; add an entry below it for those that shall be",
        )


def _quoted(glob: str) -> str:
    return repr(shorten(glob, MAX_GLOB))
