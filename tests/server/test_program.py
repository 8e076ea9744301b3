"""The constants that tests on an API server change exist, so that a renamed module breaks a test that runs everywhere."""

import subprocess
from collections.abc import Mapping

from tests.e2e import serving
from tests.server.program import altered


def test_the_program_starts_with_other_constants():
    assert_starts_with(serving.FORGETS_SOON)


def assert_starts_with(constants: Mapping[str, object]) -> None:
    result = subprocess.run([*altered("console", constants), "--help"], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
