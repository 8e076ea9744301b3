"""What most rules import: how a rule is declared, what it reads, and what it yields."""

from webhook import names
from webhook.devices import wording
from webhook.devices.families import Family, PodFact, Role
from webhook.pod.fields import annotations, labels, variables
from webhook.pod.patch import Edit
from webhook.rules.base import Edits, Findings, Mutation, audit, deny, warn
from webhook.rules.choices import Level
from webhook.rules.context import ASCEND_ONLY, EVERY_POD, VGPU_ONLY, ClusterFact, Context, Finding, Notice
from webhook.rules.reviewed_pod import ReviewedPod
from webhook.rules.workloads import Workload

__all__ = [
    "ASCEND_ONLY", "EVERY_POD", "VGPU_ONLY", "ClusterFact", "Context", "Edit", "Edits", "Family", "Finding", "Findings",
    "Level", "Mutation", "Notice", "PodFact", "ReviewedPod", "Role", "Workload", "annotations", "audit", "deny", "labels",
    "names", "variables", "warn", "wording",
]  # fmt: skip
