"""`vgpu-webhook certs`: manages the certificates in a cluster, as `python -m certs` does."""

from collections.abc import Sequence

from certs import command
from webhook.cli.parser import Parser


def main(argv: Sequence[str]) -> int:
    """Create, renew, repair or show them."""
    return command.main(argv, Parser("vgpu-webhook certs"))
