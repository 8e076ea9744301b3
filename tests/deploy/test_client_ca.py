"""The client CA in a cluster: the pods verify with it, and the API server presents a certificate of it."""

import re
import shlex
import subprocess
from pathlib import Path, PurePosixPath

import yaml

from tests.deploy.files import DEPLOY, Json, built, one
from tests.deploy.test_elsewhere import rendered

API_SERVER = DEPLOY / "components" / "client-ca" / "api-server"


def example(name: str) -> Json:
    return yaml.safe_load((API_SERVER / name).read_text())


def test_both_kinds_of_webhooks_get_the_certificate():
    plugins = example("admission-configuration.yaml")["plugins"]
    assert {plugin["name"] for plugin in plugins} == {"MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"}
    (kubeconfig,) = {plugin["configuration"]["kubeConfigFile"] for plugin in plugins}
    assert PurePosixPath(kubeconfig).name in {file.name for file in API_SERVER.iterdir()}
    shown = "kubectl create configmap -n vgpu-webhook vgpu-webhook-client-ca --from-file=ca.crt="
    assert shown in (API_SERVER.parent / "kustomization.yaml").read_text()


def user_of(kubeconfig: str) -> str:
    (user,) = yaml.safe_load(kubeconfig)["users"]
    return user["name"]


def test_the_kubeconfig_names_the_service():
    service = one(built(DEPLOY), "Service")
    name, namespace = service["metadata"]["name"], service["metadata"]["namespace"]
    assert user_of((API_SERVER / "kubeconfig.yaml").read_text()) == f"{name}.{namespace}.svc"
    assert [port["port"] for port in service["spec"]["ports"]] == [443], "the user name has no port, so it must be 443"


def test_the_printed_command_renames_the_user_for_another_service(tmp_path: Path):
    name, namespace = "team-vgpu-webhook", "gpu-system"
    found = rendered(tmp_path, DEPLOY / "overlays" / "client-ca")
    assert one(found, "Service", name)["metadata"]["namespace"] == namespace
    (command,) = re.findall(r"^#   (sed .*)$", (API_SERVER / "kubeconfig.yaml").read_text(), re.MULTILINE)
    command_line = shlex.split(command.replace("NAME.NAMESPACE", f"{name}.{namespace}"))
    result = subprocess.run(command_line, cwd=API_SERVER, check=True, capture_output=True, text=True)
    assert user_of(result.stdout) == f"{name}.{namespace}.svc"
