"""NPUs are assigned exactly if the engine reports that the pod fits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.devices.explaining import Explaining
from tests.devices.test_explanations import CONFIG, ascend, npus
from webhook.devices.ascend.explain import assign
from webhook.devices.ascend.feasibility import HAMI_CORES
from webhook.devices.requests import DevicePod
from webhook.devices.verdict import Fits
from webhook.pod.view import PodView

npu_lists = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from([20, 50, 100]), st.sampled_from([8, 20])), min_size=1, max_size=8
)
container_amounts = st.tuples(
    st.integers(1, 3), st.sampled_from([None, None, 15, 40, 100]), st.sampled_from([None, 8, 20])
)


@given(npu_lists, st.lists(container_amounts, min_size=1, max_size=5), st.booleans())
def test_an_assignment_exists_exactly_if_the_pod_fits(npu_list, listed, hami_core):
    known = Explaining("ascend", [npus(*npu_list, hami_core=True)], CONFIG)
    (shape,) = known.part.shapes
    pod = DevicePod(PodView(ascend(*listed, hami_core=hami_core)), CONFIG)
    (wanted,) = known.family.requests(pod, None, lambda _rule: False)
    if not isinstance(known.family.judge(wanted, known.part, None), Fits):
        with pytest.raises(ValueError, match="does not take"):
            assign(wanted.containers, shape)
        return
    used = [0] * len(shape.kinds)
    for request, share in zip(wanted.containers, assign(wanted.containers, shape), strict=True):
        assert sum(share.numbers) == request.number
        assert share.cores == request.cores
        for kind, number in enumerate(share.numbers):
            npu, _ = shape.kinds[kind]
            assert number >= 0
            if number:
                assert npu.split > 0
                assert npu.memory >= share.memory
                assert (HAMI_CORES if hami_core else npu.cores) >= request.cores
            used[kind] += number
    assert all(count <= number for count, (_, number) in zip(used, shape.kinds, strict=True))
