"""`vgpu-webhook test`: suites pass, fail with a difference, or are updated in place; errors name the file and the case."""

from pathlib import Path

from tests.cli.rows import rows

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "policy-tests"

test_command = rows(
    __file__, **{f"example/{path.relative_to(EXAMPLE)}": path.read_text() for path in EXAMPLE.rglob("*.yaml")}
)
