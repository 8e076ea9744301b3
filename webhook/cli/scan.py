"""`vgpu-webhook scan`: what the webhook would say of pods and workloads that are there already."""

import argparse
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from webhook.cli.parser import Parser
from webhook.cli.progress import Progress
from webhook.errors import WebhookError
from webhook.kube.client import Client
from webhook.kube.credentials import Credentials
from webhook.offline.objects import ObjectFiles, Source, Stored
from webhook.offline.policy_reports import existing_reports, policy_reports, write_reports
from webhook.offline.scan import Tally, is_scanned, judge, subject_of, why_left_out
from webhook.render.scan import json_lines, not_reviewed, show_table, unchecked
from webhook.render.terminal import Terminal
from webhook.render.yaml import to_yaml
from webhook.review import Snapshot
from webhook.rules.base import Level
from webhook.settings.cluster_sources import read_snapshot
from webhook.settings.files import SettingsFiles
from webhook.settings.sources import ClusterOptions
from webhook.texts import visible

EXIT_GOOD = 0
EXIT_DENIED = 1
EXIT_BAD_INPUT = 2
EXIT_WARNED = 3

_MORE = """A pod is judged without what the scheduler wrote on it. What the webhook would have repaired is told under the id of
the repair, at the level of what it cures. Finished pods are passed over, and workloads that another workload made.

  kubectl get pods,deployments,jobs -A -o json | vgpu-webhook scan --fleet fleet.yaml -

exit codes:
  0  nothing is denied
  1  something would be refused today
  2  something could not be read or written; what could be is reported all the same
  3  nothing is denied, but there are warnings, under --warnings-as-errors
"""


def main(argv: Sequence[str]) -> int:
    """Judge what is there and return the exit code."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    arguments.cluster = arguments.cluster or bool(arguments.kubeconfig or arguments.context)
    if arguments.cluster == bool(arguments.files):
        parser.error("name files, or the cluster with --cluster, --kubeconfig or --context")
    if arguments.output == "yaml" and not arguments.report:
        parser.error("-o yaml prints PolicyReports: add --report")
    if arguments.report and not arguments.cluster and arguments.output != "yaml":
        parser.error("--report writes to a cluster: add --cluster, or -o yaml to print the PolicyReports")
    return _Scan(arguments).run()


class _Scan:
    """One scan, from the settings to the exit code."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._complaints = 0
        self._passed_over = 0
        self._nodes_known = False
        self._progress: Progress | None = None
        self._tally = Tally(fine=not arguments.findings_only)

    def run(self) -> int:
        arguments = self._arguments
        files = SettingsFiles(arguments.device_config, arguments.policy, arguments.fleet).load()
        if not arguments.cluster:
            return self._scan(ObjectFiles(arguments.files, self._complain), files.inputs().snapshot())
        options = ClusterOptions(arguments.kubeconfig, arguments.context)
        credentials = Credentials(options.kubeconfig, options.context)
        client = Client(credentials)
        namespaces = [] if arguments.all_namespaces else arguments.namespaces or [credentials.namespace]
        writes = arguments.report and arguments.output != "yaml"
        before = existing_reports(client, namespaces) if writes else {}  # first: without their CRD nothing need be read
        code = self._scan(Stored(client, namespaces, self._complain), read_snapshot(client, options, files))
        if writes:
            wanted = policy_reports(self._tally.rows(), datetime.now(UTC))
            done = write_reports(client, wanted, before, self._complain, remove=not self._complaints)
            told = ", ".join(f"{count} {what}" for what, count in done._asdict().items())
            print(f"PolicyReports: {told}", file=sys.stderr if arguments.output == "json" else sys.stdout)
            code = self._code()
        return code

    def _scan(self, source: Source, snapshot: Snapshot) -> int:
        self._progress = Progress(sys.stderr, lambda: source.share)
        self._nodes_known = snapshot.knows_nodes
        snapshot = snapshot.enforcing()  # a policy that only records findings must not hide them here
        for place, raw in source:
            self._progress.step()
            try:
                self._judge(raw, snapshot)
            except WebhookError as error:
                self._complain(f"{place}: {error}")
        self._progress.clear()
        self._tell()
        return self._code()

    def _judge(self, raw: object, snapshot: Snapshot) -> None:
        if not isinstance(raw, dict) or not isinstance(raw.get("kind"), str):
            raise WebhookError("this is no Kubernetes object: it has no kind")
        wanted = self._arguments.namespaces
        if wanted and subject_of(raw).namespace not in wanted:
            self._passed_over += 1
        elif why := why_left_out(raw, snapshot):
            self._tally.leave(why)
        elif is_scanned(raw, finished=self._arguments.all) and (judged := judge(raw, snapshot)):
            self._tally.add(judged)
        else:
            self._passed_over += 1

    def _tell(self) -> None:
        output = self._arguments.output
        if output == "yaml":
            reports = policy_reports(self._tally.rows(), datetime.now(UTC))
            print("---\n".join(to_yaml(report) for report in reports.values()), end="")
        elif output == "json":
            for line in json_lines(self._tally):
                print(line)
        else:
            terminal = Terminal(sys.stdout, os.environ)
            show_table(self._tally, self._passed_over, terminal, nodes_known=self._nodes_known)
        sys.stdout.flush()
        if output in ("json", "yaml"):
            for line in (*not_reviewed(self._tally), *unchecked(self._tally, nodes_known=self._nodes_known)):
                _complain(line)
            if self._tally.left_out:
                _complain(f"{self._tally.left_out} findings are counted, but left out")

    def _code(self) -> int:
        if self._complaints:
            return EXIT_BAD_INPUT
        findings = self._tally.findings
        if findings[Level.DENY]:
            return EXIT_DENIED
        return EXIT_WARNED if findings[Level.WARN] and self._arguments.warnings_as_errors else EXIT_GOOD

    def _complain(self, text: str) -> None:
        self._complaints += 1
        if self._progress is not None:
            self._progress.clear()
        _complain(text)


def _complain(text: str) -> None:
    print(f"vgpu-webhook scan: {visible(text)}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="vgpu-webhook scan",
        description="Say what the webhook would say today of pods and workloads that are there already.",
        epilog=_MORE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("files", nargs="*", metavar="FILE", help="what kubectl printed: JSON of any size, or YAML; - is standard input")
    add(
        "--cluster", action="store_true", help="ask the API server: as the pod's service account, else as kubectl would"
    )
    add("--kubeconfig", type=Path, metavar="FILE", help="how to get at it; implies --cluster")
    add("--context", metavar="NAME", help="of the kubeconfig; implies --cluster")
    add("--namespace", "-n", dest="namespaces", action="append", default=[], metavar="NS", help="can be repeated")
    add("-A", "--all-namespaces", action="store_true", help="with --cluster: not only the context's own")
    add("--all", action="store_true", help="finished pods, too")
    add("--fleet", type=Path, metavar="FILE", help="what `kubectl get nodes -o yaml` prints; else the cluster's nodes")
    add("--device-config", type=Path, metavar="FILE", help="a file instead of the cluster's ConfigMap")
    add("--policy", type=Path, metavar="FILE", help="a file instead of the cluster's ConfigMap")
    add(
        "-o",
        "--output",
        choices=["table", "json", "yaml"],
        help="table (the default), a line of json a finding, or yaml",
    )
    add("--findings-only", action="store_true", help="leave out what asks for devices and is fine")
    add(
        "--report",
        action="store_true",
        help="write a PolicyReport into each namespace; with -o yaml print them instead",
    )
    add("--warnings-as-errors", action="store_true", help="exit with 3 if there are warnings, but nothing is denied")
    return parser
