"""`vgpu-webhook test`: runs suites of policy tests."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from webhook.cli.complaints import Complaints
from webhook.cli.files import FileArguments, files_option
from webhook.cli.options import output_option
from webhook.cli.program import Command, bad_usage, exit_code
from webhook.cli.terminal import Terminal
from webhook.errors import ConfigError
from webhook.inputs.files import STANDARD_INPUT
from webhook.questions.test.text import FORMATS, TextResults
from webhook.suites.suite import CaseResult, Suite, suite_files

_EPILOG = """
In a directory, suites are suite.yaml and the files whose names end in .suite.yaml.

exit codes:
  0  all cases pass; with --update: the suites are up to date
  1  a case fails
  2  bad input; what could be read is reported all the same
"""


@click.command("test", cls=Command, epilog=_EPILOG)
@files_option("A suite.")
@output_option("text", *FORMATS, more=" json is one line for each case.")
@click.option("--update", is_flag=True, help="Write the reviews into the suites as what their cases expect.")
def command(given: FileArguments, output: str, update: bool) -> int:
    """Test a policy: compare reviews with what suites expect of them."""
    if update and STANDARD_INPUT in given.paths:
        raise bad_usage("--update cannot write to standard input; name a file")
    report = TextResults(Terminal()) if output == "text" else FORMATS[output](sys.stdout)
    complain = Complaints()
    failed = False
    for file in [file for path in given.paths for file in suite_files(path, recursive=given.recursive)]:
        try:
            suite = Suite(file)
            if update and (changed := [result for result in _results(suite) if not result.passed]):
                Path(file).write_text(suite.updated(changed), encoding="utf-8", newline="")
                suite = Suite(file)
        except ConfigError as error:
            complain(str(error))
            continue
        for result in _results(suite, complain):
            failed |= not result.passed
            report.add(result)
    report.finish(complain)
    return exit_code(bad_input=complain.count > 0, found=failed)


def _results(suite: Suite, complain: Callable[[str], None] = lambda _: None) -> Iterator[CaseResult]:
    """Run the cases; one that cannot be run is passed over with a complaint."""
    for case in suite.cases:
        try:
            yield suite.run(case)
        except ConfigError as error:
            complain(str(error))
