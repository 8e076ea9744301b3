"""The constants that tests on an API server change exist, so that a renamed module breaks a test that runs everywhere."""

import subprocess
from collections.abc import Mapping

import pytest

from tests.e2e import serving, test_events
from tests.server.program import altered


@pytest.mark.parametrize("constants", [test_events.FAST, serving.FORGETS_SOON], ids=["events", "replicas"])
def test_the_program_starts_with_other_constants(constants: Mapping[str, object]):
    result = subprocess.run([*altered("console", constants), "--help"], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
