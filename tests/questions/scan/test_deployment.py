"""The CronJob that keeps PolicyReports up to date, and its account."""

from collections import defaultdict

import pytest

from tests.deploy.chart import objects
from tests.deploy.files import DEPLOY, Json, built, documented_rights, one, parsed, pod_specs, roles_of
from webhook import names
from webhook.pod.workload_kinds import POD, WORKLOAD_KINDS
from webhook.questions.scan import command as scan
from webhook.questions.scan.policy_reports import API_VERSION
from webhook.questions.scan.policy_reports import NAME as REPORT

NAME = "vgpu-webhook-reports"


@pytest.fixture(scope="module")
def found() -> list[Json]:
    return built(DEPLOY / "overlays" / "reports")


def scan_job(found: list[Json]) -> tuple[Json, Json]:
    job = one(found, "CronJob", NAME)
    (container,) = pod_specs([job])["CronJob"]["containers"]
    return job, container


def listed(role: Json) -> dict[str, set[str]]:
    """The resources, by group, that a role may list and nothing else."""
    resources = defaultdict(set)
    for rule in role["rules"]:
        if rule["verbs"] == ["list"]:
            resources[rule["apiGroups"][0]] |= set(rule["resources"])
    return resources


def test_it_may_list_what_is_scanned_and_write_its_own_reports(found: list[Json]):
    role = one(found, "ClusterRole", NAME)
    scanned = defaultdict(set)
    for kind in (POD, *WORKLOAD_KINDS.values()):
        scanned[kind.group].add(kind.plural)
    assert listed(role) == scanned
    reports = {"apiGroups": [API_VERSION.partition("/")[0]], "resources": ["policyreports"]}
    assert [rule for rule in role["rules"] if rule["verbs"] != ["list"]] == [
        reports | {"verbs": ["list", "create"]},
        reports | {"resourceNames": [REPORT], "verbs": ["update", "delete"]},
    ]
    of_webhook = {(kind, "vgpu-webhook") for kind in ("ClusterRoleBinding", "RoleBinding")}
    assert roles_of(found, NAME) == {("ClusterRoleBinding", NAME), *of_webhook}


def test_it_may_list_the_workload_kinds_of_the_policy():
    kind = {"group": "example.org", "version": "v1", "kind": "Trainer", "templates": ["spec.template"]}
    other = kind | {"kind": "Proxy", "plural": "proxies"}
    found = objects({"reports": {"enabled": True}, "policy": {"workloadKinds": [kind, other]}})
    assert listed(one(found, "ClusterRole", NAME))["example.org"] == {"trainers", "proxies"}


def test_the_documentation_lists_what_it_may():
    rights = documented_rights(f"`{NAME}` also")
    assert [word for word in ("pods", "workloads", "policyreports", f"`{REPORT}`") if word not in rights] == []


def test_it_scans_all_namespaces_with_the_settings_of_the_webhook(found: list[Json]):
    _, container = scan_job(found)
    command, *arguments = container["args"]
    options = parsed(scan.command, arguments)
    assert command == scan.command.name
    assert (options.cluster, options.all_namespaces, options.report, options.exit_zero) == (True, True, True, True)
    assert options.exempt_namespaces == names.EXEMPT_NAMESPACES
    webhook = pod_specs([one(found, "Deployment")])["Deployment"]
    assert arguments[:3] == webhook["containers"][0]["args"][1:4], "the same cluster and policy"


def test_one_scan_at_a_time_with_the_limits_of_the_other_pods(found: list[Json]):
    job, container = scan_job(found)
    other = one(found, "CronJob", "vgpu-webhook-certs")
    assert job["spec"]["concurrencyPolicy"] == "Forbid"
    assert job["spec"]["jobTemplate"]["spec"]["activeDeadlineSeconds"] == 1800
    pod, others = pod_specs([job])["CronJob"], pod_specs([other])["CronJob"]
    assert all(pod[key] == others[key] for key in ("securityContext", "nodeSelector", "tolerations"))
    assert container["securityContext"] == others["containers"][0]["securityContext"]
    assert container["resources"].keys() == {"requests", "limits"}


def test_the_chart_sets_the_schedule_and_leaves_out_excluded_namespaces():
    values = {"reports": {"enabled": True, "schedule": "@daily"}, "excludedNamespaces": ["infra"]}
    job, container = scan_job(objects(values))
    assert job["spec"]["schedule"] == "@daily"
    assert parsed(scan.command, container["args"][1:]).exempt_namespaces == ("kube-system", "infra")
