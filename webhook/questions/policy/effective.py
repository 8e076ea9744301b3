"""What a policy comes to in a namespace: a policy file that says the same, with comments on what is not the default."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import orjson
from pydantic.alias_generators import to_camel

from webhook.policy.levels import Source, Sourced
from webhook.policy.policy import Policy, default_policy
from webhook.rules.policy_keys import DEFAULT_DIALECTS
from webhook.rules.registry import DEFAULT_LEVELS
from webhook.texts import shorten
from webhook.volcano.target import FACTS

MAX_DEFAULT = 60  # characters of a default in a comment
MAX_GLOBS = 60


class EffectivePolicy(NamedTuple):
    """A policy in one namespace, or in every one that no entry of `namespaces` singles out.

    Attributes:
        where: the namespace, and which entry decides there, in a sentence.
        document: a policy file that says the same; of an exempt namespace, that it is, without levels and repairs.
        comments: by field path, what is not the default, and why.
        facts: by field path, what follows from a version.
    """

    where: str
    document: dict[str, Any]
    comments: dict[str, str]
    facts: dict[str, list[str]]


def effective_policy(policy: Policy, namespace: str | None) -> EffectivePolicy:
    """Work out what holds in a namespace; with None, in every one that no entry singles out."""
    winner = policy.everywhere if namespace is None else policy.winning_entry(namespace)
    holds = policy.at(winner)
    document = _dumped(policy)
    entries = policy.document
    for key in ("namespaces", "rules", "repairs", "dialects"):
        del document[key]
    comments = dict(_differences(document, _dumped(default_policy()), ""))
    comments["enforcement"] = _comment(policy.enforced(winner), "enforce", winner)
    if holds.exempt:
        del document["enforcement"]
    else:
        document |= {"enforcement": holds.enforcement.value, "dialects": {}, "repairs": {}, "rules": {}}
        for dialect, used in policy.used(winner).items():
            document["dialects"][dialect] = used.value.value
            comments[f"dialects.{dialect}"] = _comment(used, DEFAULT_DIALECTS[dialect], winner)
        for rule, written in policy.written(winner).items():
            document["rules"][rule] = holds.levels[rule].value
            softened = "softened by fleet.autoscaled" if holds.levels[rule] is not written.value else ""
            comments[f"rules.{rule}"] = _comment(written, DEFAULT_LEVELS[rule], winner, softened)
        for rule, switched in policy.switched(winner).items():
            document["repairs"][rule] = switched.value
            comments[f"repairs.{rule}"] = _comment(switched, True, winner)
    if namespace is None and "namespaces" in entries:
        document["namespaces"] = entries["namespaces"]
    elif winner is not None and (holds.limits or holds.cards or holds.exempt):
        said = {"exempt": True} if holds.exempt else {"limits": entries["namespaces"][winner]["limits"]}
        document["namespaces"] = [{"match": [namespace], **said}]
    target = policy.target.facts()
    facts = {
        f"target.{to_camel(part)}": [one.yes if getattr(target, name) else one.no for name, one in some.items()]
        for part, some in FACTS.items()
    }
    return EffectivePolicy(_where(policy, namespace, winner), document, comments, facts)


def _dumped(policy: Policy) -> dict[str, Any]:
    """All keys of a policy file, with the values that hold."""
    return policy.model_dump(mode="json", by_alias=True)


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


def _where(policy: Policy, namespace: str | None, winner: int | None) -> str:
    where = namespace or ("every other namespace" if policy.namespaces else "every namespace")
    if winner is None:
        return f"in {where}"
    entry = policy.namespaces[winner]
    named = f"namespaces.{winner} ({shorten(', '.join(entry.match), MAX_GLOBS)})"
    exempt = ": it is exempt, and pods are not reviewed" if entry.exempt else ""
    return f"in {where}, as {named} decides{exempt}"
