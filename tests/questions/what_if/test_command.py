"""`vgpu-webhook what-if`, in the rows of commands.yaml."""

from tests.cli.rows import rows

test_command = rows(__file__)
