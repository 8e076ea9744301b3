"""`vgpu-webhook doctor`: what is wrong with the cluster around the webhook, and what to do about it."""

from pathlib import Path

import click

from webhook.cli.files import FileArguments, files_option
from webhook.cli.inputs import client_of
from webhook.cli.options import output_option, warnings_as_errors_option
from webhook.cli.program import FILE, Command, OptionGroup, bad_usage, exit_code, report_error
from webhook.cli.settings_options import cluster_option
from webhook.cli.terminal import Terminal
from webhook.output.formats import emit
from webhook.questions.doctor.facts import Facts
from webhook.questions.doctor.gather import facts_from_cluster, facts_from_files
from webhook.questions.doctor.registry import examine
from webhook.questions.doctor.text import show, to_value
from webhook.results import Status
from webhook.settings.sources import SAMPLE_CLUSTER, ClusterOptions
from webhook.settings.table import POLICY

_EPILOG = """
Without files it reads the cluster: in a pod as the pod's service account, elsewhere as kubectl would. It changes nothing.
What it may not read is listed as not checked. The files hold what kubectl printed:
  kubectl get nodes,configmaps,daemonsets,deployments,services,endpointslices -A -o yaml > DIR/objects.yaml
  kubectl get queues,podgroups,resourcequotas -A -o yaml > DIR/queues.yaml
  kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations -o yaml > DIR/configurations.yaml
  kubectl get deviceclasses -o yaml > DIR/classes.yaml
  kubectl get validatingadmissionpolicies,validatingadmissionpolicybindings -o yaml > DIR/fallback.yaml
  kubectl get clusterroles,clusterrolebindings,roles,rolebindings,pods -A -o yaml > DIR/access.yaml
Of Secrets it reads only the certificates; leave private keys out of DIR all the same.

exit codes:
  0  nothing is broken, of what could be read
  1  something is broken
  2  there is no cluster, or a file cannot be read; the rest is reported all the same
  3  nothing is broken, but there are warnings, under --warnings-as-errors
"""


@click.command("doctor", cls=Command, epilog=_EPILOG)
@files_option("What kubectl printed, instead of the cluster.", required=False)
@click.option("--from", "directory", type=FILE, metavar="DIR", help="The same as -R -f DIR.")
@click.option("--sample", is_flag=True, help="Check this program's sample cluster, which has some faults.")
@cluster_option("Read the cluster, which is the default.")
@click.option(
    "--namespace",
    "--webhook-namespace",
    "namespace",
    default="",
    show_default=False,
    metavar="NAMESPACE",
    help="The namespace of the webhook's Service; default the one that its configurations call.",
)
@click.option(
    "--name",
    default="",
    show_default=False,
    metavar="NAME",
    help="The name of the webhook's Service; default the one that its configurations call.",
)
@click.option("--policy", type=FILE, help="The policy; default that of the cluster, else the default policy.")
@OptionGroup.OUTPUT.option("-v", "--verbose", is_flag=True, help="List also the checks that are ok.")
@output_option("text", "json")
@warnings_as_errors_option
def command(
    given: FileArguments,
    directory: Path | None,
    sample: bool,
    cluster: bool,
    kubeconfig: Path | None,
    context: str | None,
    namespace: str,
    name: str,
    policy: Path | None,
    verbose: bool,
    output: str,
    warnings_as_errors: bool,
) -> int:
    """Find out what is wrong with the cluster around the webhook, and what to do about it."""
    start = Facts(policy=POLICY.load(policy) if policy else None, namespace=namespace, name=name)
    directories = [str(each) for each in (directory, SAMPLE_CLUSTER if sample else None) if each]
    paths = [*given.paths, *directories]
    if not paths:
        facts = facts_from_cluster(client_of(ClusterOptions(kubeconfig, context)), start)
    elif cluster or kubeconfig or context:
        raise bad_usage("files are read instead of a cluster: leave out --cluster, --kubeconfig and --context")
    else:
        facts = facts_from_files(paths, start, recursive=given.recursive or bool(directories))
    for complaint in facts.complaints:
        report_error(complaint)
    found = examine(facts)
    emit([to_value(found)], output, lambda: show(found, Terminal(), verbose=verbose))
    statuses = {result.status for result in found}
    return exit_code(
        bad_input=bool(facts.complaints) or statuses == {Status.UNCHECKED},
        found=Status.BROKEN in statuses,
        warned=warnings_as_errors and Status.WARNING in statuses,
    )
