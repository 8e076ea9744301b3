"""The other rules that need no nodes, in CEL: for each an expression for the list of its findings, as sentences.

`webhook.manifests.fallback.expressions` has what they are made of. When the API server evaluates them, it has made all repairs,
and has refused text that is not a quantity, fractions and negative numbers.
"""

import json
from collections.abc import Callable, Mapping
from types import ModuleType

from webhook import names
from webhook.devices.config import Chip
from webhook.devices.families import Family, Role
from webhook.devices.model import CARD_CORES
from webhook.devices.requests import MAX_MEMORY
from webhook.devices.vgpu.eligibility import MODES
from webhook.manifests.cel import let, list_of, map_of, quoted, sentence, text
from webhook.manifests.fallback.expressions import (
    BETWEEN,
    Scope,
    amount,
    covers,
    message_of,
    of_each,
    requests,
    some,
    where,
)
from webhook.manifests.fallback.pod import NONZERO
from webhook.rules.isolation import ISOLATED, examples, overriding
from webhook.rules.validate import (
    ascend_memory_oversize,
    ascend_mode_unread,
    ascend_partial_several,
    cores_range,
    count_missing,
    family_mixed,
    foreign_scheduler,
    gpushare_annotation,
    gputype_malformed,
    gputype_shadowed,
    init_container_device,
    isolation_env_from,
    isolation_env_tuned,
    mode_invalid,
    node_name_set,
    number_zero,
    percentage_range,
    percentage_unresolved,
    quantity_invalid,
    several_device_containers,
    toleration_missing,
    uuid_unsupported,
)
from webhook.volcano.target import format_version

MAX_SPLIT = 2_000  # characters of a list; the API server takes seconds to split a long one

_REGULAR = 'd.kind == "containers"'
_OF_VGPU = f"a.is.family == {text(Family.VGPU)}"
_SPACE = r"\t-\r\x1c-\x20\x{85}\pZ"  # the characters that Python strips, in a regular expression


# --- amounts ---------------------------------------------------------------------------------------------------------


def _quantity_invalid(scope: Scope) -> str:
    factor = scope.config.vgpu.memory_factor
    kept, unit = (
        f"({_OF_VGPU} ? {vgpu} : {other})"
        for vgpu, other in (
            (str(factor), "1"),
            (text(quantity_invalid.unit_of(factor)), text(quantity_invalid.unit_of(1))),
        )
    )
    units = f"quantity(a.text).asInteger() / {2**20} / {kept}"
    meant = f"({units} > 0 ? {units} : 1)"
    in_bytes = f"a.is.role == {text(Role.MEMORY)} && quantity(a.text).isInteger() && {units} <= {MAX_MEMORY}"
    in_units = sentence(quantity_invalid.BYTES, unit=unit, meant=f"string({meant})")
    problem = f"({in_bytes} ? {in_units} : {text(quantity_invalid.ABOVE)})"
    message = message_of(
        quantity_invalid, quantity_invalid.DETAIL, "d.who", resource="a.name", amount=quoted("a.text"), problem=problem
    )
    return _of_amounts("a.value < 0", message)


def _number_zero(_scope: Scope) -> str:
    message = message_of(number_zero, number_zero.DETAIL, "d.who", resource="a.name")
    return _of_amounts(f"{_REGULAR} && a.is.role == {text(Role.NUMBER)} && a.value == 0", message)


def _count_missing(scope: Scope) -> str:
    setting = f"({_OF_VGPU} ? {text(count_missing.setting_of(scope.config.vgpu.default_number))} : '')"
    missing = "a.is.count != '' && !d.amounts.exists(b, b.name == a.is.count)"
    first = "d.amounts.filter(b, b.is.count == a.is.count)[0].name == a.name"
    message = message_of(
        count_missing, count_missing.DETAIL, "d.who", resource="a.name", count="a.is.count", setting=setting
    )
    return _of_amounts(f"{_REGULAR} && {missing} && {first}", message)


def _cores_range(_scope: Scope) -> str:
    message = message_of(cores_range, cores_range.DETAIL, "d.who", resource="a.name", cores="string(a.value)")
    return _of_vgpus(Role.CORES, f"a.value > {CARD_CORES}", message)


def _percentage_range(_scope: Scope) -> str:
    message = message_of(
        percentage_range,
        percentage_range.DETAIL,
        "d.who",
        resource="a.name",
        percentage="string(a.value)",
        why=f"(a.value > 0 ? {text(percentage_range.ABOVE)} : {text(percentage_range.ZERO)})",
    )
    return _of_vgpus(Role.PERCENTAGE, "(a.value == 0 || a.value > 100)", message)


