"""No text of a setting takes long to review, much memory, or other reviews with it. Work is counted, not time."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.hostile_settings import texts
from tests.server.client import JSON, encode_request
from tests.server.conftest import SETTINGS, Start
from tests.server.reviews import GOOD, admission_response, review
from tests.settings.test_review import config_map, written
from tests.test_instructions import Counter
from webhook.settings.table import DEVICE_CONFIG, POLICY, SCHEDULER, DocumentSetting

PLACES = {
    POLICY: "vgpu-webhook/vgpu-webhook-policy",
    DEVICE_CONFIG: "kube-system/volcano-vgpu-device-config",
    SCHEDULER: "volcano-system/volcano-scheduler-configmap",
}
MOST_INSTRUCTIONS = 20_000_000  # of bytecode: some 200 for each of 65,536 characters, less than half a second
MOST_CHARACTERS = 20_000  # of all findings
MOST_MEMORY = 64 << 20
TEXTS = list(texts())


@pytest.mark.parametrize(("setting", "text"), [pytest.param(*each[1:], id=each[0]) for each in TEXTS])
def test_the_work_for_a_text_is_bounded(setting: DocumentSetting[Any], text: str):
    written(config_map(PLACES[setting], setting.key, "{}"))  # loads what the first review loads
    with Counter() as counter:
        outcome = written(config_map(PLACES[setting], setting.key, text))
    assert sum([len(violation.message) for violation in outcome.violations]) < MOST_CHARACTERS
    assert counter.count < MOST_INSTRUCTIONS


def test_reviews_go_on_meanwhile(start: Start):
    """All texts, and settings of other names from anywhere, beside reviews of pods."""
    program = start(*SETTINGS, "--audit-log", "")
    with program.connect() as canary:
        assert admission_response(canary.post("/mutate", GOOD))["allowed"]
        before = peak(program.worker)
        for _, setting, text in TEXTS:
            for namespace, name in (PLACES[setting].split("/"), ("users", PLACES[setting].rpartition("/")[2])):
                raw = config_map(f"{namespace}/{name}", setting.key, text)
                kind = {"group": "", "version": "v1", "kind": "ConfigMap"}
                wanted = review(kind=kind, namespace=namespace, name=name, object=raw)
                with program.connect() as hostile:
                    hostile.send(encode_request("POST", "/settings", json.dumps(wanted).encode(), JSON))
                    assert admission_response(canary.post("/mutate", GOOD))["allowed"]
                    admission_response(hostile.receive())
        assert peak(program.worker) - before < MOST_MEMORY


def peak(process: int) -> int:
    """The most bytes that a process has held."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    (kibibytes,) = (int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
    return kibibytes << 10
