"""Why a pod waits, in the cases of cases.yaml."""

import json
from pathlib import Path

import pytest
import yaml

from tests.cli.rows import has, texts_of
from tests.questions.why.clusters import CHIPS, Cluster, conf, group, job, node, replicated
from webhook import names
from webhook.output.json import as_value
from webhook.questions.why.text import change_words
from webhook.volcano.queues import Queue, Queues

TABLE = yaml.safe_load(Path(__file__).with_name("cases.yaml").read_text())
CASES = [(f"{title}: {case['case']}", case) for title, cases in TABLE.items() for case in cases]
LIMIT = {names.VGPU_MEMORY: 20000}
QUEUES = [
    Queue("open", "Open", capability=LIMIT),
    Queue("closed", "Closed"),
    Queue("groups", "Open", groups=frozenset({"a"}), group_limits={"a": LIMIT}),
]


@pytest.mark.parametrize("case", [case for _, case in CASES], ids=[name for name, _ in CASES])
def test_what_is_answered_about_a_pod(case):
    waits = [job(**case["job"])] if "job" in case else replicated(**case["waits"])
    objects = [made for fields in case.get("held", []) for made in replicated(**fields)]
    objects += [group(**case["group"]), *waits] if "group" in case else waits if case.get("among") else []
    scheduler = None
    if "plugins" in case or "rules" in case:
        scheduler = conf(*case.get("plugins", "gang").split(), GPUExclusiveRules=case.get("rules"))
    policy = {"target": {"volcano": str(case.get("target", "1.15.1"))}} | case.get("policy", {})
    queues = Queues(QUEUES) if {"plugins", "queues"} & case.keys() else None
    nodes = [node(name, **fields) for name, fields in case["nodes"].items()]
    cluster = Cluster(nodes, objects, CHIPS, policy, scheduler, queues=queues)
    found = cluster.why(waits[0], exists=not case.get("manifest", "job" in case))
    answer = as_value(type(found), found) | {"fits": [as_value(type(each), each) for each in found.fits]}
    answer["hint"] = found.change and change_words(found.change)
    assert has(answer, case.get("answers", {})), answer
    assert [text for text in texts_of(case.get("lacks")) if text in json.dumps(answer)] == []
