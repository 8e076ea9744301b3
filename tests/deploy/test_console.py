"""The console in a cluster: a container in the pod of the webhook, with fewer permissions; values.yaml has its fields."""

import pytest

from tests.deploy.files import DEPLOY, Json, built, one, parsed
from webhook.audit.writer import MAX_BYTES
from webhook.cli import console
from webhook.console.guard import LOOPBACK
from webhook.pod import quantity


@pytest.fixture(scope="module")
def pod() -> Json:
    return one(built(DEPLOY / "overlays" / "console"), "Deployment")["spec"]["template"]["spec"]


def test_the_volume_is_large_enough_for_the_audit_log(pod: Json):
    (volume,) = [each for each in pod["volumes"] if each["name"] == "audit"]
    limit = quantity.whole(volume["emptyDir"]["sizeLimit"])
    assert limit > 2 * MAX_BYTES, "the kubelet evicts a pod whose volume exceeds its limit"


def test_the_console_listens_on_loopback_only(pod: Json):
    (arguments,) = [each["args"] for each in pod["containers"] if each["name"] == "console"]
    options = parsed(console.command, arguments[1:])
    assert (options.bind.rpartition(":")[0] in LOOPBACK, options.allow_host) == (True, ())


def test_the_console_adds_no_permission():
    default, found = built(DEPLOY), built(DEPLOY / "overlays" / "console")

    def others(documents: list[Json]) -> list[Json]:
        return [document for document in documents if document["kind"] != "Deployment"]

    assert others(found) == others(default)
