"""The program with other limits and delays than its own: `python -m tests.tuned VALUES serve|console OPTIONS`."""

import os
import pickle
import sys
from collections.abc import Sequence
from functools import partial
from importlib import import_module

from tests.server import counting
from webhook.cli.main import MODULES
from webhook.cli.program import Command


def tuned(command: str, **values: object) -> list[str]:
    """Arguments of Python that run a command with values besides its options, such as `limits`."""
    return ["-m", __name__, pickle.dumps(values).hex(), command]


def main(arguments: Sequence[str]) -> None:
    values, name, *options = arguments
    if counting.FILE in os.environ:
        counting.start()
    usual = import_module(MODULES[name]).command
    run = partial(usual.callback, **pickle.loads(bytes.fromhex(values)))
    Command(name, params=usual.params, callback=run).main(options, f"vgpu-webhook {name}")


if __name__ == "__main__":
    main(sys.argv[1:])
