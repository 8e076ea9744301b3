"""The healthy cluster of tests/data with its certificates, and ways to break it."""

import copy
from base64 import b64encode
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import orjson

from certs.pki import make_ca, make_leaf
from webhook.devices.config_file import parse_device_config
from webhook.devices.occupancy import BoundPodReader
from webhook.inputs.parse import parse_stream
from webhook.manifests.configurations import configurations
from webhook.manifests.fallback.policies import admission_policies
from webhook.policy.policy import default_policy
from webhook.questions.doctor.facts import (
    EVERYWHERE,
    Facts,
    HttpResponse,
    ObjectKind,
    Unread,
    kept,
    name_of,
    namespace_of,
)
from webhook.questions.doctor.registry import results_of
from webhook.questions.doctor.setup import put_together

HEALTHY = Path(__file__).parents[2] / "data" / "cluster-healthy"
NOW = datetime(2026, 9, 1, tzinfo=UTC)
HOST = "vgpu-webhook.vgpu-webhook.svc"

READY = "ready\nfleet: 3 nodes with devices (kinds: vgpu 2, ascend 1), digest 0123\n"
METRICS = """\
# TYPE apiserver_admission_webhook_fail_open_count counter
apiserver_admission_webhook_fail_open_count{name="other.example.com",type="admit"} 7
apiserver_admission_webhook_fail_open_count{name="workloads.vgpu-webhook.svc",type="validating"} 0
"""


@cache
def authority(name="vgpu-webhook"):
    return make_ca(name, NOW - timedelta(days=100))


def base64(data):
    return b64encode(data).decode()


def secret(days=90, hosts=(HOST,), ca=None, start=NOW):
    """The Secret of a serving certificate, with the private key, which the doctor does not keep."""
    leaf = make_leaf(ca or authority(), list(hosts), start, days)
    metadata = {"name": "vgpu-webhook-tls", "namespace": "vgpu-webhook"}
    data = {"tls.crt": base64(leaf.certificate), "tls.key": base64(leaf.key)}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}


def installed():
    """The configurations and the fallback policies as the API server returns them, with its defaults."""
    objects = copy.deepcopy(configurations(_config(), default_policy()))
    for raw in objects:
        raw["metadata"]["creationTimestamp"] = "2026-08-01T00:00:00Z"
        for entry in raw["webhooks"]:
            entry["clientConfig"]["caBundle"] = base64(authority().certificate)
            entry["objectSelector"] = {}
    fallback = copy.deepcopy(admission_policies(_config(), default_policy()))
    for raw in fallback[::2]:
        raw["spec"]["matchConstraints"]["objectSelector"] = {}
    return [*objects, *fallback]


@cache
def _documents():
    documents = [one for path in sorted(HEALTHY.glob("*.yaml")) for one in parse_stream(path.read_bytes(), path.name)]
    return [item for document in documents for item in document["items"]]


def _config():
    (found,) = [raw for raw in _documents() if name_of(raw) == "volcano-vgpu-device-config"]
    return parse_device_config(parse_stream(found["data"]["device-config.yaml"].encode(), "")[0], "")


def place(raw):
    """ObjectKind/namespace/name."""
    return "/".join(filter(None, (raw["kind"], namespace_of(raw), name_of(raw))))


def healthy():
    """All objects of the healthy cluster by kind, namespace and name."""
    return orjson.loads(_healthy())


@cache
def _healthy():
    return orjson.dumps({place(raw): raw for raw in [*_documents(), secret(), *installed()]})


def facts_of(objects, **changes):
    """Facts of a cluster in which the doctor can read everything."""
    by_kind = {kind: [] for kind in ObjectKind}
    for raw in objects.values():
        by_kind[ObjectKind(raw["kind"])].append(kept(ObjectKind(raw["kind"]), raw))
    facts = Facts(
        now=NOW,
        objects={kind: tuple(listed) for kind, listed in by_kind.items()},
        gaps={(kind, EVERYWHERE): None for kind in ObjectKind},
        bound_pods=(),
        readiness=HttpResponse(200, READY),
        metrics=HttpResponse(200, METRICS),
    )
    reader = BoundPodReader(put_together(facts).config)
    bound = [pod for raw in by_kind[ObjectKind.POD] if (pod := reader.read(raw)) is not None]
    return replace(facts, bound_pods=tuple(bound), **changes)


def without(facts, *kinds):
    """The same facts if the doctor is not allowed to read some kinds."""
    refused = {
        (kind, EVERYWHERE): Unread(kind.plural, "403 Forbidden", f"list on {kind.plural}")
        for kind in map(ObjectKind, kinds)
    }
    return replace(
        facts,
        objects={kind: listed for kind, listed in facts.objects.items() if (kind, EVERYWHERE) not in refused},
        gaps={**facts.gaps, **refused},
        bound_pods=refused.get((ObjectKind.POD, EVERYWHERE), facts.bound_pods),
    )


def check_results(check, facts):
    return list(results_of(check, put_together(facts)))
