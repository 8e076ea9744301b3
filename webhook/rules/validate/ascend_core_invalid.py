"""MindCluster gives AI cores by templates or whole chips.

Refuses:  `huawei.com/npu-core` that is neither a template nor a multiple of a chip; an unknown `vnpu-level` or `vnpu-dvpp`
Why:      the scheduler finds no template and no chip for it, and the pod stays pending.
"""

from webhook.devices.mindcluster.family import (
    CHIP_CORES,
    DVPP,
    LEVELS,
    TEMPLATE_CORES,
    chip_cores,
    has_template,
    served,
)
from webhook.rules.api import Context, Family, Finding, Findings, ReviewedPod, deny, labels, names, wording

_WORDS = {names.VNPU_LEVEL: LEVELS, names.VNPU_DVPP: DVPP}


@deny(families={Family.MINDCLUSTER}, reads=("nodes", *labels(*_WORDS)))
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Find cores and labels that select no template."""
    cluster, fleet = context.cluster, context.cluster.known_fleet
    shapes = fleet.parts[Family.MINDCLUSTER].shapes if fleet is not None else ()
    chips = sorted({chip_cores(shape) for shape in shapes} or {CHIP_CORES})
    amount = served(pod)
    if amount is not None and amount.value is not None and not any(has_template(amount.value, c) for c in chips):
        templates = ", ".join(map(str, TEMPLATE_CORES))
        yield Finding(
            wording.resource_path(amount.container, names.NPU_CORE),
            f"{wording.container(amount.container)} requests {names.NPU_CORE} {amount.value}, for which there is no template; "
            f"write {templates}, or a multiple of {' or '.join(map(str, chips))} for whole chips",
            doubtful=fleet is None or cluster.policy.fleet.autoscaled,  # a node may come whose chips have other cores
        )
    for label, words in _WORDS.items():
        value = pod.view.labels.get(label)
        if value is not None and value not in words:
            yield Finding(
                f"metadata.labels[{label}]",
                f"the label {label} is {wording.quoted(value)}; write {', '.join(words[:-1])} or {words[-1]}, or remove it",
            )
