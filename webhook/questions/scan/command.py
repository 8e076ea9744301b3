"""`vgpu-webhook scan`: what the webhook would refuse, repair or warn about among existing pods and workloads."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime

import click

from webhook.cli.ci import scanned
from webhook.cli.files import FileArguments, files_option, selector_option
from webhook.cli.inputs import SettingsOptions, exempt_namespaces_option, settings_option
from webhook.cli.options import output_option, refuse_both, warnings_as_errors_option
from webhook.cli.program import Command, Complaints, ExitCode, bad_usage, exit_code, report_warning
from webhook.cli.progress import Progress
from webhook.cli.report import WRITERS
from webhook.cli.terminal import Terminal
from webhook.emit import for_programs
from webhook.errors import WebhookError
from webhook.existing import BoundPods, Tally, is_scanned, judge, subject_of, why_left_out
from webhook.inputs.documents import Document
from webhook.inputs.label_selector import LabelSelector, selects
from webhook.inputs.objects import ObjectFiles, ObjectSource
from webhook.questions.scan.policy_reports import existing_reports, policy_reports, write_reports
from webhook.questions.scan.text import json_lines, not_reviewed, show_table, unchecked
from webhook.rules.choices import Level
from webhook.settings.snapshot import SnapshotInputs

_EPILOG = """
A pod is judged without the annotations that the scheduler wrote. Problems that a repair would fix are listed under that
repair, at their level. Finished pods are skipped, and so are workloads that another workload created.

  kubectl get pods,deployments,jobs -A -o json | vgpu-webhook scan --fleet fleet.yaml -

exit codes:
  0  nothing is refused, or --exit-zero is given
  1  something would be refused today
  2  something could not be read or written; the rest is reported all the same
  3  nothing is refused, but there are warnings, under --warnings-as-errors
