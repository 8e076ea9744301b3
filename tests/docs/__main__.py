"""Writes the generated parts of the documentation, the outputs of its commands, and its recording: `python -m tests.docs`.

With `--bench FILE` it also puts the output of `make bench` into docs/performance.md.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.docs import recording
from tests.docs.commands import PAGES, make_checkout, renew_outputs, run
from tests.docs.console import as_shown, curl
from tests.docs.generated import DOCS, renew
from tests.docs.markdown import set_part

parser = argparse.ArgumentParser(prog="python -m tests.docs", description=__doc__)
parser.add_argument("--bench", type=Path, metavar="FILE", help="the output of `make bench`")
chosen = parser.parse_args()

with tempfile.TemporaryDirectory() as directory, as_shown() as port:
    checkout = make_checkout(Path(directory))

    def output(command: str) -> str:
        """The output of a command; curl requests go to the running console."""
        if command.startswith("curl "):
            return f"{curl(command, port)}\n"
        done = run(command, checkout)
        if "Traceback" in done.stderr:
            sys.exit(f"{command}{done.stderr}Mend it, and begin anew: the pages after it are as before.")
        return done.stdout

    for file in PAGES:
        file.write_text(renew_outputs(renew(file.read_text()), output))
recording.FILE.write_text(recording.picture(recording.recorded()))
if chosen.bench:
    page = DOCS / "performance.md"
    page.write_text(set_part(page.read_text(), "bench", f"```text\n{chosen.bench.read_text().strip()}\n```\n"))