def _percentage_unresolved(scope: Scope) -> str:
    message = message_of(
        percentage_unresolved,
        percentage_unresolved.DETAIL,
        "d.who",
        resource="a.name",
        percentage="string(a.value)",
        why=text(percentage_unresolved.NOT_CONVERTED),
        memory=text(scope.config.vgpu.memory_name),
    )
    return _of_vgpus(Role.PERCENTAGE, "a.value >= 1 && a.value <= 100", message)


def _ascend_memory_oversize(scope: Scope) -> str:
    chips = scope.config.ascend.chips
    message = message_of(
        ascend_memory_oversize,
        ascend_memory_oversize.DETAIL,
        "d.who",
        resource="a.name",
        memory="string(a.value)",
        capacity=f"string({_of_chip(chips, 'capacity')})",
        allocatable=f"string({_of_chip(chips, 'allocatable')})",
    )
    return _of_npu_memory(scope, chips, f"a.value > {_of_chip(chips, 'capacity')}", message)


def _ascend_partial_several(scope: Scope) -> str:
    chips = tuple(chip for chip in scope.config.ascend.chips if chip.templates)
    number = let("d.amounts.filter(b, b.name == a.is.count)", "n", "size(n) > 0 && n[0].value > 0 ? n[0].value : 1")
    whole = _of_chip(chips, "allocatable")
    templates = f"{map_of({chip.number_name: str(list(chip.templates)) for chip in chips})}[a.is.count]"
    part = let(f"{templates}.filter(t, a.value <= t)", "fit", f"size(fit) > 0 && fit[0] != {whole}")
    message = message_of(
        ascend_partial_several,
        ascend_partial_several.DETAIL,
        "d.who",
        number=f"string({number})",
        count="a.is.count",
        resource="a.name",
        memory="string(a.value)",
        allocatable=f"string({whole})",
    )
    fits = f"a.value > 0 && a.value <= {_of_chip(chips, 'capacity')}"
    return _of_npu_memory(scope, chips, f"{fits} && {number} > 1 && {part}", message)


def _of_amounts(condition: str, message: str) -> str:
    """The messages about the amounts `a` of each container with devices, `d`."""
    texts = f"d.amounts.map(a, {condition}, {message}).join({text(BETWEEN)})"
    return f"variables.devices.filter(d, d.amounts.exists(a, {condition})).map(d, {texts})"


def _of_vgpus(role: Role, condition: str, message: str) -> str:
    return _of_amounts(f"{_REGULAR} && {_OF_VGPU} && a.is.role == {text(role)} && {condition}", message)


def _of_npu_memory(scope: Scope, chips: tuple[Chip, ...], condition: str, message: str) -> str:
    """The messages about the memory of NPUs of these kinds, unless they are shared in software."""
    if not chips:
        return "[]"
    memory = f"a.is.role == {text(Role.MEMORY)} && a.is.count in {list_of(chip.number_name for chip in chips)}"
    found = _of_amounts(f"{_REGULAR} && {memory} && {condition}", message)
    if not scope.settings.target.shares_npus:
        return found
    return f"{_annotated(names.VNPU_MODE)} && {_value(names.VNPU_MODE)} == {text(names.MODE_HAMI_CORE)} ? [] : {found}"


def _of_chip(chips: tuple[Chip, ...], field: str) -> str:
    return f"{map_of({chip.number_name: str(getattr(chip, field)) for chip in chips})}[a.is.count]"


# --- containers ------------------------------------------------------------------------------------------------------


def _family_mixed(scope: Scope) -> str:
    first = f"variables.devices.filter(d, d.amounts.exists(a, {_OF_VGPU}))[0].who"
    shares = f"d.amounts.exists(a, a.is.family == {text(Family.GPUSHARE)} && {NONZERO})"
    found = [
        let(f"variables.devices.filter(d, {shares})", "l", some("size(l) > 0", _mixed(first, names.GPUSHARE_NAMES)))
    ]
    if names.NVIDIA_GPU not in scope.config.roles:
        native = f"variables.containers.filter(c, {amount(names.NVIDIA_GPU)} != '0')"
        found.append(let(native, "l", some("size(l) > 0", _mixed(first, names.NVIDIA_GPU))))
    return " +\n".join(found)


def _mixed(first: str, other: str) -> str:
    return message_of(family_mixed, family_mixed.DETAIL, first=first, second="l[0].who", other=text(other))


