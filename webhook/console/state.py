"""What the console shows, and where it comes from."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from webhook.audit.follower import DecisionSource
from webhook.inputs.files import parse_document
from webhook.policy.policy import parse_policy
from webhook.questions.doctor.examiner import Examiner
from webhook.questions.usage.watcher import UsageWatcher
from webhook.questions.why.waiting import WaitingSource
from webhook.settings.files import is_sample
from webhook.settings.snapshot import SnapshotInputs
from webhook.settings.trial import try_out
from webhook.settings.watcher import SettingsWatcher
from webhook.snapshot import Snapshot

NO_PODS = (
    "the console reads no pods: start it with --cluster and the right to list pods, or with --pods FILE, where FILE is what "
    "`kubectl get pods,podgroups -A -o json` prints"
)
MAX_TRIED = 4  # snapshots of tried settings that are kept; one of a large fleet takes some MiB


@dataclass(frozen=True, slots=True)
class ConsoleState:
    """Everything that pages and operations read, in many threads.

    Attributes:
        settings: device config, policy and fleet.
        decisions: the decisions of an audit log, or of a database; None if there are none to read.
        doctor: checks the cluster, or files; None if there is nothing to check.
        certificate: the serving certificate of the webhook, a PEM file; None if it is not given.
        waiting: where waiting pods come from; None if no pods are read.
        usage: what pods hold of the nodes; None if no pods are read.
    """

    settings: SettingsWatcher
    decisions: DecisionSource | None = None
    doctor: Examiner | None = None
    certificate: Path | None = None
    waiting: WaitingSource | None = None
    usage: UsageWatcher | None = None

    @property
    def snapshot(self) -> Snapshot:
        """The settings of reviews."""
        return self.settings.snapshot

    @property
    def samples(self) -> tuple[str, ...]:
        """What of it is this program's sample data: names of settings, `audit log` and `cluster`."""
        origins = {each.name: each.source.origin for each in self.settings.statuses()}
        origins["audit log"] = (self.decisions and self.decisions.path) or ""
        origins["cluster"] = self.doctor.subject if self.doctor else ""
        return tuple(name for name, origin in origins.items() if is_sample(origin))

    def tried(self, settings: Sequence[str], split: int | None, policy: str = "") -> Snapshot:
        """The settings of reviews with changes; the snapshot itself if nothing changes.

        Args:
            settings: `KEY=VALUE` of the policy.
            split: into how many slices each vGPU card is split; None leaves it.
            policy: the text of a policy file instead of the policy in use; empty leaves it.

        Raises:
            ConfigError: the policy or a setting cannot be used.
        """
        if not settings and split is None and not policy.strip():
            return self.snapshot
        return _tried(self.settings.inputs, tuple(settings), split, policy)


@lru_cache(maxsize=MAX_TRIED)
def _tried(inputs: SnapshotInputs, settings: tuple[str, ...], split: int | None, policy: str) -> Snapshot:
    if policy.strip():
        document = parse_document(policy.encode(errors="surrogatepass"), "the policy")
        inputs = replace(inputs, policy=parse_policy(document, "the policy"))
    return try_out(inputs, settings, split).snapshot()
