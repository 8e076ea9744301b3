"""The policy, and the versions that it holds pods to against those that run."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from webhook import names
from webhook.devices.target import Target, Version
from webhook.doctor.check import Check, Line, broken, ok, unchecked, warning
from webhook.doctor.facts import Kind, Unread
from webhook.doctor.ours import service
from webhook.doctor.setup import Setup
from webhook.doctor.workloads import Workload

_BEHAVIOURS = {
    "gates_nodes": "whether nodes need the well-known names",
    "reads_uuids": "whether UUID annotations are read",
    "reads_names": "whether resource names can be set",
    "follows_policy": "the order in which cards are walked",
    "fits_every_name": "which names the ordinary node fit looks at",
    "one_container": "how many containers of a pod may have vGPUs",
}


def policy(setup: Setup) -> Iterator[Line]:
    """The policy can be used."""
    facts = setup.facts
    namespace, _ = service(facts)
    found = facts.find(Kind.CONFIG_MAP, namespace, names.POLICY_MAP)
    place = f"{namespace}/{names.POLICY_MAP}"
    if facts.policy is not None:
        yield ok("the given policy can be used")
    elif isinstance(found, Unread):
        yield unchecked(found)
    elif found is None:
        yield warning(
            f"there is no ConfigMap {place}, so the defaults hold",
            "`vgpu-webhook policy default` prints them; create it",
        )
    elif setup.policy_error:
        yield broken(
            f"{place}: {setup.policy_error}; the webhook keeps the last good one, and has none once it starts anew",
            f"put {names.POLICY_KEY} right; `vgpu-webhook policy check` says whether it is",
        )
    else:
        yield ok(f"{place} can be used")


def volcano_version(setup: Setup) -> Iterator[Line]:
    """The scheduler is the one that the policy names."""
    meant = setup.policy.settings.target
    scheduler = setup.policy_gap or setup.scheduler
    yield _compared(scheduler, "target.volcano", meant, lambda version: replace(meant, volcano=version))


def plugin_version(setup: Setup) -> Iterator[Line]:
    """The device plugin is the one that the policy names."""
    meant = setup.policy.settings.target
    plugin = setup.policy_gap or setup.plugin
    yield _compared(plugin, "target.devicePlugin", meant, lambda version: replace(meant, device_plugin=version))


def _compared(workload: Workload | Unread, key: str, meant: Target, running: Callable[[Version], Target]) -> Line:
    if isinstance(workload, Unread):
        return unchecked(workload)
    version = workload.version
    if version is None:
        return unchecked(
            Unread(f"version of {workload.place}", f"its image {workload.image} has none", "a tag like v1.15.1")
        )
    runs = running(version)
    told = ".".join(map(str, version))
    if runs == meant:
        return ok(f"{workload.place} runs {told}, as the policy says")
    named = ".".join(map(str, meant.volcano if runs.volcano != meant.volcano else meant.device_plugin))
    differ = [words for name, words in _BEHAVIOURS.items() if getattr(runs, name) != getattr(meant, name)]
    if not differ:
        return ok(f"{workload.place} runs {told}, which decides like the {named} of the policy")
    return broken(
        f"{workload.place} runs {told}, the policy says {named}: pods are judged wrongly in {', '.join(differ)}",
        f'set {key}: "{told}" in the policy',
    )


CHECKS = (
    Check("policy", policy),
    Check("volcano-version", volcano_version),
    Check("plugin-version", plugin_version),
)
