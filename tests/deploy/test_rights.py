"""The accounts have the least permissions, and the network policies allow the least traffic."""

from tests.deploy.files import DEFAULT, documents, one, pod_specs
from webhook import names
from webhook.cli import certs

FOUND = documents(*DEFAULT)
PODS = pod_specs(FOUND)
NAMESPACE = "vgpu-webhook"
READ = frozenset({"get", "list", "watch"})


def rights(account: str) -> set[tuple[str | None, str, frozenset[str], frozenset[str]]]:
    """The namespace, resource, names and verbs of each permission of an account."""
    found = set()
    for binding in (document for document in FOUND if document["kind"].endswith("RoleBinding")):
        (subject,) = binding["subjects"]
        if subject == {"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}:
            namespace = binding["metadata"].get("namespace")
            assert (binding["roleRef"]["kind"] == "ClusterRole") == (namespace is None)
            for rule in one(FOUND, binding["roleRef"]["kind"], binding["roleRef"]["name"], namespace)["rules"]:
                (group,) = rule["apiGroups"]
                for resource in rule["resources"]:
                    name = f"{group}/{resource}".lstrip("/")
                    found.add((namespace, name, frozenset(rule.get("resourceNames", [])), frozenset(rule["verbs"])))
    return found


def test_the_serving_account_reads_nodes_quotas_queues_classes_and_three_config_maps():
    """A kustomization must not change the namespaces of Volcano's ConfigMaps, so a ClusterRole grants them."""
    assert PODS["Deployment"]["serviceAccountName"] == "vgpu-webhook"
    assert rights("vgpu-webhook") == {
        (None, "nodes", frozenset(), READ),
        (None, "resourcequotas", frozenset(), READ),
        (None, "scheduling.volcano.sh/queues", frozenset(), READ),
        (None, "resource.k8s.io/deviceclasses", frozenset(), READ),
        (None, "configmaps", frozenset({names.DEVICE_CONFIG_MAP, names.SCHEDULER_CONF_MAP}), READ),
        (NAMESPACE, "configmaps", frozenset({names.POLICY_MAP}), READ),
    }


def test_the_account_of_the_certificates_has_the_permissions_that_its_command_lists():
    account = "vgpu-webhook-certs"
    assert {PODS[kind]["serviceAccountName"] for kind in ("Job", "CronJob")} == {account}
    ours = frozenset({"vgpu-webhook"})
    group = "admissionregistration.k8s.io"
    granted = {
        (NAMESPACE, "secrets", frozenset({"vgpu-webhook-tls", "vgpu-webhook-ca"}), frozenset({"get", "update"})),
        (NAMESPACE, "secrets", frozenset(), frozenset({"create"})),
        (NAMESPACE, "configmaps", frozenset({names.PROBE_MAP}), frozenset({"create", "patch"})),
        (NAMESPACE, "namespaces", frozenset(), frozenset({"get"})),
        (None, f"{group}/mutatingwebhookconfigurations", ours, frozenset({"get", "patch", "delete"})),
        (None, f"{group}/validatingwebhookconfigurations", ours, frozenset({"get", "patch", "delete"})),
    }
    assert rights(account) == granted
    table = certs.__doc__ or ""
    rows = [row.split(" | ") for row in table.splitlines() if row.startswith("| ") and "resource" not in row]
    listed = {
        (row[1] if row[0].strip('| "') == "" else f"{row[0].strip('| ')}/{row[1]}", frozenset(row[3].split(", ")))
        for row in rows
    }
    assert listed == {(resource, verbs) for _, resource, _, verbs in granted}


def test_every_role_is_bound_and_every_account_is_used():
    roles = {(d["kind"], d["metadata"]["name"]) for d in FOUND if d["kind"] in ("Role", "ClusterRole")}
    bound = {(d["roleRef"]["kind"], d["roleRef"]["name"]) for d in FOUND if d["kind"].endswith("RoleBinding")}
    assert roles == bound
    accounts = {d["metadata"]["name"] for d in FOUND if d["kind"] == "ServiceAccount"}
    assert accounts == {pod["serviceAccountName"] for pod in PODS.values()}