def _init_container_device(_scope: Scope) -> str:
    restarts = 'has(d.raw.restartPolicy) && d.raw.restartPolicy == "Always"'
    sidecar = f"({restarts} ? {text(init_container_device.SIDECAR)} : '')"
    message = message_of(init_container_device, init_container_device.DETAIL, "d.who", sidecar=sidecar)
    refused = f"d.amounts.exists(a, a.is.family != {text(Family.GPUSHARE)} && {NONZERO})"
    return f'variables.devices.filter(d, d.kind == "initContainers" && {refused}).map(d, {message})'


def _several_device_containers(scope: Scope) -> str:
    target = scope.settings.target
    if not target.one_container:
        return "[]"
    version = text(".".join(map(str, target.device_plugin)))
    message = message_of(
        several_device_containers,
        several_device_containers.DETAIL,
        first="l[0].who",
        second="l[1].who",
        version=version,
    )
    none = f"d.amounts.exists(a, {_OF_VGPU} && a.is.role == {text(Role.NUMBER)} && a.value == 0)"
    found = f"variables.devices.filter(d, {_REGULAR} && d.amounts.exists(a, {_OF_VGPU}) && !{none})"
    return let(found, "l", some("size(l) > 1", message))


def _isolation_env_tuned(_scope: Scope) -> str:
    effects = map_of({name: text(effect) for name, effect in isolation_env_tuned.EFFECTS.items()})
    message = message_of(isolation_env_tuned, isolation_env_tuned.DETAIL, name="e.name", effect=f"{effects}[e.name]")
    return of_each("env", "e", f"e.name in {list_of(isolation_env_tuned.EFFECTS)}", message)


def _isolation_env_from(_scope: Scope) -> str:
    prefix = "(has(f.prefix) ? f.prefix : '')"
    found = " + ".join(_behind(family, prefix) for family in sorted(ISOLATED, reverse=True))  # as first_behind has them
    message = message_of(isolation_env_from, isolation_env_from.DETAIL, name=f"({found})[0]")
    return of_each("envFrom", "f", f"size({found}) > 0", message)


def _behind(family: str, prefix: str) -> str:
    """The variables of a family that an `envFrom` with a prefix can set."""
    _, starts = overriding(frozenset({Family(family)}))
    known = f"{list_of(examples(family), ordered=False)}.filter(n, n.startsWith({prefix}) && n != {prefix})"
    more = f"{list_of(starts)}.filter(n, {prefix}.startsWith(n)).map(n, n + '…')" if starts else "[]"
    return f"({requests(family)} ? {known} + {more} : [])"


# --- the pod ---------------------------------------------------------------------------------------------------------


def _foreign_scheduler(scope: Scope) -> str:
    own, usual = "variables.pod.spec.schedulerName", text(names.DEFAULT_SCHEDULER)
    allowed = scope.settings.scheduler_names
    unrepaired = where(scope.levels, lambda effective: "scheduler-name" in effective.repairs_off)
    advice = (
        f"(s == {usual} || {unrepaired} ? {text(foreign_scheduler.NAME_IT)} : "
        f"{text(foreign_scheduler.NAME_IT_OR_NONE)})"
    )
    message = message_of(
        foreign_scheduler,
        foreign_scheduler.DETAIL,
        scheduler=quoted("s"),
        own=f"(s == {text(foreign_scheduler.AGENTS)} ? {text(foreign_scheduler.OWN)} : '')",
        allowed=text(" or ".join(map(json.dumps, allowed))),
        advice=advice,
    )
    return let(f"has({own}) && {own} != '' ? {own} : {usual}", "s", some(f"!(s in {list_of(allowed)})", message))


def _node_name_set(_scope: Scope) -> str:
    node = "variables.pod.spec.nodeName"
    return some(f"has({node}) && {node} != ''", message_of(node_name_set, node_name_set.DETAIL, node=quoted(node)))


def _toleration_missing(scope: Scope) -> str:
    wanted = scope.settings.toleration
    if wanted is None:
        return "[]"
    own = "variables.pod.spec.tolerations"
    toleration = text(json.dumps(wanted.json(), separators=(",", ":")))
    message = message_of(toleration_missing, toleration_missing.DETAIL, key=text(wanted.key), toleration=toleration)
    return some(f"!(has({own}) && {own}.exists(t, {covers(wanted)}))", message)


# --- annotations -----------------------------------------------------------------------------------------------------


def _mode_invalid(_scope: Scope) -> str:
    mode = _value(names.VGPU_MODE)
    near = "".join(
        f"{mode}.matches({text(_near(each))}) ? {text(f'did you mean {json.dumps(each)}?')} : " for each in MODES
    )
    advice = f"(size({mode}) > {MAX_SPLIT} ? {text(mode_invalid.WRITE_ONE)} : {near}{text(mode_invalid.WRITE_ONE)})"
    message = message_of(mode_invalid, mode_invalid.DETAIL, mode=quoted(mode), advice=advice)
    return some(f"{_annotated(names.VGPU_MODE)} && !({mode} in {list_of(MODES)})", message)


