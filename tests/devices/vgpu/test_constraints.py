"""Which cards the annotations allow. The cases of upstream's own tests are in tests/ported."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.devices.explaining import fleet_of
from tests.strategies import annotations, node_json
from webhook import names
from webhook.devices.vgpu.eligibility import (
    UNCONSTRAINED,
    Constraints,
    clean_words,
    eligible,
    read_constraints,
    type_words,
)
from webhook.errors import Malformed
from webhook.pod.view import PodView
from webhook.volcano.target import Target

MASTER, OLDER = Target(volcano=(1, 16, 0)), Target(volcano=(1, 15, 1))
USE, NOUSE = names.USE_GPUTYPE, names.NOUSE_GPUTYPE
USE_UUID, NOUSE_UUID = names.USE_GPUUUID, names.NOUSE_GPUUUID


def read(pod_annotations, target=MASTER):
    return read_constraints(PodView({"metadata": {"annotations": pod_annotations}}), target)


@pytest.mark.parametrize(
    "pod_annotations, card_type, accepted",
    [
        # an empty element matches every card, and nothing is trimmed
        ({USE: "A100,"}, "NVIDIA-T4", True),
        ({NOUSE: "T4,"}, "NVIDIA-A100", False),
        ({USE: "T4, A100"}, "NVIDIA-A100", False),
        ({USE: "T4, A100"}, "NVIDIA-NVIDIA A100", True),  # here the space is part of the type
        ({USE: "", NOUSE: "A100"}, "NVIDIA-A100", True),
        # the vendor's word is compared exactly
        ({}, "nvidia-A100", False),
        ({USE: "MI300"}, "AMD-MI300", False),
        ({}, "AMD-MI300", False),
    ],
)
def test_a_type_is_accepted_as_the_scheduler_accepts_it(pod_annotations, card_type, accepted):
    assert read(pod_annotations).accepts_type(card_type) is accepted


@pytest.mark.parametrize(
    "pod_annotations, uuid, accepted",
    [({NOUSE_UUID: "GPU-0"}, "GPU-1", True), ({USE_UUID: "gpu-1"}, "GPU-1", False), ({}, "", True)],
)
def test_a_uuid_is_accepted_as_the_scheduler_accepts_it(pod_annotations, uuid, accepted):
    fleet = fleet_of(node_json("a", f"{uuid},1,100,NVIDIA-T4,true,hami-core:"), target=MASTER).vgpu
    assert any(candidate.cards for candidate in eligible(read(pod_annotations), fleet).candidates) is accepted


def test_older_schedulers_do_not_read_uuids():
    pod_annotations = {USE_UUID: "GPU-0", NOUSE_UUID: "GPU-1"}
    assert read(pod_annotations).names_uuids
    assert not read(pod_annotations, OLDER).names_uuids
    assert read(pod_annotations, OLDER).refused_uuids == frozenset()


@pytest.mark.parametrize("mode", ["hami-core", "mig", "mps", "", "MIG", " mig"])
def test_the_mode_is_kept_unchanged(mode):
    assert read({names.VGPU_MODE: mode}).mode == mode


@pytest.mark.parametrize(
    "pod_annotations", [None, {}, {"other": "x"}, {"nvidia.com/use-gpuuuid": "GPU-0", "nvidia.com/vgpu-mode": "mig"}]
)
def test_other_annotations_are_no_constraints(pod_annotations):
    assert read(pod_annotations) == UNCONSTRAINED == Constraints()


def test_an_annotation_that_is_not_a_string_is_refused():
    with pytest.raises(Malformed):
        read({USE: ["A100"]})


@pytest.mark.parametrize("text, words", [("a100,t4", {"A100", "T4"}), ("", {""}), ("a,", {"A", ""}), (" a ", {" A "})])
def test_type_words_are_split_as_the_scheduler_splits_them(text, words):
    assert type_words(text) == words


@pytest.mark.parametrize("text, words", [("a100, t4", ["a100", "t4"]), ("", []), (" , ,", []), ("a,,b", ["a", "b"])])
def test_clean_words_have_no_spaces_and_no_empty_words(text, words):
    assert clean_words(text) == words


@given(annotations, st.text(max_size=8))
def test_any_annotations_are_read(pod_annotations, card_type):
    constraints = read(pod_annotations)
    assert constraints.accepts_type(card_type) <= ("NVIDIA" in card_type)
    assert constraints == read(dict(reversed(pod_annotations.items())))
