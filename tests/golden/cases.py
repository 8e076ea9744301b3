"""The responses of the webhook to a recorded request, in a readable form."""

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.docs.test_request import PUBLISHED
from tests.reviewing import ALL_FAMILIES, DATA, RECORDED, at_both_endpoints, request, snapshot
from webhook.devices.config_file import parse_device_config
from webhook.outcome import Outcome
from webhook.review.endpoints import review
from webhook.snapshot import Snapshot
from webhook.wire.codec import decode, encode
from webhook.wire.models import Request

RESPONSES = Path(__file__).parent / "responses"
OUTCOMES = Path(__file__).parent / "outcomes.txt"  # of every recorded request and published manifest, a line each

# The requests whose whole responses are recorded: together they have every part that a response can have.
WHOLE = {file.stem for file in RESPONSES.iterdir()}

# These pods request nvidia.com/gpu. They are also reviewed with a device config in which this is the vGPU count.
COMPATIBLE = ("test-vgpu-compatible", "specific-gpu-pod")


@dataclass(frozen=True)
class Recorded:
    """A recorded request, and the settings to review it with."""

    name: str
    review: Path
    snapshot: Snapshot


def recorded() -> Iterator[Recorded]:
    document = yaml.safe_load((DATA / "config" / "device-config.yaml").read_text())
    document["nvidia"]["resourceCountName"] = "nvidia.com/gpu"
    usual = snapshot("mixed")
    compatible = snapshot("compatible", config=parse_device_config(document, "device-config.yaml"))
    for path in RECORDED:
        yield Recorded(path.stem, path, usual)
        if path.stem in COMPATIBLE:
            yield Recorded(f"{path.stem}.compatible", path, compatible)


def responses_to(case: Recorded) -> dict[str, Any]:
    """The responses of both endpoints."""
    request = decode(case.review.read_bytes())
    repaired, validated = at_both_endpoints(request, case.snapshot)
    return {"mutate": _response(request, repaired), "validate": _response(request, validated)}


def outcome(case: Recorded) -> str:
    """The name of a request, and the rules that repair it, deny it and warn of it."""
    mutated, validated = responses_to(case).values()
    repairs = mutated.get("auditAnnotations", {}).get("rules", "")
    causes = validated.get("status", {}).get("details", {}).get("causes", [])
    warnings = [*mutated.get("warnings", []), *validated.get("warnings", [])]
    return _line(
        case.name,
        {
            "repaired by": repairs.split(","),
            "denied by": [cause["reason"] for cause in causes],
            "warned by": [warning.partition(":")[0] for warning in warnings],
        },
    )


def published() -> Iterator[str]:
    """Of what docs/request.md shows to be copied: the name, the rules that repair it, and those that find something."""
    for manifest in PUBLISHED:
        found = review(request(manifest), snapshot(*ALL_FAMILIES))
        name = f"request.md, {manifest['metadata']['name']}"
        yield _line(name, {"repaired by": found.mutations, "found by": [each.rule for each in found.violations]})


def _line(name: str, found: Mapping[str, Sequence[str]]) -> str:
    texts = [f" {what} {', '.join(rules)};" for what, rules in found.items() if any(rules)]
    return f"{name}:{''.join(texts)}\n"


def to_text(responses: dict[str, Any]) -> str:
    return json.dumps(responses, indent=2, ensure_ascii=False) + "\n"


def _response(request: Request, outcome: Outcome) -> dict[str, Any]:
    review = json.loads(encode(request, outcome.answer()))
    assert set(review) == {"apiVersion", "kind", "response"}
    assert (review["apiVersion"], review["kind"]) == (request.api_version, "AdmissionReview")
    response = review["response"]
    if "patch" in response:
        response["patch"] = json.loads(base64.b64decode(response["patch"]))
    if "status" in response:
        response["status"]["message"] = response["status"]["message"].split("\n")
    return response
