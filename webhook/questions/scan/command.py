"""`vgpu-webhook scan`: what the webhook would refuse, repair or warn about among existing pods and workloads."""

import sys
from datetime import UTC, datetime

import click

from webhook.cli.ci import scanned
from webhook.cli.complaints import Complaints
from webhook.cli.files import FileArguments, files_option, selector_option
from webhook.cli.inputs import client_of, namespace_of, read_settings
from webhook.cli.options import exempt_namespaces_option, output_option, refuse_both, warnings_as_errors_option
from webhook.cli.program import Command, bad_usage, exit_code, report_warning
from webhook.cli.reading import Progress, or_sample_pods
from webhook.cli.report import WRITERS
from webhook.cli.settings_options import SettingsOptions, settings_option
from webhook.cli.terminal import Terminal
from webhook.inputs.documents import ObjectFiles
from webhook.inputs.label_selector import LabelSelector
from webhook.output.formats import emit, for_programs
from webhook.questions.scan.answer import Scan, ScanScope, scan_lines
from webhook.questions.scan.cluster_objects import ClusterObjects
from webhook.questions.scan.policy_reports import Report, existing_reports, policy_reports, write_reports
from webhook.questions.scan.text import not_reviewed, show_table, unchecked
from webhook.rules.choices import Level

_EPILOG = """
A pod is judged without the annotations that the scheduler wrote. Problems that a repair would fix are listed under that
repair, at their level. Finished pods are skipped, and so are workloads that another workload created.

  kubectl get pods,deployments,jobs -A -o json | vgpu-webhook scan --fleet fleet.yaml -
  vgpu-webhook scan --sample

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
    samples = or_sample_pods(settings, ()) if settings.cluster is None else ()
    given = given._replace(paths=given.paths or tuple(map(str, samples)))
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
    inputs = read_settings(settings)
    complaints = Complaints()
    progress = Progress(sys.stderr, lambda: source.share)

    def complain(text: str) -> None:
        progress.clear()
        complaints(text)

    source: ObjectFiles | ClusterObjects
    before: dict[str, Report] = {}
    if settings.cluster is None:
        source = ObjectFiles(given.files, complain, positions=output in WRITERS)
    else:
        client = client_of(settings.cluster)
        places = [] if all_namespaces else namespaces or [namespace_of(settings.cluster)]
        before = existing_reports(client, places) if writes else {}  # first: without their CRD nothing need be read
        source = ClusterObjects(client, places, inputs.policy.workload_kinds, complain)
    scope = ScanScope(exempt_namespaces, namespaces, selector, finished)
    scan = Scan(inputs, complain, scope, fine=not findings_only)
    scan.read(source, progress.step)
    progress.clear()
    _report(scan, complaints, output)
    if writes:
        wanted = policy_reports(scan.tally.rows(), datetime.now(UTC))
        done = write_reports(client, wanted, before, complain, remove=not complaints.count)
        counts = ", ".join(f"{count} {what}" for what, count in done._asdict().items())
        print(f"PolicyReports: {counts}", file=sys.stdout if output == "table" else sys.stderr)
    findings = scan.tally.findings
    return exit_code(
        bad_input=complaints.count > 0,
        found=findings[Level.DENY] > 0 and not exit_zero,
        warned=warnings_as_errors and findings[Level.WARN] > 0,
    )


def _report(scan: Scan, complaints: Complaints, output: str) -> None:
    """Print what was found."""
    tally = scan.tally
    if output == "table":
        show_table(scan, Terminal())
        return
    if output == "yaml":
        reports = policy_reports(tally.rows(), datetime.now(UTC))
        print(for_programs(reports.values(), output), end="")
    notes = [*not_reviewed(tally), *unchecked(scan)]
    if tally.left_out:
        notes.append(f"{tally.left_out} findings are counted, but left out")
    if output == "json":
        emit(scan_lines(tally), output, tuple)
    elif output in WRITERS:
        writer = WRITERS[output](sys.stdout)
        for one in scanned(tally.rows()):
            writer.add(one)
        writer.finish(complaints, notes)
    for line in notes:
        report_warning(line)
