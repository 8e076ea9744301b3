"""`vgpu-webhook why`: its input, output and exit codes."""

from datetime import UTC, datetime, timedelta

from tests.cli.conftest import CONFIG, FLEETS, python
from tests.cli.held import ITEMS
from tests.cli.rows import rows, table_of
from tests.cluster.apiserver import NODES, ApiServer

test_command = rows(__file__)

SETTINGS = ("--fleet", FLEETS / "mixed.yaml", "--device-config", CONFIG)
OBJECTS = table_of(__file__)["files"]["pods.json"]["items"]


def test_the_list_has_the_age_of_each_pod(run, write):
    created = f"{datetime.now(UTC) - timedelta(days=9, hours=1):%FT%TZ}"
    old = {**OBJECTS[3], "metadata": OBJECTS[3]["metadata"] | {"creationTimestamp": created}}
    pods = write("pods.json", {"apiVersion": "v1", "kind": "List", "items": [*OBJECTS[:2], old]})
    head, row = [line.split() for line in run("why", *SETTINGS, "--pods", pods).out.splitlines()]
    assert (head[:4], row[:4]) == (["NAMESPACE", "POD", "VERDICT", "AGE"], ["team", "waits", "not-now", "9d"])


def test_nodes_of_a_cluster_that_are_cordoned(run, tmp_path):
    with ApiServer() as api:
        api.put(NODES, *[item | {"spec": {"unschedulable": True}} for item in ITEMS])
        api.put("/api/v1/namespaces/team/pods", OBJECTS[2])
        kubeconfig = api.kubeconfig(tmp_path / "kubeconfig", "team")
        result = run("why", "fits", "--kubeconfig", kubeconfig, "--device-config", CONFIG)
    assert (result.code, "none takes the pod now: cordoned (1 node)" in result.out) == (1, True)


def test_why_imports_the_rules_and_at_most_118_other_files():
    """It reviews the pod that waits, so it needs every rule, and each is a file."""
    code = (
        "import sys; from webhook.cli.main import main; main(['why', '--sample']); "
        "print(*sorted(name for name, module in sys.modules.items() if name.startswith('webhook.') "
        "and not name.startswith(('webhook.rules.mutate.', 'webhook.rules.validate.')) "
        "and not module.__file__.endswith('__init__.py')))"
    )
    loaded = python(code).stdout.splitlines()[-1].split()
    assert "webhook.questions.why.answer" in loaded
    assert len(loaded) <= 118, loaded
