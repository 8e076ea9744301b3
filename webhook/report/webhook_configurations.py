"""The two webhook configurations of a cluster, as values and as text.

Every field that decides who is sent here, and what happens while nobody answers, stands in this file.
"""

from collections.abc import Iterator
from typing import Any

import yaml

from webhook import names
from webhook.devices.config import DeviceConfig
from webhook.pod.templates import VCJOB_GROUP, WORKLOADS
from webhook.policy import Policy
from webhook.report import match_conditions as when
from webhook.report.manifest import to_json
from webhook.rules.base import Level

NAME = "vgpu-webhook"
NAMESPACE = names.WEBHOOK_NAMESPACE
TIMEOUT_SECONDS = 5

_API = "admissionregistration.k8s.io/v1"
_VERSIONS = {VCJOB_GROUP: "v1alpha1"}
_LABELS = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/part-of": NAME}

_HEADER = """\
# Printed by `vgpu-webhook manifests`. Print it again when the device config changes, or trustedUsers, workloads or target of
# the policy. The CA bundle is left to whoever makes the certificates.
"""

Object = dict[str, Any]


def configurations(config: DeviceConfig, policy: Policy, *, all_pods: bool = False) -> list[Object]:
    """The mutating and the validating configuration.

    Args:
        config: as the target version reads it; its resource names are in the conditions.
        policy: its trusted users are in the conditions, and `workloads: off` leaves the workloads out.
        all_pods: send every new pod to be repaired, for `overwriteEnv`.
    """
    return [
        _configuration("MutatingWebhookConfiguration", list(_mutating(config, all_pods=all_pods))),
        _configuration("ValidatingWebhookConfiguration", list(_validating(config, policy))),
    ]


def as_json(objects: list[Object]) -> str:
    """One List."""
    return to_json({"apiVersion": "v1", "kind": "List", "items": objects})


def as_yaml(objects: list[Object]) -> str:
    """A YAML stream in which the conditions can be read."""
    text: str = yaml.dump_all(objects, Dumper=_Dumper, sort_keys=False, width=2**31, explicit_start=True)
    return _HEADER + text


def hide_devices(config: DeviceConfig) -> Object:
    """What `all_pods` adds: the other pods. While nobody answers they start unhidden, rather than no pod at all."""
    return _entry(
        "hide-devices",
        "/mutate",
        [_rule(["CREATE"], ["pods"])],
        {"names-no-device": when.names_no_device(config)},
        failurePolicy="Ignore",
        reinvocationPolicy="IfNeeded",
    )


def _mutating(config: DeviceConfig, *, all_pods: bool) -> Iterator[Object]:
    yield _entry(
        "repair",
        "/mutate",
        [_rule(["CREATE"], ["pods"])],
        {"names-a-device": when.names_device(config)},
        reinvocationPolicy="IfNeeded",
    )
    if all_pods:
        yield hide_devices(config)


def _validating(config: DeviceConfig, policy: Policy) -> Iterator[Object]:
    yield _entry(
        "pods",
        "/validate",
        [_rule(["CREATE"], ["pods"])],
        {"concerns-a-device": when.concerns_device(config)},
    )
    trusted = policy.settings.trusted_users
    yield _entry(
        "assignments",
        "/validate",
        [_rule(["UPDATE"], ["pods"])],
        ({"is-not-trusted": when.is_not_trusted(trusted)} if trusted else {})
        | {"changes-an-assignment": when.changes_assignment(config)},
    )
    yield _entry(
        "ephemeral-containers",
        "/validate",
        [_rule(["UPDATE"], ["pods/ephemeralcontainers"])],
        {"concerns-a-device": when.ephemeral_concerns_device(config)},
    )
    if policy.settings.workloads is not Level.OFF:
        yield _entry(
            "workloads",
            "/validate",
            list(_workload_rules()),
            {"changes-a-template": when.changes_template(), "concerns-a-device": when.template_concerns_device(config)},
            failurePolicy="Ignore",  # their pods are judged again
        )


def _workload_rules() -> Iterator[Object]:
    for group in sorted({group for group, _ in WORKLOADS}):
        resources = sorted(f"{kind.lower()}s" for owner, kind in WORKLOADS if owner == group)
        yield _rule(["CREATE", "UPDATE"], resources, group, _VERSIONS.get(group, "v1"))


def _configuration(kind: str, webhooks: list[Object]) -> Object:
    return {"apiVersion": _API, "kind": kind, "metadata": {"name": NAME, "labels": dict(_LABELS)}, "webhooks": webhooks}


def _entry(name: str, path: str, rules: list[Object], conditions: dict[str, str], **fields: str) -> Object:
    return {
        "name": f"{name}.{NAME}.svc",
        "clientConfig": {"service": {"namespace": NAMESPACE, "name": NAME, "path": path, "port": 443}},
        "rules": rules,
        "namespaceSelector": {
            "matchExpressions": [
                {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": list(names.EXEMPT_NAMESPACES)}
            ]
        },
        "matchConditions": [{"name": key, "expression": text} for key, text in conditions.items()],
        "matchPolicy": "Equivalent",
        "failurePolicy": "Fail",
        "sideEffects": "None",  # a dry run is only logged
        "timeoutSeconds": TIMEOUT_SECONDS,
        "admissionReviewVersions": ["v1", "v1beta1"],
    } | fields


def _rule(operations: list[str], resources: list[str], group: str = "", version: str = "v1") -> Object:
    return {
        "apiGroups": [group],
        "apiVersions": [version],
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
