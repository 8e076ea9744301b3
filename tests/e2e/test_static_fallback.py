"""Fallback policies as files of the API server: who may change everything of admission cannot switch them off."""

import re
import subprocess
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import pytest
import yaml

from tests.deploy.files import DEPLOY
from tests.e2e.api import Api, Response
from tests.e2e.cluster import Cluster, assets
from tests.e2e.conftest import start_cluster
from tests.e2e.objects import Object, device_pod, namespace_objects, pod, pods
from tests.server.program import COMMAND, until

EXAMPLE = DEPLOY / "components" / "fallback" / "api-server" / "admission-configuration.yaml"
INSTALLED = "/etc/kubernetes/admission"  # the directory that the example names
FIRST_VERSION = (1, 37)  # in which the API server reads the files by default

TEAM = "team"
API = "/apis/admissionregistration.k8s.io/v1"
POLICIES = f"{API}/validatingadmissionpolicies"
KINDS = (
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "validatingwebhookconfigurations",
    "mutatingwebhookconfigurations",
)
PRIVILEGED = device_pod("privileged", securityContext={"privileged": True})
STATIC = "vgpu-webhook-pods.static.k8s.io"
SENTENCE = f"ValidatingAdmissionPolicy '{STATIC}' with binding '{STATIC}' denied request: privileged-device: "


def printed(*options: str) -> str:
    return subprocess.run(
        [str(COMMAND), "manifests", "--fallback", *options], capture_output=True, text=True, check=True
    ).stdout


@pytest.fixture(scope="module")
def policies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of the policies, in the directory that the example names."""
    directory = tmp_path_factory.mktemp("admission")
    file = directory / "validating-policies" / "vgpu-webhook.yaml"
    file.parent.mkdir()
    file.write_text(printed("--static"))
    (directory / EXAMPLE.name).write_text(EXAMPLE.read_text().replace(INSTALLED, str(directory)))
    return file


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, policies: Path) -> Iterator[Cluster]:
    """A cluster whose API server has the configuration of the example."""
    binaries = assets()
    if binaries and version(binaries) < FIRST_VERSION:
        pytest.skip("this API server does not read admission policies from files by default")
    configuration = policies.parents[1] / EXAMPLE.name
    with start_cluster(tmp_path_factory, f"--admission-control-config-file={configuration}") as cluster:
        cluster.apply(*namespace_objects(TEAM))
        yield cluster


def version(binaries: Path) -> tuple[int, ...]:
    said = subprocess.run([binaries / "kube-apiserver", "--version"], capture_output=True, text=True, check=True).stdout
    major, minor = re.findall(r"\d+", said)[:2]
    return int(major), int(minor)


def create(api: Api, manifest: Object) -> Response:
    return api.post(f"{pods(TEAM)}?dryRun=All", manifest)


def assert_refused(response: Response) -> None:
    assert response.status == HTTPStatus.FORBIDDEN
    assert SENTENCE in response.message


def test_the_file_refuses_from_the_start(api: Api):
    assert_refused(create(api, PRIVILEGED))
    for admitted in (device_pod("slice"), pod("plain")):
        response = create(api, admitted)
        assert response.status == HTTPStatus.CREATED, response.message


def test_who_may_change_everything_cannot_switch_them_off(api: Api):
    own = next(yaml.safe_load_all(printed("--name=own")))
    assert api.post(POLICIES, own).status == HTTPStatus.CREATED  # the rights are there
    taken = own | {"metadata": {"name": STATIC}}
    refusals = [
        (HTTPStatus.UNPROCESSABLE_ENTITY, api.post(POLICIES, taken)),
        (HTTPStatus.NOT_FOUND, api.get(f"{POLICIES}/{STATIC}")),
        (HTTPStatus.NOT_FOUND, api.delete(f"{POLICIES}/{STATIC}")),
        (HTTPStatus.NOT_FOUND, api.merge(f"{POLICIES}/{STATIC}", {"spec": {"validations": []}})),
        (HTTPStatus.NOT_FOUND, api.delete(f"{API}/validatingadmissionpolicybindings/{STATIC}")),
    ]
    for kind in KINDS:
        assert api.delete(f"{API}/{kind}").status == HTTPStatus.OK  # of every object
        assert api.get(f"{API}/{kind}").body["items"] == []
    for expected, response in refusals:
        assert response.status == expected, response.message
    assert_refused(create(api, PRIVILEGED))


def test_a_changed_file_is_read_without_a_restart(api: Api, policies: Path):
    original = policies.read_text()
    try:
        replace(policies, original.replace("- Deny", "- Audit"))
        until(lambda: create(api, PRIVILEGED).status == HTTPStatus.CREATED)
    finally:
        replace(policies, original)
    until(lambda: SENTENCE in create(api, PRIVILEGED).message)


def replace(file: Path, text: str) -> None:
    """Write a file so that nobody reads a part of it."""
    aside = file.with_suffix(".new")
    aside.write_text(text)
    aside.rename(file)
