"""Texts of settings that are slow to read or to check: aliases (&, *) that repeat values, and as much as is reviewed."""

from collections.abc import Iterator
from itertools import chain
from typing import Any

from webhook.rules.registry import DEFAULT_LEVELS
from webhook.settings.review import MAX_TEXT
from webhook.settings.table import DEVICE_CONFIG, MAX_ALIASED, POLICY, SCHEDULER, DocumentSetting

EXCEPTION = "&e {namespace: a, names: [b], rules: [card-count], until: 2026-12-31, reason: c, owner: d}"

Text = tuple[str, DocumentSetting[Any], str]


def texts() -> Iterator[Text]:
    """Triples of a description, the setting, and its text."""
    for name, text in chain(_mistakes(), _valid()):
        yield name, POLICY, text
    for plugin in ("{name: a}", "{name: deviceshare, arguments: {deviceshare.VGPUEnable: [a, b]}}"):
        for plugins, tiers in ((1000, 600), (20, MAX_ALIASED // 200)):
            yield f"{plugins} plugins in {tiers} tiers", SCHEDULER, _tiers(plugin, plugins, tiers)
    rules = _repeated("r", "{app: x}", MAX_ALIASED // 4)
    plugin = f"{{name: deviceshare, arguments: {{deviceshare.GPUExclusiveRules: [{rules}]}}}}"
    yield "exclusive rules", SCHEDULER, _tiers(plugin, 0, 0)
    for memory in ("1", "x", "1, aiCore: 5"):
        for templates, chips in ((800, 800), (90, 60)):
            text = _chips(memory, templates, chips)
            yield f"{templates} templates of {chips} chips, memory {memory}", DEVICE_CONFIG, text
    yield (
        "different chips",
        DEVICE_CONFIG,
        f"vnpus: [{_listed('{{resourceName: a.b/{}, templates: [{{memory: x}}]}}')}]",
    )
    yield "a long name", DEVICE_CONFIG, f"nvidia: {{resourceCountName: {'a/' * (MAX_TEXT // 2 - 30)}}}"


def _mistakes() -> Iterator[tuple[str, str]]:
    unknown = ", ".join(f"card-cuont-{number}: deny" for number in range(100))
    for aliases in (95, 100, 4000, 9500):
        entries = _repeated("n", f"{{match: [a], rules: {{{unknown}}}}}", aliases)
        yield f"100 unknown rules, {aliases} times", f"namespaces: [{entries}]"
    yield "unknown rules", f"rules: {{{_listed('card-cuont{}: deny')}}}"
    yield "40,000 unknown rules", f"rules: {{{', '.join([f'card-cuont{number}: deny' for number in range(40_000)])}}}"
    yield "unknown keys", f"{{{_listed('enforcemnt{}: warn')}}}"
    yield "entries that are numbers", f"namespaces: [{'1,' * (MAX_TEXT // 2 - 20)}]"
    yield "globs that are numbers", f"namespaces: [{{match: [{'1,' * (MAX_TEXT // 2 - 20)}]}}]"
    yield "users that are numbers", f"trustedUsers: [{'1,' * (MAX_TEXT // 2 - 20)}]"
    yield "a long name of a rule", f"rules: {{{'card-count' * 99}: deny}}"
    long = "a[*]." * (MAX_TEXT // 5 - 30)
    yield "a long path", f"workloadKinds: [{{group: a, version: v1, kind: A, templates: ['{long}']}}]"
    for key in ("schedulerName", "helpURL", "target.volcano", "dialects", "toleration.key", "fleet.declared"):
        section, _, name = key.partition(".")
        yield f"a long text as {key}", f"{section}: {{{name}: '{long}'}}" if name else f"{section}: '{long}'"
    yield "a long release", f"target: {{volcano: '1.0.0-{long}'}}"
    yield "names of schedulers", f"schedulerNames: [{_listed('scheduler{}')}]"
    yield "a long dialect", f"dialects: {{'{long[:900]}': off}}"
    yield "a long glob", f"namespaces: [{{match: ['{'a*' * (MAX_TEXT // 2 - 30)}']}}]"


def _valid() -> Iterator[tuple[str, str]]:
    exceptions = "".join([f", {{<<: *e, namespace: a{number}}}" for number in range(999)])
    for entries in (3000, 990):
        globs = _repeated("n", "{match: ['a-*']}", entries)
        yield f"{entries} entries and 1,000 exceptions", f"namespaces: [{globs}]\nexceptions: [{EXCEPTION}{exceptions}]"
    for globs in (190, 900):
        match = ", ".join([f"'a{number}*'" for number in range(globs)])
        text = f"namespaces: [{_repeated('n', f'{{match: [{match}]}}', 20)}]\nexceptions: [{EXCEPTION}{exceptions}]"
        yield f"{globs} globs and 1,000 exceptions", text
    yield "different globs", f"namespaces: [{{match: [{_listed('a{}*', 999)}]}}]\nexceptions: [{EXCEPTION}{exceptions}]"
    stars = ", ".join([f"'{'a*' * 50}{number}'" for number in range(199)])
    yield "globs within globs", f"namespaces: [{{match: [{stars}]}}, {{match: ['{'*a' * 100}b']}}]"
    rules = ", ".join([*DEFAULT_LEVELS])
    yield "all rules in exceptions", f"exceptions: [{_repeated('e', EXCEPTION[3:].replace('card-count', rules), 150)}]"
    off = ", ".join([f"{rule}: off" for rule in DEFAULT_LEVELS])
    yield "all rules in entries", f"namespaces: [{_repeated('n', f'{{match: [a], rules: {{{off}}}}}', 100)}]"
    yield "entries that change nothing", f"namespaces: [{', '.join([f'{{match: [a{n}]}}' for n in range(1000)])}]"


def _repeated(anchor: str, value: str, times: int) -> str:
    return ", ".join([f"&{anchor} {value}", *[f"*{anchor}"] * times])


def _listed(item: str, most: int = MAX_TEXT) -> str:
    """As many different items as are reviewed."""
    number = min(most, (MAX_TEXT - 100) // (len(item) + 5))
    return ", ".join([item.format(each) for each in range(number)])


def _tiers(plugin: str, plugins: int, tiers: int) -> str:
    first = f"{{plugins: [{_repeated('p', plugin, plugins)}]}}"
    return f"tiers: [{_repeated('t', first, tiers)}]"


def _chips(memory: str, templates: int, chips: int) -> str:
    sizes = _repeated("s", f"{{memory: {memory}}}", templates)
    chip = f"{{resourceName: a.b/c, aiCore: 8, memoryAllocatable: 9, templates: [{sizes}]}}"
    return f"vnpus: [{_repeated('c', chip, chips)}]"
