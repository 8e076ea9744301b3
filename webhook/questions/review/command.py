"""`vgpu-webhook review`: what the webhook does with manifests or recorded reviews, by the same engine, without a server."""

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import click

from webhook.cli.files import FileArguments, files_option, selector_option
from webhook.cli.inputs import SettingsOptions, exempt_namespaces_option, settings_option
from webhook.cli.options import output_option, warnings_as_errors_option
from webhook.cli.program import Command, Complaints, bad_usage, exit_code, report_warning
from webhook.cli.terminal import Terminal
from webhook.document_review import Reviewed, review_document
from webhook.errors import ConfigError, WebhookError
from webhook.inputs.documents import Document, is_object, read_documents
from webhook.inputs.label_selector import LabelSelector, selects
from webhook.questions.review.beside import QuotasBeside
from webhook.questions.review.explanation import ObjectExplanation, explain_object
from webhook.questions.review.text import FORMATS, TextReport
from webhook.texts import and_more

_EPILOG = """
exit codes:
  0  all admitted
  1  something is refused: a pod, a workload, or the pods of a workload that is admitted itself
  2  bad input or configuration; what could be read is reported all the same
  3  admitted with warnings, under --warnings-as-errors
"""

MAX_NAMED = 5  # documents that are passed over


class Report(Protocol):
    """Writes outcomes in one of the formats."""

    def add(self, reviewed: Reviewed, explained: ObjectExplanation | None) -> None:
        """Write one outcome."""

    def finish(self, unread: int, texts: Sequence[str] = ()) -> None:
        """End; so many documents could not be read, and this was wrong with the first of them."""


@click.command("review", cls=Command, epilog=_EPILOG)
@files_option("YAML or JSON, with one document or several.")
@settings_option("Judge with the nodes, the device config and the policy of the cluster.")
@click.option(
    "-n",
    "--namespace",
    metavar="NAMESPACE",
    help="The namespace of objects that name none; default `default`, with --cluster that of the context.",
)
@selector_option
@exempt_namespaces_option
@output_option("text", *FORMATS, more=" json and patch are one line for each document.")
@click.option(
    "--explain",
    is_flag=True,
    help="Show for each kind of node why it refuses the pod, what would help, or where its slices go; of a gang, also which "
    "pods fit where together.",
)
@warnings_as_errors_option
def command(
    given: FileArguments,
    settings: SettingsOptions,
    namespace: str | None,
    selector: LabelSelector,
    exempt_namespaces: tuple[str, ...],
    output: str,
    explain: bool,
    warnings_as_errors: bool,
) -> int:
    """Show what the webhook does with pods, workloads, lists and recorded AdmissionReviews."""
    if explain and not settings.knows_nodes:
        raise bad_usage("--explain describes each node: add --fleet FILE or --cluster")
    files = given.files
    snapshot = settings.read().snapshot()
    namespace = namespace or settings.namespace
    report: Report = TextReport(Terminal(), snapshot) if output == "text" else FORMATS[output](sys.stdout)
    complain, quotas = Complaints(), QuotasBeside(snapshot)
    denied = warned = False
    passed_over: list[str] = []
    read = False
    for document in _documents(files, complain):
        if document.file not in given.paths and not is_object(document.value):
            passed_over.append(document.place)
            continue
        read = True
        try:
            reviewed = review_document(document, snapshot, namespace, exempt_namespaces)
        except WebhookError as error:
            complain(f"{document.place}: {error}")
            continue
        if not selects(selector, reviewed.request.object or reviewed.request.old_object):
            continue
        outcome = reviewed.outcome
        denied |= not outcome.allowed or bool(outcome.never_runs)
        warned |= bool(outcome.warnings)
        quotas.add(reviewed)
        report.add(reviewed, explain_object(reviewed) if explain else None)
    for sentence in quotas.sentences():
        warned = True
        report_warning(sentence)
    if passed_over and not read:
        complain(f"no Kubernetes object in {', '.join(given.paths)}")
    if passed_over:
        named = and_more(passed_over, MAX_NAMED)
        report_warning(f"passed over, without apiVersion and kind: {len(passed_over)}, {named}")
    report.finish(complain.count, complain.texts)
    return exit_code(unread=complain.count > 0, found=denied, warned=warned and warnings_as_errors)


def _documents(files: Sequence[str], complain: Callable[[str], None]) -> Iterator[Document]:
    """The documents of all files; a file that cannot be read is passed over with a complaint."""
    for file in files:
        try:
            yield from read_documents(file)
        except ConfigError as error:
            complain(str(error))
