"""The two webhook configurations of a cluster, as values and as text.

This file contains every field that decides which requests the API server sends, and what happens while the webhook does not
respond. Values have all fields, as in a cluster where the webhook runs. Texts are for `kubectl apply`: the rules of each entry
are in an annotation, from which `vgpu-webhook certs` copies them once the webhook responds. Until then no pod depends on it.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import yaml

from webhook import names
from webhook.devices.config import DeviceConfig
from webhook.manifests import match_conditions as when
from webhook.pod.workload_kinds import WorkloadKinds
from webhook.policy.policy import Policy
from webhook.rules.choices import WorkloadUse
from webhook.settings.table import DEVICE_CONFIG, SCHEDULER

DOMAIN = f"{names.WEBHOOK}.svc"  # of the entries; they have the same names wherever the webhook is installed
TIMEOUT_SECONDS = 5

EXPOSED = f"exposed.{DOMAIN}"  # for pods that expose a device and request none
LARGE = f"large.{DOMAIN}"  # for pods that are too large for the conditions of the other entries
PROBE = f"probe.{DOMAIN}"  # called from the start, for dry runs of a ConfigMap that is never stored

_READ_BY_VOLCANO = sorted({namespace for setting in (DEVICE_CONFIG, SCHEDULER) for namespace, _ in setting.places})
_API = "admissionregistration.k8s.io/v1"
LABELS = {"app.kubernetes.io/name": names.WEBHOOK, "app.kubernetes.io/part-of": names.WEBHOOK}

_FALLBACK_HEADER = """\
# Printed by `vgpu-webhook manifests --fallback`. Print it again when the device config changes, or the policy: the API server
# evaluates what is written here.
"""
_HEADER = """\
# Printed by `vgpu-webhook manifests`. Print it again when the device config changes, or trustedUsers, workloads, workloadKinds,
# dialects, target or the level of visible-devices in the policy. Two fields of each entry are left out: the CA bundle, which
# `vgpu-webhook certs` or cert-manager writes, and the rules, which `vgpu-webhook certs` copies from the annotations once the
# webhook answers. Without rules an entry is not called.
"""

_GROUP, _, _VERSION = names.QUEUE_API.partition("/")  # of queues and PodGroups

Object = dict[str, Any]


class Installation(NamedTuple):
    """The name of the webhook's Service and configurations, and the namespace of the Service.

    Attributes:
        namespace: of the Service.
        name: of the Service and the configurations; names of fallback policies begin with it.
        suffix: how the names of fallback policies end.
    """

    namespace: str = names.WEBHOOK
    name: str = names.WEBHOOK
    suffix: str = ""

    def policy_name(self, kind: str) -> str:
        """The name of a fallback policy and of its binding."""
        return f"{self.name}-{kind}{self.suffix}"


DEFAULT_INSTALLATION = Installation()
# Of objects that the API server reads from files, which it takes with no other name (KEP-5793).
STATIC_SUFFIX = ".static.k8s.io"


def configurations(
    config: DeviceConfig, policy: Policy, *, all_pods: bool = False, installation: Installation = DEFAULT_INSTALLATION
) -> list[Object]:
    """The mutating and the validating configuration.

    Args:
        config: as the target version reads it; its resource names are in the conditions.
        policy: its trusted users and dialects are in the conditions, and `workloads: off` leaves the workloads out.
        all_pods: send every new pod to be repaired, for `overwriteEnv`.
        installation: names of its objects.
    """
    validating = _validating(config, policy, installation.namespace)
    return [
        _configuration("MutatingWebhookConfiguration", _mutating(config, policy, all_pods=all_pods), installation),
        _configuration("ValidatingWebhookConfiguration", validating, installation),
    ]


def as_json(objects: list[Object]) -> str:
    """One List, to be applied."""
    items = [_unbound(one) for one in objects]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, separators=(",", ":"))


def as_yaml(objects: list[Object]) -> str:
    """A YAML stream in which the conditions can be read, to be applied."""
    unbound = [_unbound(one) for one in objects]
    text: str = yaml.dump_all(
        unbound, Dumper=_Dumper, sort_keys=False, width=2**31, explicit_start=True, allow_unicode=True
    )
    # Above the first `---` it would be a document, which an API server that reads files refuses.
    return text.replace("\n", "\n" + (_HEADER if "webhooks" in objects[0] else _FALLBACK_HEADER), 1)


def hide_devices(config: DeviceConfig) -> Object:
    """The entry for pods without a device and for ephemeral containers, which `all_pods` adds.

    If the webhook does not respond, they start unchanged.
    """
    return _entry(
        "hide-devices",
        "/mutate",
        [_rule(["CREATE"], ["pods"]), _rule(["UPDATE"], ["pods/ephemeralcontainers"])],
        {"hides-devices": when.hides_devices(config), "is-no-mirror": when.is_no_mirror()},
        failurePolicy="Ignore",
        reinvocationPolicy="IfNeeded",
    )


def _mutating(config: DeviceConfig, policy: Policy, *, all_pods: bool) -> Iterator[Object]:
    yield _entry(
        "repair",
        "/mutate",
        [_rule(["CREATE"], ["pods"])],
        {"names-a-device": when.names_device(config), "is-no-mirror": when.is_no_mirror()},
        reinvocationPolicy="IfNeeded",
    )
    yield _entry(
        "repair-large",
        "/mutate",
        [_rule(["CREATE"], ["pods"])],
        {"may-name-a-device": when.may_name_device(config), "is-no-mirror": when.is_no_mirror()},
        failurePolicy="Ignore",  # it has no device, unless it is far behind
        reinvocationPolicy="IfNeeded",
    )
    if when.translates(policy):
        yield _entry(
            "translate",
            "/mutate",
            [_rule(["CREATE"], ["pods"])],
            {
                "uses-a-dialect": when.uses_dialect(config, policy),
                "names-no-device": when.names_no_device(config),
                "is-no-mirror": when.is_no_mirror(),
            },
            failurePolicy="Ignore",  # they are pods of another system
            reinvocationPolicy="IfNeeded",
        )
    if all_pods:
        yield hide_devices(config)


def _validating(config: DeviceConfig, policy: Policy, own: str) -> Iterator[Object]:
    yield from _of_pods(config, policy)
    yield from _of_workloads(config, policy)
    yield from _of_settings(config, own)
    probe = _entry("probe", "/validate", [_rule(["CREATE"], ["configmaps"])], {"is-the-probe": when.is_probe()})
    del probe["namespaceSelector"]  # the webhook may be installed in an exempt namespace
    yield probe


def _of_pods(config: DeviceConfig, policy: Policy) -> Iterator[Object]:
    yield _entry(
        "pods",
        "/validate",
        [_rule(["CREATE"], ["pods"])],
        {"claims-a-device": when.claims_device(config), "is-no-mirror": when.is_no_mirror()},
    )
    yield _entry(
        "exposed",
        "/validate",
        [_rule(["CREATE"], ["pods"]), _rule(["UPDATE"], ["pods/ephemeralcontainers"])],
        {"exposes-a-device": when.exposes_device(config), "is-no-mirror": when.is_no_mirror()},
        failurePolicy="Fail"
        if policy.denies("visible-devices")
        else "Ignore",  # by default such pods only get a warning
    )
    if uses := when.uses_dialect(config, policy):
        conditions = {"uses-a-dialect": uses, "concerns-no-device": when.concerns_no_device(config)}
        conditions["is-no-mirror"] = when.is_no_mirror()
        yield _entry("dialects", "/validate", [_rule(["CREATE"], ["pods"])], conditions, failurePolicy="Ignore")
    trusted = policy.trusted_users
    is_not_trusted = {"is-not-trusted": when.is_not_trusted(trusted)} if trusted else {}
    yield _entry(
        "assignments",
        "/validate",
        [_rule(["UPDATE"], ["pods", "pods/status"])],
        {"changes-an-assignment": when.changes_assignment(config)} | is_not_trusted,
    )
    yield _entry(
        "bindings",
        "/validate",
        [_rule(["CREATE"], ["bindings", "pods/binding"])],  # the first is an old form of the second
        {"has-an-assignment": when.binds_assignment()} | is_not_trusted,
    )
    yield _entry(
        "ephemeral-containers",
        "/validate",
        [_rule(["UPDATE"], ["pods/ephemeralcontainers"])],
        {"names-a-device": when.names_device(config)},
    )
    yield _entry(
        "large",
        "/validate",
        [_rule(["CREATE"], ["pods"]), _rule(["UPDATE"], ["pods", "pods/status", "pods/ephemeralcontainers"])],
        {"may-concern-a-device": when.may_concern_device(config), "is-no-mirror": when.is_no_mirror()},
        failurePolicy="Ignore",  # most pods that are so large have no device
    )


def _of_workloads(config: DeviceConfig, policy: Policy) -> Iterator[Object]:
    yield _entry(
        "pod-groups",
        "/validate",
        [_rule(["CREATE", "UPDATE"], ["podgroups"], _GROUP, (_VERSION,))],
        {"changes-a-queue": when.changes_queue()},
        failurePolicy="Ignore",  # every pod under Volcano needs one, also those without devices
    )
    if policy.workloads is not WorkloadUse.OFF:
        kinds = policy.workload_kinds
        yield _entry(
            "workloads",
            "/validate",
            list(_workload_rules(kinds)),
            {
                "changes-a-template": when.changes_template(kinds),
                "concerns-a-device": when.template_concerns_device(config, kinds, policy),
            },
            failurePolicy="Ignore",  # their pods are judged again
        )


def _of_settings(config: DeviceConfig, own: str) -> Iterator[Object]:
    written = {
        "policy": ((own,), {"is-a-policy": when.is_policy()}),
        "settings": (_READ_BY_VOLCANO, {"configures-volcano": when.configures_volcano()}),
    }
    for name, (namespaces, condition) in written.items():
        rule = _rule(["CREATE", "UPDATE"], ["configmaps"])
        entry = _entry(name, "/settings", [rule], condition, failurePolicy="Ignore")
        yield entry | {"namespaceSelector": _namespaces("In", namespaces)}  # exempt ones, too
    yield _entry(
        "limits",
        "/settings",
        [
            _rule(["CREATE", "UPDATE"], ["resourcequotas"]),
            _rule(["CREATE", "UPDATE"], ["queues"], _GROUP, (_VERSION,)) | {"scope": "Cluster"},
        ],
        {"limits-devices": when.limits_devices(config)},
        failurePolicy="Ignore",
    )


def _workload_rules(kinds: WorkloadKinds) -> Iterator[Object]:
    resources: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for kind in kinds.values():
        resources.setdefault((kind.group, kind.versions), []).append(kind.plural)
    for (group, versions), names_of_group in sorted(resources.items()):
        yield _rule(["CREATE", "UPDATE"], sorted(names_of_group), group, versions) | {"scope": "*"}


def _configuration(kind: str, entries: Iterator[Object], installation: Installation) -> Object:
    service = {"namespace": installation.namespace, "name": installation.name}
    webhooks = [entry | {"clientConfig": {"service": service | entry["clientConfig"]["service"]}} for entry in entries]
    metadata = {"name": installation.name, "labels": dict(LABELS)}
    return {"apiVersion": _API, "kind": kind, "metadata": metadata, "webhooks": webhooks}


def _unbound(configuration: Object) -> Object:
    """The configuration with the rules of each entry but the probe's in an annotation; any other object as it is."""
    if "webhooks" not in configuration:
        return configuration
    bound = [entry for entry in configuration["webhooks"] if entry["name"] != PROBE]
    annotations = {names.RULES_ANNOTATION + entry["name"]: _rules_text(entry["rules"]) for entry in bound}
    webhooks = [
        {key: value for key, value in entry.items() if key != "rules" or entry not in bound}
        for entry in configuration["webhooks"]
    ]
    metadata = configuration["metadata"] | {"annotations": annotations}
    return configuration | {"metadata": metadata, "webhooks": webhooks}


