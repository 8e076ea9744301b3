"""The client CA in a cluster: what the pods verify with, and what an API server presents."""

from pathlib import PurePosixPath
from typing import Any

import yaml

from tests.deploy.files import DEPLOY, Json, built, one
from webhook.cli import serve

API_SERVER = DEPLOY / "components" / "client-ca" / "api-server"


def pod(documents: list[Json]) -> Json:
    return one(documents, "Deployment")["spec"]["template"]["spec"]


def options(container: Json) -> Any:
    return serve._parser().parse_args(container["args"][1:])


def example(name: str) -> Json:
    return yaml.safe_load((API_SERVER / name).read_text())


def test_the_pods_verify_with_a_config_map():
    found = pod(built(DEPLOY / "overlays" / "client-ca"))
    (webhook,) = found["containers"]
    file = PurePosixPath(options(webhook).client_ca)
    (mount,) = [mount for mount in webhook["volumeMounts"] if mount["mountPath"] == str(file.parent)]
    (volume,) = [volume for volume in found["volumes"] if volume["name"] == mount["name"]]
    assert mount["readOnly"] is True
    text = (DEPLOY / "components" / "client-ca" / "kustomization.yaml").read_text()
    assert f"kubectl create configmap -n vgpu-webhook {volume['configMap']['name']} --from-file={file.name}=" in text


def test_all_else_is_as_without_it():
    usual, found = built(DEPLOY), built(DEPLOY / "overlays" / "client-ca")
    assert options(pod(usual)["containers"][0]).client_ca is None
    assert [d for d in found if d["kind"] != "Deployment"] == [d for d in usual if d["kind"] != "Deployment"]
    before, after = (vars(options(pod(documents)["containers"][0])) for documents in (usual, found))
    assert before == after | {"client_ca": None}


def test_both_kinds_of_webhooks_get_the_certificate():
    plugins = example("admission-configuration.yaml")["plugins"]
    assert {plugin["name"] for plugin in plugins} == {"MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"}
    (kubeconfig,) = {plugin["configuration"]["kubeConfigFile"] for plugin in plugins}
    assert PurePosixPath(kubeconfig).name in {file.name for file in API_SERVER.iterdir()}


def test_it_is_presented_to_our_service():
    service = one(built(DEPLOY), "Service")
    (user,) = example("kubeconfig.yaml")["users"]
    assert user["name"] == f"{service['metadata']['name']}.{service['metadata']['namespace']}.svc"
    assert [port["port"] for port in service["spec"]["ports"]] == [443], "another port would have to be appended"
