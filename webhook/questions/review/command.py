"""`vgpu-webhook review`: what the webhook does with manifests or recorded reviews, by the same engine, without a server."""

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

import click

from webhook.cli.complaints import Complaints
from webhook.cli.files import FileArguments, files_option, selector_option
from webhook.cli.inputs import namespace_of, read_settings
from webhook.cli.options import exempt_namespaces_option, output_option, warnings_as_errors_option
from webhook.cli.program import Command, bad_usage, exit_code, report_fixed, report_warning
from webhook.cli.settings_options import SettingsOptions, settings_option
from webhook.cli.terminal import Terminal
from webhook.document_review import Reviewed, review_document
from webhook.errors import ConfigError, WebhookError
from webhook.inputs.documents import Document, is_object, read_documents
from webhook.inputs.files import STANDARD_INPUT, source_name
from webhook.inputs.label_selector import LabelSelector, selects
from webhook.questions.review.beside import Beside
from webhook.questions.review.explanation import ObjectExplanation, explain_object
from webhook.questions.review.fix import Fixed, Review, fix, unified_diff, write
from webhook.questions.review.text import FORMATS, TextReport
from webhook.rules.choices import DENY, Level
from webhook.settings.table import FLEET
from webhook.snapshot import Snapshot
from webhook.texts import and_more

_EPILOG = """
exit codes:
  0  all admitted
  1  something is refused: a pod, a workload, or the pods of a workload that is admitted itself; with --diff: a file changes
  2  bad input or configuration; what could be read is reported all the same
  3  admitted with warnings, under --warnings-as-errors
"""

MAX_NAMED = 5  # documents that are passed over


class Report(Protocol):
    """Writes outcomes in one of the formats."""

    def add(self, reviewed: Reviewed, explained: ObjectExplanation | None) -> None:
        """Write one outcome."""

    def finish(self, complaints: Complaints) -> None:
        """End, with what could not be read."""


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
@click.option(
    "--fix",
    "fixes",
    is_flag=True,
    help="Write the repairs into the files, and report what is left; comments and order stay.",
)
@click.option("--diff", is_flag=True, help="Print what --fix would change, and write nothing.")
@warnings_as_errors_option
def command(
    given: FileArguments,
    settings: SettingsOptions,
    namespace: str | None,
    selector: LabelSelector,
    exempt_namespaces: tuple[str, ...],
    output: str,
    explain: bool,
    fixes: bool,
    diff: bool,
    warnings_as_errors: bool,
) -> int:
    """Show what the webhook does with pods, workloads, lists and recorded AdmissionReviews."""
    if explain and settings.cluster is None and FLEET.part not in settings.files:
        raise bad_usage("--explain describes each node: add --fleet FILE or --cluster")
    if fixes and STANDARD_INPUT in given.paths and not diff:
        raise bad_usage("--fix writes files: for standard input take -o yaml, which prints the result, or --diff")
    files = given.files
    snapshot = read_settings(settings).snapshot()
    namespace = namespace or namespace_of(settings.cluster)

    review = partial(_review, snapshot=snapshot, namespace=namespace, exempt=exempt_namespaces, selector=selector)
    if diff:
        return _print_changes(files, given.paths, review)
    report: Report = TextReport(Terminal(), snapshot) if output == "text" else FORMATS[output](sys.stdout)
    complain, beside = Complaints(), Beside(snapshot)
    denied = warned = False
    passed_over: list[str] = []
    read = False
    for document in _documents(files, given.paths, complain, review if fixes else None):
        if document.file not in given.paths and not is_object(document.value):
            passed_over.append(document.place)
            continue
        read = True
        try:
            reviewed = review(document)
        except WebhookError as error:
            complain(f"{document.place}: {error}")
            continue
        if reviewed is None:
            continue
        outcome = reviewed.outcome
        denied |= not outcome.allowed or bool(outcome.never_runs)
        warned |= bool(outcome.warnings)
        beside.add(reviewed)
        report.add(reviewed, explain_object(reviewed) if explain else None)
    for level, sentence in beside.findings():
        denied |= level is DENY
        warned |= level is Level.WARN
        report_warning(sentence)
    if passed_over:
        _report_passed_over(passed_over, [] if read else given.paths, complain)
    report.finish(complain)
    return exit_code(bad_input=complain.count > 0, found=denied, warned=warned and warnings_as_errors)


def _review(
    document: Document, *, snapshot: Snapshot, namespace: str, exempt: Sequence[str], selector: LabelSelector
) -> Reviewed | None:
    """Review a document that is selected."""
    reviewed = review_document(document, snapshot, namespace, exempt)
    return reviewed if selects(selector, reviewed.request.object or reviewed.request.old_object) else None


def _report_passed_over(places: Sequence[str], without_objects: Sequence[str], complain: Callable[[str], None]) -> None:
    if without_objects:
        complain(f"no Kubernetes object in {', '.join(without_objects)}")
    report_warning(f"passed over, without apiVersion and kind: {len(places)}, {and_more(places, MAX_NAMED)}")


def _documents(
    files: Sequence[str], named: Sequence[str], complain: Callable[[str], None], fixing: Review | None
) -> Iterator[Document]:
    """The documents of all files, after their repairs with `fixing`; a file that cannot be read is passed over."""
    for file in files:
        try:
            documents = read_documents(file)
            fixed = _fixed(documents, fixing, complain, named) if fixing is not None else None
            if fixed is not None:
                _report_fixed(fixed)
                documents = fixed.documents
            yield from documents
        except ConfigError as error:
            complain(str(error))


def _fixed(
    documents: Sequence[Document], review: Review, complain: Callable[[str], None], named: Sequence[str] = ()
) -> Fixed | None:
    """The repairs of a file; they are written into it if it is among what was named."""
    try:
        fixed = fix(documents, review) if named else fix(documents, review, complain)
        if fixed is not None and named:
            write(Path(documents[0].file), fixed, named)
    except ConfigError as error:
        complain(f"{documents[0].file}: the repairs are not written: {error}")
        return None
    return fixed


def _report_fixed(fixed: Fixed) -> None:
    for reviewed in fixed.reviewed:
        outcome = reviewed.outcome
        by = ", ".join(outcome.mutations) or "the repairs of its pods"
        report_fixed(f"{reviewed.place}: {reviewed.request.kind} {reviewed.name or '(no name)'}: {by}")
        for rule, sentence in outcome.notices:
            report_warning(f"{reviewed.place}: {rule}: {sentence}")


def _print_changes(files: Sequence[str], named: Sequence[str], review: Review) -> int:
    """Print what would be written."""
    complain, changed = Complaints(), False

    def of_object(document: Document) -> Reviewed | None:
        return review(document) if document.file in named or is_object(document.value) else None

    for file in files:
        try:
            documents = read_documents(file)
        except ConfigError as error:
            complain(str(error))
            continue
        fixed = _fixed(documents, of_object, complain)
        if fixed is not None:
            changed = True
            sys.stdout.writelines(f"{line}\n" for line in unified_diff(source_name(file), fixed))
    return exit_code(bad_input=complain.count > 0, found=changed)
