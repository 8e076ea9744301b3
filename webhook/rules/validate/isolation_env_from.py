"""A ConfigMap or Secret can set the variables that switch the isolation off.

Finds:    an entry of `envFrom` that can set a variable which switches the isolation off, given its prefix
Why:      its keys are read when the container starts, and override what the device plugin injects.
"""

from webhook.lenient import text
from webhook.rules.api import Context, Finding, Findings, ReviewedPod, warn
from webhook.rules.isolation import ISOLATED, first_behind

DETAIL = "{who} takes variables by envFrom, which can set {name}; list the keys in env, or set a prefix such as APP_"


@warn(
    families=ISOLATED,
    needs={"containers[*].envFrom[*]"},
    on={"ephemeral"},
    isolates=True,
    reads=("containers[*].envFrom[*].prefix",),
)
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Find sources of variables that may override the isolation."""
    for container in pod.judged:
        for index, source in container.entries("envFrom"):
            name = first_behind(text(source, "prefix"), pod.requested)
            if name is not None:
                yield Finding.in_container(DETAIL, container, f"envFrom[{index}]", name=name)
