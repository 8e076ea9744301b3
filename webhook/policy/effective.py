"""What a policy comes to in a namespace: a policy file that says the same, with comments on what is not the default."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import orjson

from webhook.policy.policy import Policy
from webhook.policy.schema import PolicyFile
from webhook.rules.levels import LevelTable, Source, Sourced
from webhook.rules.registry import DEFAULT_LEVELS
from webhook.rules.settings import DialectUse
from webhook.texts import shorten

MAX_DEFAULT = 60  # characters of a default in a comment
MAX_GLOBS = 60

# What follows from a version: if it holds, and if it does not.
FACTS = {
    "target.volcano": {
        "gates_nodes": (
            "a node counts only if it offers all three vGPU names",
            "a node counts whatever vGPU names it lacks",
        ),
        "binds_unseen": (
            "a node whose cards the scheduler does not see takes pods whose amounts it offers, without cards",
            "a node whose cards the scheduler does not see takes no pod with vGPUs",
        ),
        "reads_handshake": (
            "a node counts only with the device plugin's handshake",
            "a node needs no handshake",
        ),
        "first_card_memory": (
            "a container without memory takes of each card what the first one has that is tried",
            "a container without memory takes whole cards",
        ),
        "reads_uuids": ("GPU UUID annotations are read", "GPU UUID annotations are ignored"),
        "scales_instances": (
            "the memory of a MIG instance is counted in units, as requests are",
            "the memory of a MIG instance is counted in MiB, whatever gpuMemoryFactor is",
        ),
        "reads_wrapped_npus": (
            "NPUs may stand under vnpus: {configs: …} of the device config",
            "a device config with vnpus: {configs: …} is not read at all",
        ),
        "follows_policy": (
            "cards are tried in the order of deviceshare.SchedulePolicy",
            "cards are tried from the last one on",
        ),
        "limits_groups": (
            "a queue's limits for node groups are read, if the plugin nodegroup is in use",
            "a queue's limits for node groups are ignored",
        ),
        "spreads_groups": (
            "the annotation that spreads a group's pods over cards is read",
            "the annotation that spreads a group's pods over cards is ignored",
        ),
        "counts_terminating": (
            "a pod that is being deleted occupies its devices",
            "a pod that is being deleted occupies no device",
        ),
        "counts_repeats": (
            "each entry of a pod for the same card counts",
            "the first entry of a pod for a card counts, others do not",
        ),
        "skips_torn": (
            "an assignment that cannot be read is skipped",
            "an assignment with too few fields stops the scheduler",
        ),
    },
    "target.devicePlugin": {
        "one_container": ("one vGPU container a pod is served", "several vGPU containers a pod are served"),
        "writes_handshake": ("the handshake is written on nodes", "no handshake is written on nodes"),
    },
    "target.kubernetes": {
        "lists_units": (
            "the kubelet writes each unit of memory into the pod's status",
            "the kubelet writes no devices into the pod's status",
        ),
    },
}


class EffectivePolicy(NamedTuple):
    """A policy in one namespace, or in every one that no entry of `namespaces` singles out.

    Attributes:
        where: the namespace, and which entry decides there, in a sentence.
        document: a policy file that says the same; of an exempt namespace, without levels and repairs.
        comments: by field path, what is not the default, and why.
        facts: by field path, what follows from a version.
    """

    where: str
    document: dict[str, Any]
    comments: dict[str, str]
    facts: dict[str, list[str]]


def effective_policy(policy: Policy, namespace: str | None) -> EffectivePolicy:
    """Work out what holds in a namespace; with None, in every one that no entry singles out."""
    table = policy.levels
    winner = table.everywhere if namespace is None else table.winning_entry(namespace)
    holds = table.at(winner)
    document = _dumped(policy.document)
    entries = PolicyFile.model_validate(policy.document).model_dump(mode="json", by_alias=True, exclude_unset=True)
    for key in ("namespaces", "rules", "repairs", "dialects"):
        del document[key]
    comments = dict(_differences(document, _dumped({}), ""))
    comments["enforcement"] = _comment(table.enforced(winner), "enforce", winner)
    if holds.exempt:
        del document["enforcement"]
    else:
        document |= {"enforcement": holds.enforcement.value, "dialects": {}, "repairs": {}, "rules": {}}
        for dialect, used in table.used(winner).items():
            document["dialects"][dialect] = used.value.value
            comments[f"dialects.{dialect}"] = _comment(used, DialectUse.WARN, winner)
        for rule, written in table.written(winner).items():
            document["rules"][rule] = holds.levels[rule].value
            softened = "softened by fleet.autoscaled" if holds.levels[rule] is not written.value else ""
            comments[f"rules.{rule}"] = _comment(written, DEFAULT_LEVELS[rule], winner, softened)
        for rule, switched in table.switched(winner).items():
            document["repairs"][rule] = switched.value
            comments[f"repairs.{rule}"] = _comment(switched, True, winner)
    if namespace is None and "namespaces" in entries:
        document["namespaces"] = entries["namespaces"]
    elif winner is not None and holds.limits and not holds.exempt:
        document["namespaces"] = [{"match": [namespace], "limits": entries["namespaces"][winner]["limits"]}]
    facts = {
        key: [texts[not getattr(policy.settings.target, name)] for name, texts in some.items()]
        for key, some in FACTS.items()
    }
    return EffectivePolicy(_where(table, namespace, winner), document, comments, facts)


def _dumped(document: Mapping[str, Any]) -> dict[str, Any]:
    """All keys of a policy file, with the values that hold."""
    return PolicyFile.model_validate(document).model_dump(mode="json", by_alias=True)


def _differences(values: Mapping[str, Any], usual: Mapping[str, Any], path: str) -> Iterator[tuple[str, str]]:
    """The fields with another value than the default."""
    for key, value in values.items():
        default = usual.get(key)
        if isinstance(value, dict) and isinstance(default, dict):
            yield from _differences(value, default, f"{path}{key}.")
        elif value != default:
            shown = orjson.dumps(default).decode().strip('"')
            yield f"{path}{key}", f"default {shown}" if len(shown) <= MAX_DEFAULT else "not the default"


def _comment(written: Sourced[Any], default: object, winner: int | None, *more: str) -> str:
    source = f"namespaces.{winner}" if written.source is Source.NAMESPACES else written.source.value
    changed = f"default {str(default).lower()}" if written.value != default else ""
    return ", ".join(filter(None, ["" if written.source is Source.DEFAULT else source, changed, *more]))


def _where(table: LevelTable, namespace: str | None, winner: int | None) -> str:
    where = namespace or ("every other namespace" if table.namespaces else "every namespace")
    if winner is None:
        return f"in {where}"
    entry = table.namespaces[winner]
    named = f"namespaces.{winner} ({shorten(', '.join(entry.match), MAX_GLOBS)})"
    exempt = ": it is exempt, and pods are not reviewed" if entry.exempt else ""
    return f"in {where}, as {named} decides{exempt}"
