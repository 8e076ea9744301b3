"""The policy, and the versions in it compared with those that run."""

from dataclasses import replace

from webhook import names
from webhook.devices import wording
from webhook.devices.fleet import build_fleet
from webhook.devices.node_changes import node_changes
from webhook.lenient import objs, texts
from webhook.policy.warnings import warnings_of
from webhook.questions.doctor.check import Ended, known, need, unchecked
from webhook.questions.doctor.facts import Object, ObjectKind, Unread
from webhook.questions.doctor.setup import Setup, service
from webhook.questions.doctor.volcano import ImageWorkload
from webhook.results import Results, broken, listed, warning
from webhook.volcano.target import OLDEST_DEVICE_PLUGIN, OLDEST_VOLCANO, Version, format_version

_GATING: Version = (1, 15, 1)  # of the releases that need no handshake
_UPGRADE = "upgrade Volcano to 1.14.3, 1.15.1 or newer"
_UNKNOWN = "a replica that runs keeps the last good one, and one that starts is not ready"
_BEHAVIOURS = {
    "gates_nodes": "whether nodes need the well-known names or a handshake",
    "first_card_memory": "what a whole card is",
    "reads_uuids": "whether UUID annotations are read",
    "follows_policy": "the order in which cards are walked",
    "one_container": "how many containers of a pod may have vGPUs",
}


def policy(setup: Setup) -> Results:
    """The policy can be used."""
    facts = setup.facts
    namespace, _ = service(facts)
    place = f"{namespace}/{names.POLICY_MAP}"
    if facts.policy is not None:
        return "the given policy can be used"
    found = known(setup.policy_map)
    if found is None:
        if any(map(_names_policy, facts.all(ObjectKind.DEPLOYMENT))):
            yield broken(f"there is no ConfigMap {place}; {_UNKNOWN}", "create it with the policy that was meant")
        else:
            yield warning(
                f"there is no ConfigMap {place}, so the defaults apply",
                "`vgpu-webhook policy default` prints them; create it",
            )
    elif found.error:
        yield broken(f"{found.error}; {_UNKNOWN}", f"correct {names.POLICY_KEY}; `vgpu-webhook policy check` checks it")
    return f"{place} can be used"


def policy_warnings(setup: Setup) -> Results:
    """The policy has no likely mistakes, such as an entry of namespaces that a later one replaces; see exceptions for those."""
    need(setup.policy_gap)
    for doubt in warnings_of(setup.policy):
        message, _, remedy = doubt.detail.rpartition("; ")
        yield warning(f"{doubt.path}: {message}", remedy)
    return "the policy has no likely mistakes"


def _names_policy(deployment: Object) -> bool:
    """Whether it runs the webhook with `--policy-map`: the ConfigMap must then exist."""
    containers = objs(deployment, "spec", "template", "spec", "containers")
    return any(
        "serve" in texts(each, "args") and any(word.startswith("--policy-map") for word in texts(each, "args"))
        for each in containers
    )


def volcano_version(setup: Setup) -> Results:
    """The scheduler is the one that the policy names."""
    return _compared(setup, setup.scheduler, "volcano", "target.volcano")


def plugin_version(setup: Setup) -> Results:
    """The device plugin is the one that the policy names."""
    return _compared(setup, setup.plugin, "device_plugin", "target.devicePlugin")


def version_pair(setup: Setup) -> Results:
    """The scheduler and the device plugin go together, and what an upgrade of only one of them would do."""
    scheduler, plugin = known(setup.scheduler), known(setup.plugin)
    target, volcano = setup.target, format_version(_version(scheduler))
    runs = f"{plugin.place} runs {format_version(_version(plugin))}, {scheduler.place} {volcano}"
    if not target.reads_handshake:
        return f"{runs}: they go together"
    if not target.writes_handshake:
        yield broken(
            f"{runs}: this Volcano uses the vGPUs of a node only with a handshake, which this device plugin does not write, so "
            "no pod with vGPUs starts",
            f"{_UPGRADE}, or go back to device plugin 1.12.0",
        )
    first = (
        "upgrade Volcano before the device plugin: a plugin newer than 1.12.0 writes no handshake, and this Volcano would "
        "then use the vGPUs of no node"
    )
    then = build_fleet(setup.nodes, setup.config, replace(target, volcano=_GATING))
    for change in node_changes(setup.fleet, then):
        if not change.gained:
            yield warning(
                f"{listed(list(change.nodes))}: {wording.lacks(change.lacks, 'the')}: a Volcano that needs no handshake would "
                "no longer use their vGPUs",
                f"let the device plugin advertise it, see node-resources; then {first}",
            )
    return f"{runs}: they go together; {first}"


def _version(workload: ImageWorkload) -> Version:
    """The version that a workload runs.

    Raises:
        Ended: its image has none.
    """
    version = workload.version
    if version is None:
        why = f"its image {workload.image} has none"
        raise Ended(unchecked(Unread(f"version of {workload.place}", why, "a tag like v1.15.1")))
    return version


def _compared(setup: Setup, running: ImageWorkload | Unread, field: str, key: str) -> Results:
    """Compare the version that runs with the policy's: `field` of its target, which `key` sets."""
    need(setup.policy_gap)
    workload, meant = known(running), setup.policy.target.facts()
    version = _version(workload)
    runs = replace(meant, volcano=version) if field == "volcano" else replace(meant, device_plugin=version)
    running_version = format_version(version)
    oldest = OLDEST_VOLCANO if field == "volcano" else OLDEST_DEVICE_PLUGIN
    named = format_version(getattr(meant, field))
    differ = [words for name, words in _BEHAVIOURS.items() if getattr(runs, name) != getattr(meant, name)]
    if version < oldest:
        yield broken(
            f"{workload.place} runs {running_version}, which is not supported: pods are judged wrongly",
            f"upgrade it to {format_version(oldest)} or newer",
        )
    elif differ:
        yield broken(
            f"{workload.place} runs {running_version}, the policy expects {named}: pods are judged wrongly in "
            f"{', '.join(differ)}",
            f'set {key}: "{running_version}" in the policy',
        )
    as_meant = "as the policy expects" if runs == meant else f"which decides as the policy's {named} does"
    return f"{workload.place} runs {running_version}, {as_meant}"