def _rules_text(rules: list[Object]) -> str:
    """The rules, with lists of names on one line each."""
    return str(yaml.safe_dump(rules, sort_keys=False, default_flow_style=None, width=2**31)).rstrip()


def _entry(name: str, path: str, rules: list[Object], conditions: dict[str, str], **fields: str) -> Object:
    return {
        "name": f"{name}.{DOMAIN}",
        "clientConfig": {"service": {"path": path, "port": 443}},
        "rules": rules,
        "namespaceSelector": _namespaces("NotIn", names.EXEMPT_NAMESPACES),
        "matchConditions": [{"name": key, "expression": text} for key, text in conditions.items()],
        "matchPolicy": "Equivalent",
        "failurePolicy": "Fail",
        "sideEffects": "None",  # a dry run is only logged
        "timeoutSeconds": TIMEOUT_SECONDS,
        "admissionReviewVersions": ["v1", "v1beta1"],
    } | fields


def _namespaces(operator: str, values: Sequence[str]) -> Object:
    return {"matchExpressions": [{"key": names.NAMESPACE_NAME, "operator": operator, "values": list(values)}]}


def _rule(operations: list[str], resources: list[str], group: str = "", versions: Sequence[str] = ("v1",)) -> Object:
    return {
        "apiGroups": [group],
        "apiVersions": list(versions),
        "operations": operations,
        "resources": resources,
        "scope": "Namespaced",
    }


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  # PyYAML's signature
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
        """Indent lists inside of objects, as the Kubernetes documentation does."""
        super().increase_indent(flow, False)


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _represent_text)
