"""The policy, and the versions in it compared with those that run."""

from collections.abc import Iterator
from dataclasses import replace

from webhook import names
from webhook.doctor.check import CheckResult, broken, known, need, ok, unchecked, warning
from webhook.doctor.facts import Unread
from webhook.doctor.setup import Setup, service
from webhook.doctor.volcano import ImageWorkload
from webhook.volcano.target import OLDEST_DEVICE_PLUGIN, OLDEST_VOLCANO

_BEHAVIOURS = {
    "gates_nodes": "whether nodes need the well-known names",
    "first_card_memory": "what a whole card is",
    "reads_uuids": "whether UUID annotations are read",
    "follows_policy": "the order in which cards are walked",
    "one_container": "how many containers of a pod may have vGPUs",
}


def policy(setup: Setup) -> Iterator[CheckResult]:
    """The policy can be used."""
    facts = setup.facts
    namespace, _ = service(facts)
    place = f"{namespace}/{names.POLICY_MAP}"
    if facts.policy is not None:
        yield ok("the given policy can be used")
    elif (found := known(setup.policy_map)) is None:
        yield warning(
            f"there is no ConfigMap {place}, so the defaults apply",
            "`vgpu-webhook policy default` prints them; create it",
        )
    elif found.error:
        yield broken(
            f"{found.error}; the webhook uses the last good one, but only until it is restarted",
            f"correct {names.POLICY_KEY}; `vgpu-webhook policy check` checks it",
        )
    else:
        yield ok(f"{place} can be used")


def volcano_version(setup: Setup) -> Iterator[CheckResult]:
    """The scheduler is the one that the policy names."""
    yield _compared(setup, setup.scheduler, "volcano", "target.volcano")


def plugin_version(setup: Setup) -> Iterator[CheckResult]:
    """The device plugin is the one that the policy names."""
    yield _compared(setup, setup.plugin, "device_plugin", "target.devicePlugin")


def _compared(setup: Setup, running: ImageWorkload | Unread, field: str, key: str) -> CheckResult:
    """Compare the version that runs with the policy's: `field` of its target, which `key` sets."""
    need(setup.policy_gap)
    workload, meant = known(running), setup.policy.settings.target
    version = workload.version
    if version is None:
        return unchecked(
            Unread(f"version of {workload.place}", f"its image {workload.image} has none", "a tag like v1.15.1")
        )
    runs = replace(meant, volcano=version) if field == "volcano" else replace(meant, device_plugin=version)
    running_version = ".".join(map(str, version))
    oldest = OLDEST_VOLCANO if field == "volcano" else OLDEST_DEVICE_PLUGIN
    if version < oldest:
        return broken(
            f"{workload.place} runs {running_version}, which is not supported: pods are judged wrongly",
            f"upgrade it to {'.'.join(map(str, oldest))} or newer",
        )
    if runs == meant:
        return ok(f"{workload.place} runs {running_version}, as the policy expects")
    named = ".".join(map(str, getattr(meant, field)))
    differ = [words for name, words in _BEHAVIOURS.items() if getattr(runs, name) != getattr(meant, name)]
    if not differ:
        return ok(f"{workload.place} runs {running_version}, which decides as the policy's {named} does")
    return broken(
        f"{workload.place} runs {running_version}, the policy expects {named}: pods are judged wrongly in {', '.join(differ)}",
        f'set {key}: "{running_version}" in the policy',
    )
