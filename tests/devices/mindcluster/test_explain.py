"""What MindCluster nodes say: templates, whole chips, and changes that help once they are written."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook import names
from webhook.devices.config_file import parse_device_config
from webhook.devices.fleet import build_fleet
from webhook.devices.mindcluster.explain import answers, template
from webhook.devices.nodes import Node
from webhook.devices.requests import DevicePod
from webhook.devices.selectors import read_selector
from webhook.devices.target import Target
from webhook.devices.verdict import Reason
from webhook.pod.view import PodView

CONFIG = parse_device_config({}, "test")


def node(cores, chip=8, name="n"):
    return Node(name, {"name": name, names.NODE_SERVER_TYPE: f"Ascend310P-{chip}"}, {}, {}, {names.NPU_CORE: cores})


def pod(*cores, labels=None, **spec):
    containers = [{"name": f"c{at}", "resources": {"limits": {names.NPU_CORE: n}}} for at, n in enumerate(cores)]
    labels = {names.RING_CONTROLLER: names.RING_CONTROLLER_310P, **(labels or {})}
    return {"metadata": {"labels": labels}, "spec": {"containers": containers, **spec}}


def explained(raw, *nodes):
    view = PodView(raw)
    return list(answers(DevicePod(view, CONFIG), read_selector(view), build_fleet(nodes, CONFIG, Target()).mindcluster))


def said(change):
    """A change in short."""
    if change is None or change.container is None:
        return change and change.word
    return f"{change.container.name} {change.value}"


def changed(raw, change):
    """The pod with a change written into it."""
    raw = copy.deepcopy(raw)
    if change.container is not None:
        raw["spec"]["containers"][change.container.index]["resources"]["limits"][names.NPU_CORE] = change.value
    else:
        (raw["spec"] if change.word == "nodeSelector" else raw["metadata"]["labels"]).pop(change.word)
    return raw


@pytest.mark.parametrize(
    "cores,level,dvpp,name",
    [
        (1, "high", "yes", "vir01"),
        (2, "low", "null", "vir02_1c"),
        (2, "high", "no", "vir02"),
        (2, "middling", "null", "vir02_1c"),
        (4, "low", "null", "vir04_3c"),
        (4, "high", "null", "vir04"),
        (4, "low", "yes", "vir04_4c_dvpp"),
        (4, "high", "no", "vir04_3c_ndvpp"),
    ],
)
def test_every_template(cores, level, dvpp, name):
    """As getResTemplateFromTaskSetting of Volcano's utils.go chooses them."""
    assert template(cores, level, dvpp) == name


def test_the_first_request_above_0_counts():
    (told,) = explained(pod(0, 2, 16), node(32))
    assert (told.given.container.name, told.given.cores, told.given.chips, told.given.template) == (
        "c1",
        2,
        0,
        "vir02_1c",
    )


def test_labels_choose_the_template():
    (told,) = explained(pod(4, labels={names.VNPU_LEVEL: "high", names.VNPU_DVPP: "no"}), node(32))
    assert told.given.template == "vir04_3c_ndvpp"


def test_whole_chips_have_no_template_and_read_no_label():
    (told,) = explained(pod(16, labels={names.VNPU_DVPP: ["no", "word"]}), node(32))
    assert (told.given.chips, told.given.template) == (2, "")


@pytest.mark.parametrize(
    "raw,there,refused,change",
    [
        (pod(3), node(32), (Reason.TEMPLATE, 3, 8), "c0 2"),
        (pod(12), node(32), (Reason.TEMPLATE, 12, 8), "c0 8"),
        (pod(12), node(20, 10), (Reason.TEMPLATE, 12, 10), "c0 10"),
        (pod(8), node(20, 10), (Reason.TEMPLATE, 8, 10), "c0 4"),
        (pod(40), node(32), (Reason.TOTALS, 40, 32), "c0 32"),
        (pod(2, 31), node(32), (Reason.TOTALS, 33, 32), "c1 30"),
        (pod(4, labels={names.VNPU_DVPP: "on"}), node(32), (Reason.LABEL, 0, 0), names.VNPU_DVPP),
        (pod(4, nodeSelector={"name": "m"}), node(32), (Reason.NODES, 0, 0), "nodeSelector"),
        (pod(3, 40), node(32), (Reason.TEMPLATE, 3, 8), None),
    ],
)
def test_what_refuses_and_what_helps(raw, there, refused, change):
    (told,) = explained(raw, there)
    assert told.given is None
    assert (told.refusal.reason, told.refusal.requested, told.refusal.most) == refused
    assert told.searched
    assert said(told.change) == change


def test_nothing_is_said_to_a_pod_that_asks_for_nothing():
    assert explained(pod(0), node(32)) == []


def placed(cores, size, chip):
    """The rule, spelled once more: a template or whole chips, and a node that has all the cores."""
    first = next(n for n in cores if n)
    return (first in (1, 2, 4) or first % chip == 0) and sum(cores) <= size


@given(
    cores=st.lists(st.integers(0, 40), min_size=1, max_size=3).filter(any),
    size=st.sampled_from([8, 20, 40]),
    chip=st.sampled_from([8, 10]),
)
def test_it_fits_where_the_rule_says_so(cores, size, chip):
    (told,) = explained(pod(*cores), node(size, chip))
    assert (told.given is not None) == placed(cores, size, chip)
    if told.change is not None:
        (again,) = explained(changed(pod(*cores), told.change), node(size, chip))
        assert again.given is not None
