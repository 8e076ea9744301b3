"""The client CA in a cluster: the pods verify with it, and the API server presents a certificate of it."""

import re
import shlex
import subprocess
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from tests.deploy.files import DEPLOY, Json, built, one, parsed
from tests.deploy.test_elsewhere import rendered
from webhook.cli import serve

API_SERVER = DEPLOY / "components" / "client-ca" / "api-server"


def pod(documents: list[Json]) -> Json:
    return one(documents, "Deployment")["spec"]["template"]["spec"]


def options(container: Json) -> Any:
    return parsed(serve.command, container["args"][1:])


def example(name: str) -> Json:
    return yaml.safe_load((API_SERVER / name).read_text())


def test_the_pods_mount_the_config_map_of_the_client_ca():
    found = pod(built(DEPLOY / "overlays" / "client-ca"))
    (webhook,) = found["containers"]
    file = PurePosixPath(options(webhook).client_ca)
    (mount,) = [mount for mount in webhook["volumeMounts"] if mount["mountPath"] == str(file.parent)]
    (volume,) = [volume for volume in found["volumes"] if volume["name"] == mount["name"]]
    assert mount["readOnly"] is True
    text = (DEPLOY / "components" / "client-ca" / "kustomization.yaml").read_text()
    assert f"kubectl create configmap -n vgpu-webhook {volume['configMap']['name']} --from-file={file.name}=" in text


def test_the_overlay_changes_only_the_client_ca():
    default, found = built(DEPLOY), built(DEPLOY / "overlays" / "client-ca")
    assert options(pod(default)["containers"][0]).client_ca is None
    assert [d for d in found if d["kind"] != "Deployment"] == [d for d in default if d["kind"] != "Deployment"]
    before, after = (vars(options(pod(documents)["containers"][0])) for documents in (default, found))
    assert before == after | {"client_ca": None}


def test_both_kinds_of_webhooks_get_the_certificate():
    plugins = example("admission-configuration.yaml")["plugins"]
    assert {plugin["name"] for plugin in plugins} == {"MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"}
    (kubeconfig,) = {plugin["configuration"]["kubeConfigFile"] for plugin in plugins}
    assert PurePosixPath(kubeconfig).name in {file.name for file in API_SERVER.iterdir()}


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
