"""The CronJob of deploy/overlays/reports, run as its account on a real API server."""

import subprocess

import pytest

from tests.deploy.files import DEPLOY, built, one
from tests.e2e.cluster import Cluster
from tests.e2e.objects import custom_resource, pod, pods
from tests.e2e.shipped import is_configuration
from tests.server.client import SECONDS
from tests.server.program import COMMAND

reports = pytest.importorskip("webhook.questions.scan.policy_reports")  # unless the question is gone

ACCOUNT = "vgpu-webhook-reports"
REPORTS = f"/apis/{reports.API_VERSION}/namespaces/users/policyreports"


def test_it_writes_a_report_and_deletes_it_when_nothing_is_found(bare_cluster: Cluster):
    documents = built(DEPLOY / "overlays" / "reports")
    bare_cluster.apply(custom_resource(*reports.API_VERSION.split("/"), "PolicyReport"))
    bare_cluster.apply(*[each for each in documents if not is_configuration(each)])
    job = one(documents, "CronJob", ACCOUNT)["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    kubeconfig = bare_cluster.kubeconfig_for_account("vgpu-webhook", ACCOUNT)
    command = [str(COMMAND), *job["containers"][0]["args"], "--kubeconfig", str(kubeconfig)]

    def scan() -> str:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    metadata = {"name": "from-another-tool", "labels": {reports.LABEL: reports.SOURCE}}
    foreign = {"apiVersion": reports.API_VERSION, "kind": "PolicyReport", "metadata": metadata}
    with bare_cluster.api() as api:
        assert api.post(REPORTS, foreign).status == 201
        assert api.post(pods("users"), pod("greedy", {"volcano.sh/vgpu-number": "9"})).status == 201
        assert "PolicyReports: 1 created, 0 replaced, 0 deleted, 0 unchanged" in scan()
        results = api.get(f"{REPORTS}/{reports.NAME}").body["results"]
        assert ("card-count", "fail") in [(each["rule"], each["result"]) for each in results]
        assert "0 created, 0 replaced, 0 deleted, 1 unchanged" in scan()
        api.delete(pods("users", "greedy"))
        assert "0 created, 0 replaced, 1 deleted, 0 unchanged" in scan()
        assert [each["metadata"]["name"] for each in api.get(REPORTS).body["items"]] == ["from-another-tool"]
