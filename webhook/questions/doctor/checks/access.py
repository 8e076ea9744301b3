"""Who besides administrators and the control plane may switch the webhook off or act in its name: RBAC, as it is granted."""

from typing import NamedTuple

from webhook import names
from webhook.lenient import obj, objs, text, texts
from webhook.pod.workload_kinds import KUBERNETES_GROUPS, VCJOB_GROUP, WORKLOAD_KINDS
from webhook.questions.doctor.check import need
from webhook.questions.doctor.facts import Facts, Object, ObjectKind, name_of, namespace_of
from webhook.questions.doctor.setup import CONFIGURATIONS, Setup, own_configurations, service
from webhook.results import Results, broken, listed, warning
from webhook.settings.table import DEVICE_CONFIG_NAMESPACES

ADMINS = "cluster-admin"

_EVERYONE = ("system:authenticated", "system:unauthenticated", "system:anonymous", "system:serviceaccounts")
_WRITE = frozenset({"create", "update", "patch", "delete", "deletecollection"})
_READ = frozenset({"get", "list", "watch"})
_ADMISSION = "admissionregistration.k8s.io"
# What makes pods in every cluster with Volcano; a PodTemplate alone makes none.
_POD_MAKERS = [
    ("", "pods"),
    *[
        (kind.group, kind.plural)
        for kind in WORKLOAD_KINDS.values()
        if kind.group in KUBERNETES_GROUPS | {VCJOB_GROUP} and kind.kind != "PodTemplate"
    ],
]


class Right(NamedTuple):
    """A right on one object, or on a resource if the name is empty."""

    verbs: frozenset[str]
    group: str
    resource: str
    name: str = ""


def configuration_writers(setup: Setup) -> Results:
    """Only administrators may change the webhook configurations."""
    ours = own_configurations(setup.facts, ObjectKind.VALIDATING)
    name = name_of(ours[0]) if ours else names.WEBHOOK
    rights = [Right(_WRITE - {"create"}, _ADMISSION, kind.plural, name) for kind in CONFIGURATIONS]
    return _judged(setup, rights, "change the webhook configurations", "switch the webhook off")


def secret_readers(setup: Setup) -> Results:
    """Only administrators may read the private keys of the webhook and its CA."""
    rights = [Right(_READ, "", "secrets", name) for name in (names.TLS_SECRET, names.CA_SECRET)]
    return _judged(setup, rights, f"read the Secrets of {service(setup.facts)[0]}", "answer in the webhook's name")


def pod_creators(setup: Setup) -> Results:
    """Only administrators may create pods beside the webhook: such pods mount its Secrets and use its accounts."""
    rights = [Right(frozenset({"create"}), group, resource) for group, resource in _POD_MAKERS]
    return _judged(setup, rights, f"create pods in {service(setup.facts)[0]}", "use its Secrets and accounts")


def _judged(setup: Setup, rights: list[Right], what: str, so: str) -> Results:
    facts = setup.facts
    namespace, _ = service(facts)
    for kind in (ObjectKind.CLUSTER_ROLE, ObjectKind.CLUSTER_ROLE_BINDING):
        need(facts.gap(kind))
    for kind in (ObjectKind.ROLE, ObjectKind.ROLE_BINDING):
        need(facts.gap(kind, namespace))
    holders = {
        name: role
        for binding in _bindings(facts, namespace)
        if any(_grants(rule, right) for rule in _rules(facts, binding, namespace) for right in rights)
        for name in map(_subject, objs(binding, "subjects"))
        if (role := text(binding, "roleRef", "name")) != ADMINS or name in _EVERYONE
    }
    everyone = [f"{name} (by {role})" for name, role in holders.items() if name.startswith(_EVERYONE)]
    trusted = (f"{namespace}/", *(f"{own}/" for own in DEVICE_CONFIG_NAMESPACES), "system:")
    others = [f"{name} (by {role})" for name, role in sorted(holders.items()) if not name.startswith(trusted)]
    if everyone:
        yield broken(f"{listed(everyone)} may {what}, and so {so}", "remove the binding")
    elif others:
        yield warning(
            f"{listed(others)} may {what}, and so {so}",
            "leave that right to administrators: narrow the role or its binding",
        )
    return f"only administrators and the control plane may {what}"


def _bindings(facts: Facts, namespace: str) -> list[Object]:
    own = [raw for raw in facts.all(ObjectKind.ROLE_BINDING) if namespace_of(raw) == namespace]
    return [*facts.all(ObjectKind.CLUSTER_ROLE_BINDING), *own]


def _rules(facts: Facts, binding: Object, namespace: str) -> list[Object]:
    reference = obj(binding, "roleRef")
    kind = ObjectKind.ROLE if reference.get("kind") == ObjectKind.ROLE else ObjectKind.CLUSTER_ROLE
    found = facts.find(kind, namespace if kind.namespaced else "", text(reference, "name"))
    return objs(found, "rules")


def _grants(rule: Object, right: Right) -> bool:
    named = texts(rule, "resourceNames")
    return (
        not ({*right.verbs, "*"}.isdisjoint(texts(rule, "verbs")))
        and not {right.group, "*"}.isdisjoint(texts(rule, "apiGroups"))
        and not {right.resource, "*"}.isdisjoint(texts(rule, "resources"))
        and (not named or right.name in named)
    )


def _subject(subject: Object) -> str:
    """A service account as namespace/name, however it is written; a user or a group by its name."""
    name = text(subject, "name")
    if subject.get("kind") == "ServiceAccount":
        return f"{text(subject, 'namespace')}/{name}"
    prefix = names.SERVICE_ACCOUNT
    return name.removeprefix(prefix).replace(":", "/") if name.startswith(prefix) else name
