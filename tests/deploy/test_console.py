"""The console in a cluster: a container in the pod of the webhook, with fewer permissions; values.yaml has its fields."""

from tests.deploy.files import DEPLOY, built, one, parsed
from webhook.audit.writer import MAX_BYTES
from webhook.cli import console
from webhook.console.guard import LOOPBACK
from webhook.pod import quantity

OVERLAY = DEPLOY / "overlays" / "console"


def test_it_listens_on_loopback_only_and_the_volume_of_the_audit_log_is_large_enough():
    pod = one(built(OVERLAY), "Deployment")["spec"]["template"]["spec"]
    (arguments,) = [each["args"] for each in pod["containers"] if each["name"] == "console"]
    options = parsed(console.command, arguments[1:])
    assert (options.bind.rpartition(":")[0] in LOOPBACK, options.allow_host) == (True, ())
    (volume,) = [each for each in pod["volumes"] if each["name"] == "audit"]
    limit = quantity.whole(volume["emptyDir"]["sizeLimit"])
    assert limit > 2 * MAX_BYTES, "the kubelet evicts a pod whose volume exceeds its limit"


def test_it_adds_no_permission():
    default, found = ([each for each in built(where) if each["kind"] != "Deployment"] for where in (DEPLOY, OVERLAY))
    assert found == default
