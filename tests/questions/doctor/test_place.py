"""The service of the webhook: from the configurations, unless the operator names it."""

from dataclasses import replace

import pytest

from tests.questions.doctor.cluster import check_results
from tests.questions.doctor.test_checks import facts_for
from webhook.questions.doctor.setup import service
from webhook.results import Status

USUAL = {"name": "nothing is changed"}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, ("vgpu-webhook", "vgpu-webhook")),
        ({"namespace": "gpu-system"}, ("gpu-system", "vgpu-webhook")),
        ({"namespace": "gpu-system", "name": "hook"}, ("gpu-system", "hook")),
    ],
)
def test_the_operators_choice_overrides_the_configurations(fields, expected):
    assert service(replace(facts_for(USUAL), **fields)) == expected


def test_configurations_that_call_another_service_are_broken():
    result, *_ = check_results("webhook-service", replace(facts_for(USUAL), namespace="gpu-system"))
    assert result.status is Status.BROKEN
    assert result.message == (
        "the webhook configurations call Service vgpu-webhook/vgpu-webhook, not gpu-system/vgpu-webhook"
    )
