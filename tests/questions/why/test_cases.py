"""Why a pod waits, in the cases of cases.yaml."""

import json
from pathlib import Path

import pytest
import yaml

from tests.cli.rows import has
from tests.questions.why.test_answer import CHIPS, blind_node, gpu_node, pod, state, with_families
from tests.strategies import ascend_node, gpushare_node
from webhook import names
from webhook.inputs.documents import Document
from webhook.output.json import as_value
from webhook.policy.policy import parse_policy
from webhook.questions.why.answer import explain_waiting
from webhook.questions.why.subject import WaitingObject
from webhook.volcano.scheduler import EXCLUSIVE_RULES, parse_scheduler_conf

TABLE = yaml.safe_load(Path(__file__).with_name("cases.yaml").read_text())
CASES = [(f"{title}: {case['case']}", case) for title, cases in TABLE.items() for case in cases]
AMOUNTS = ("number", "memory", "cores", "gpu_memory", "gpus")


def node(
    name,
    *,
    cards=0,
    npus=0,
    parts=2,
    gpushare=None,
    blind=False,
    restarting=False,
    offers=None,
    spec=None,
    status=None,
    **more,
):
    if gpushare or blind:
        return gpushare_node(name, *gpushare) if gpushare else blind_node(name)
    if npus:
        made = with_families(name, cards, npus) if cards else ascend_node(name, [(parts, 65536, 20)] * npus)
    elif cards:
        made = gpu_node(name, cards, offers=offers or {}, **more)
    else:
        made = {"metadata": {"name": name}, "status": {"allocatable": offers}}
    if restarting:
        made["status"]["allocatable"] = dict.fromkeys(made["status"]["allocatable"], "0")
    return made | {"spec": spec or {}, "status": made["status"] | (status or {})}


def written(
    *,
    slices=None,
    owner=None,
    labels=None,
    annotations=None,
    terminating=False,
    also=None,
    limits=None,
    task="",
    **fields,
):
    """A pod of a case."""
    amounts = {key: fields.pop(key) for key in AMOUNTS if key in fields}
    status = {key: fields.pop(key) for key in ("phase", "reason") if key in fields}
    place = {key: fields.pop(key) for key in ("name", "namespace", "node", "group") if key in fields}
    if slices:
        memory, cores = next(iter(slices.values()))
        amounts = {"number": len(slices), "memory": memory} | ({"cores": cores} if cores else {})
        place["ids"] = "".join(f"GPU-{place['node']}-{at},NVIDIA,{own[0]},{own[1]}:" for at, own in slices.items())
    made = pod(**place, spec=fields, **amounts)
    made["metadata"]["annotations"] |= (annotations or {}) | ({names.TASK: task} if task else {})
    made["spec"]["containers"][0]["resources"]["limits"] |= limits or {}
    made["metadata"] |= {"labels": labels or {}, "ownerReferences": [owner] if owner else []}
    made["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z"} if terminating else {}
    made["status"] |= status
    if also:
        made["spec"]["containers"].append({"name": "infer", "resources": {"limits": also}})
    return made


@pytest.mark.parametrize("case", [case for _, case in CASES], ids=[name for name, _ in CASES])
def test_what_is_answered_about_a_pod(case):
    raw, held = written(**case["waits"]), [written(**each) for each in case.get("held", [])]
    settings = {"policy": parse_policy({"target": {"volcano": str(case.get("target", "1.15.1"))}}, "test")}
    if "rules" in case:
        arguments = {EXCLUSIVE_RULES: case["rules"], "deviceshare.VGPUEnable": True}
        conf = {"tiers": [{"plugins": [{"name": "gang"}, {"name": "deviceshare", "arguments": arguments}]}]}
        settings["scheduler"] = parse_scheduler_conf(conf, "test")
    nodes = [node(name, **fields) for name, fields in case["nodes"].items()]
    live, _ = state(nodes, [*held, raw] if case.get("among") else held, CHIPS, **settings)
    found = explain_waiting(WaitingObject(Document("a pod", raw), not case.get("manifest", False)), live)
    answer = as_value(type(found), found) | {"fits": [as_value(type(each), each) for each in found.fits]}
    assert has(answer, case.get("answers", {})), answer
    assert case.get("lacks", "nothing") not in json.dumps(answer)