"""


@click.command("scan", cls=Command, epilog=_EPILOG)
@files_option("What kubectl printed: JSON of any size, or YAML.", required=False)
@settings_option("Read pods and workloads from the cluster, and judge with its nodes, device config and policy.")
@click.option(
    "-n", "--namespace", "namespaces", metavar="NAMESPACE", multiple=True, help="Only this namespace; can be repeated."
)
@click.option("-A", "--all-namespaces", is_flag=True, help="With --cluster: every namespace, not only the context's.")
@selector_option
@exempt_namespaces_option
@click.option("--all", "finished", is_flag=True, help="Finished pods, too.")
@output_option(
    "table", "json", "yaml", *WRITERS, more=" json is one line for each finding; yaml, with --report, PolicyReports."
)
@click.option("--findings-only", is_flag=True, help="Leave out objects that request devices and have no findings.")
@click.option(
    "--report", is_flag=True, help="Write a PolicyReport into each namespace; with -o yaml print them instead."
)
@warnings_as_errors_option
@click.option("--exit-zero", is_flag=True, help="Exit with 0 also if there are findings; still with 2 after an error.")
def command(
    given: FileArguments,
    settings: SettingsOptions,
    namespaces: tuple[str, ...],
    selector: LabelSelector,
    all_namespaces: bool,
    exempt_namespaces: tuple[str, ...],
    finished: bool,
    output: str,
    findings_only: bool,
    report: bool,
    warnings_as_errors: bool,
    exit_zero: bool,
) -> int:
    """Show what the webhook would refuse, repair or warn about among existing pods and workloads."""
    if (settings.cluster is None) == (not given.paths):
        raise bad_usage("name files, or the cluster with --cluster, --kubeconfig or --context")
    refuse_both(namespaces, all_namespaces)
    if exit_zero and warnings_as_errors:
        raise bad_usage("--exit-zero and --warnings-as-errors exclude each other: leave out one")
    if output == "yaml" and not report:
        raise bad_usage("-o yaml prints PolicyReports: add --report")
    writes = report and output != "yaml"
    if writes and settings.cluster is None:
        raise bad_usage("--report writes to a cluster: add --cluster, or -o yaml to print the PolicyReports")
    inputs = settings.read()
    scan = Scan(inputs, namespaces, selector, exempt_namespaces, finished=finished, fine=not findings_only)
    if settings.cluster is None:
        scan.read(ObjectFiles(given.files, scan.complain, positions=output in WRITERS))
        scan.report(output)
        return scan.exit_code(strict=warnings_as_errors, zero=exit_zero)
    from webhook.cluster.objects import ClusterObjects  # noqa: PLC0415  # the Kubernetes client takes a second to load

    client = settings.client()
    places = [] if all_namespaces else namespaces or [settings.namespace]
    before = existing_reports(client, places) if writes else {}  # first: without their CRD nothing need be read
    scan.read(ClusterObjects(client, places, inputs.policy.workload_kinds, scan.complain))
    scan.report(output)
    if writes:
        wanted = policy_reports(scan.tally.rows(), datetime.now(UTC))
        done = write_reports(client, wanted, before, scan.complain, remove=not scan.complaints.count)
        counts = ", ".join(f"{count} {what}" for what, count in done._asdict().items())
        print(f"PolicyReports: {counts}", file=sys.stdout if output == "table" else sys.stderr)
    return scan.exit_code(strict=warnings_as_errors, zero=exit_zero)


class Scan:
    """One pass over existing objects.

    Attributes:
        tally: what was found.
        complaints: what could not be read or written.
    """

    def __init__(
        self,
        inputs: SnapshotInputs,
        namespaces: Sequence[str],
        selector: LabelSelector,
        exempt: Sequence[str],
        *,
        finished: bool,
        fine: bool,
    ) -> None:
        """Prepare.

        Args:
            inputs: of what to judge with.
            namespaces: those that count; none for all.
            selector: of the labels of the objects that count.
            exempt: the namespaces that the webhook configurations leave out.
            finished: judge finished pods, too.
            fine: list objects without findings, too.
        """
        self._snapshot = inputs.snapshot().enforcing()  # a policy that only records findings must not hide them here
        self._bound = BoundPods(self._snapshot, inputs.nodes)
        self._namespaces = namespaces
        self._selector = selector
        self._exempt = exempt
        self._finished = finished
        self._passed_over = 0
        self._progress: Progress | None = None
        self.tally = Tally(fine=fine)
        self.complaints = Complaints()

    def read(self, source: ObjectSource) -> None:
        """Judge every object."""
        self._progress = Progress(sys.stderr, lambda: source.share)
        for document in source:
            self._progress.step()
            try:
                self._judge(document)
            except WebhookError as error:
                self.complain(f"{document.place}: {error}")
        self._bound.examine(self.tally)
        self._progress.clear()

    def _judge(self, document: Document) -> None:
        raw = document.value
        if not isinstance(raw, dict) or not isinstance(raw.get("kind"), str):
            raise WebhookError("this is not a Kubernetes object: it has no kind")
        other = self._namespaces and subject_of(raw).namespace not in self._namespaces
        if other or not selects(self._selector, raw):
            self._passed_over += 1
            return
        self._bound.add(document)
        if why := why_left_out(raw, self._snapshot, self._exempt):
            self.tally.leave(why)
        elif is_scanned(raw, self._snapshot.policy.workload_kinds, finished=self._finished) and (
            judged := judge(raw, self._snapshot)
        ):
            self.tally.add(judged, document)
        else:
            self._passed_over += 1

    def report(self, output: str) -> None:
        """Print what was found."""
        nodes_known = self._snapshot.knows_nodes
        if output == "table":
            show_table(self.tally, self._passed_over, Terminal(), nodes_known=nodes_known)
            return
        if output == "yaml":
            reports = policy_reports(self.tally.rows(), datetime.now(UTC))
            print(for_programs(reports.values(), output), end="")
        notes = [*not_reviewed(self.tally), *unchecked(self.tally, nodes_known=nodes_known)]
        if self.tally.left_out:
            notes.append(f"{self.tally.left_out} findings are counted, but left out")
        if output == "json":
            for line in json_lines(self.tally):
                print(line)
        elif output in WRITERS:
            writer = WRITERS[output](sys.stdout)
            for one in scanned(self.tally.rows()):
                writer.add(one)
            writer.finish(self.complaints.count, self.complaints.texts, notes)
        for line in notes:
            report_warning(line)

    def exit_code(self, *, strict: bool, zero: bool) -> ExitCode:
        """What the findings come to; `strict` makes warnings count, and `zero` makes only errors count."""
        findings = self.tally.findings
        return exit_code(
            unread=self.complaints.count > 0,
            found=findings[Level.DENY] > 0 and not zero,
            warned=strict and findings[Level.WARN] > 0,
        )

    def complain(self, text: str) -> None:
        """Report what could not be read or written."""
        if self._progress is not None:
            self._progress.clear()
        self.complaints(text)
