"""What a policy sets besides levels, each value beside its default."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, NamedTuple

from webhook.devices.target import Version
from webhook.policy import Policy, default_policy

# What follows from a version: if it holds, and if it does not.
FACTS = {
    "target.volcano": {
        "gates_nodes": (
            "a node counts only if it offers all three vGPU names",
            "a node counts whatever vGPU names it lacks",
        ),
        "reads_uuids": ("GPU UUID annotations are read", "GPU UUID annotations are ignored"),
        "reads_names": (
            "the resource names of the device config are read",
            "only the well-known resource names are read",
        ),
        "follows_policy": (
            "cards are tried in the order of deviceshare.SchedulePolicy",
            "cards are tried from the last one on",
        ),
        "fits_every_name": (
            "the ordinary node fit looks at memory, cores and percentage, too",
            "the ordinary node fit looks at the count alone",
        ),
    },
    "target.devicePlugin": {
        "one_container": ("one vGPU container a pod is served", "several vGPU containers a pod are served"),
    },
}


class Fact(NamedTuple):
    """What follows from a version in the cluster."""

    text: str
    changed: bool


class Setting(NamedTuple):
    """A key of the policy file that is no level."""

    key: str
    value: Any
    default: Any
    facts: tuple[Fact, ...] = ()

    def json(self) -> dict[str, Any]:
        """The setting as JSON."""
        facts = {"facts": [fact.text for fact in self.facts]} if self.facts else {}
        return {"key": self.key, "value": self.value, "default": self.default} | facts


def settings_of(policy: Policy) -> Iterator[Setting]:
    """The settings in the order of the file, each beside its default."""
    usual = default_policy()
    defaults, targets = _values(usual), (policy.settings.target, usual.settings.target)
    for key, value in _values(policy).items():
        facts = []
        for name, texts in FACTS.get(key, {}).items():
            holds, default = (getattr(target, name) for target in targets)
            facts.append(Fact(texts[not holds], holds is not default))
        yield Setting(key, value, defaults[key], tuple(facts))


def _values(policy: Policy) -> dict[str, Any]:
    """What the file sets besides levels, by key."""
    settings = policy.settings
    return {
        "schedulerName": settings.scheduler_name,
        "schedulerNames": list(settings.scheduler_names),
        "toleration": asdict(settings.toleration) if settings.toleration else None,
        "target.volcano": _version(settings.target.volcano),
        "target.devicePlugin": _version(settings.target.device_plugin),
        "percentage.mixedCards": settings.mixed_cards,
        "memoryAboveCard": settings.memory_above_card,
        "enforcement": policy.levels.enforcement,
        "workloads": settings.workloads,
        "trustedUsers": sorted(settings.trusted_users),
        "fleet.autoscaled": settings.autoscaled,
        "fleet.staleAfterSeconds": policy.stale_after,
        "fleet.declared": [nodes.model_dump(mode="json", by_alias=True) for nodes in policy.declarations],
    }


def _version(version: Version) -> str:
    return ".".join(map(str, version))