def _ascend_mode_unread(scope: Scope) -> str:
    mode, right, target = _value(names.VNPU_MODE), names.MODE_HAMI_CORE, scope.settings.target
    rule, near = ascend_mode_unread, f"{_annotated(names.VNPU_MODE)} && {mode}.matches({text(_near(right))})"
    if target.shares_npus:
        return some(f"{near} && {mode} != {text(right)}", message_of(rule, rule.DETAIL, mode=quoted(mode)))
    version = text(format_version(target.volcano))
    return some(near, message_of(rule, rule.UNREAD, mode=quoted(mode), version=version))


def _near(mode: str) -> str:
    """The pattern of the words that differ from a mode in case, spaces and dashes only."""
    letters = "".join("[-_ ]?" if sign == "-" else f"[{sign}{sign.upper()}]" for sign in mode)
    return f"^[{_SPACE}]*{letters}[{_SPACE}]*$"


def _gputype_malformed(_scope: Scope) -> str:
    rule, key = gputype_malformed, names.NOUSE_GPUTYPE
    value, effect = _value(key), rule.EFFECTS[key]
    begins = f"(size({value}) > {MAX_SPLIT} ? {value}.substring(0, {MAX_SPLIT}) : {value})"  # the sentence shows less
    meant = f"{begins}.split(',').map(word, word.trim()).filter(word, word != '').join(',')"
    advice = let(meant, "meant", f"meant == '' ? {text(rule.NAME_TYPE)} : 'write ' + {quoted('meant')}")
    problem = text(rule.EMPTY_ELEMENT.format(effect=effect))
    detail = message_of(rule, rule.DETAIL, key=text(key), value=quoted(value), problem=problem, advice=advice)
    empty = text(f"{rule.check.id}: {rule.EMPTY.format(key=key, effect=effect, advice=rule.NAME_TYPE)}")
    excludes = f"{_annotated(key)} && !({_annotated(names.USE_GPUTYPE)}) && {value}.matches({text('(?:^|,)(?:,|$)')})"
    return some(excludes, f"({value} == '' ? {empty} : {detail})")


def _gputype_shadowed(_scope: Scope) -> str:
    both = f"{_annotated(names.USE_GPUTYPE)} && {_annotated(names.NOUSE_GPUTYPE)}"
    return some(both, message_of(gputype_shadowed, gputype_shadowed.DETAIL))


def _uuid_unsupported(scope: Scope) -> str:
    target = scope.settings.target
    if target.reads_uuids:
        return "[]"
    message = message_of(
        uuid_unsupported, uuid_unsupported.DETAIL, version=text(format_version(target.volcano)), key="key"
    )
    keys = list_of(uuid_unsupported.KEYS)
    return f"{keys}.filter(key, key in variables.annotations).map(key, {message})"


def _gpushare_annotation(_scope: Scope) -> str:
    return some(_annotated(names.GPU_UNHEALTHY_IDS), message_of(gpushare_annotation, gpushare_annotation.DETAIL))


def _annotated(key: str) -> str:
    return f"{text(key)} in variables.annotations"


def _value(key: str) -> str:
    return f"variables.annotations[{text(key)}]"


_EXPRESSIONS: Mapping[ModuleType, Callable[[Scope], str]] = {
    quantity_invalid: _quantity_invalid,
    number_zero: _number_zero,
    count_missing: _count_missing,
    cores_range: _cores_range,
    percentage_range: _percentage_range,
    percentage_unresolved: _percentage_unresolved,
    mode_invalid: _mode_invalid,
    gputype_malformed: _gputype_malformed,
    gputype_shadowed: _gputype_shadowed,
    uuid_unsupported: _uuid_unsupported,
    family_mixed: _family_mixed,
    init_container_device: _init_container_device,
    several_device_containers: _several_device_containers,
    foreign_scheduler: _foreign_scheduler,
    node_name_set: _node_name_set,
    toleration_missing: _toleration_missing,
    isolation_env_from: _isolation_env_from,
    isolation_env_tuned: _isolation_env_tuned,
    gpushare_annotation: _gpushare_annotation,
    ascend_memory_oversize: _ascend_memory_oversize,
    ascend_partial_several: _ascend_partial_several,
    ascend_mode_unread: _ascend_mode_unread,
}
STATIC: Mapping[str, Callable[[Scope], str]] = {rule.check.id: write for rule, write in _EXPRESSIONS.items()}
