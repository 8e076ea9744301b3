"""Where the webhook is installed: as its configurations name it, unless the operator names it."""

from dataclasses import replace

import pytest

from tests.doctor.test_checks import facts_for, lines_of
from webhook.doctor.check import Status
from webhook.doctor.setup import service

USUAL = {"it": "is as it should be"}


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, ("vgpu-webhook", "vgpu-webhook")),
        ({"namespace": "gpu-system"}, ("gpu-system", "vgpu-webhook")),
        ({"namespace": "gpu-system", "name": "hook"}, ("gpu-system", "hook")),
    ],
)
def test_the_operator_comes_first(given, found):
    assert service(replace(facts_for(USUAL), **given)) == found


def test_configurations_that_call_another_service():
    line, *_ = lines_of("webhook-service", replace(facts_for(USUAL), namespace="gpu-system"))
    assert line.status is Status.BROKEN
    assert line.message == (
        "the webhook configurations call Service vgpu-webhook/vgpu-webhook, not gpu-system/vgpu-webhook"
    )
