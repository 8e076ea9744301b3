"""The CronJob of deploy/overlays/reports, run as its account on a real API server."""

import subprocess
from collections.abc import Callable

import pytest

from tests.deploy.files import DEPLOY, built
from tests.e2e.api import Api
from tests.e2e.cluster import Cluster
from tests.e2e.objects import custom_resource, pod, pods
from tests.e2e.shipped import is_configuration
from tests.server.client import SECONDS
from tests.server.program import COMMAND, until

reports = pytest.importorskip("webhook.questions.scan.policy_reports")  # unless the question is gone

ACCOUNT = "vgpu-webhook-reports"
REPORTS = f"/apis/{reports.API_VERSION}/namespaces/users/policyreports"

Scan = Callable[[], subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def scan(bare_cluster: Cluster) -> Scan:
    """Run what the CronJob runs, with the rights of its account."""
    documents = built(DEPLOY / "overlays" / "reports")
    bare_cluster.apply(custom_resource(*reports.API_VERSION.split("/"), "PolicyReport"))
    bare_cluster.apply(*[each for each in documents if not is_configuration(each)])
    (job,) = [each for each in documents if (each["kind"], each["metadata"]["name"]) == ("CronJob", ACCOUNT)]
    (container,) = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    kubeconfig = bare_cluster.kubeconfig_for_account("vgpu-webhook", ACCOUNT)
    command = [str(COMMAND), *container["args"], "--kubeconfig", str(kubeconfig)]
    with bare_cluster.api() as api:
        until(lambda: api.get(REPORTS).status == 200)
    return lambda: subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)


def report_names(api: Api) -> list[str]:
    return sorted(each["metadata"]["name"] for each in api.get(REPORTS).body["items"])


def test_it_writes_a_report_and_deletes_it_when_nothing_is_found(bare_cluster: Cluster, scan: Scan):
    metadata = {"name": "from-another-tool", "labels": {reports.LABEL: reports.SOURCE}}
    with bare_cluster.api() as api:
        assert (
            api.post(REPORTS, {"apiVersion": reports.API_VERSION, "kind": "PolicyReport", "metadata": metadata}).status
            == 201
        )
        assert api.post(pods("users"), pod("greedy", {"volcano.sh/vgpu-number": "9"})).status == 201
        result = scan()
        assert (result.returncode, result.stderr) == (0, "")
        assert "PolicyReports: 1 created, 0 replaced, 0 deleted, 0 unchanged" in result.stdout
        results = api.get(f"{REPORTS}/{reports.NAME}").body["results"]
        assert ("card-count", "fail") in [(each["rule"], each["result"]) for each in results]
        assert "0 created, 0 replaced, 0 deleted, 1 unchanged" in scan().stdout
        api.delete(pods("users", "greedy"))
        result = scan()
        assert (result.returncode, result.stderr) == (0, "")
        assert "0 created, 0 replaced, 1 deleted, 0 unchanged" in result.stdout
        assert report_names(api) == ["from-another-tool"]
