"""What the console shows, and where it comes from."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from webhook.audit.follower import DecisionSource
from webhook.cluster.watcher import SettingsWatcher
from webhook.live.reader import Reader
from webhook.settings.snapshot import SnapshotInputs
from webhook.settings.sources import SAMPLE_PODS, ClusterOptions, is_sample
from webhook.settings.table import POLICY
from webhook.settings.trial import try_out
from webhook.snapshot import Snapshot

if TYPE_CHECKING:
    from webhook.cluster.client import Client  # only --cluster needs the Kubernetes client

AUDIT_LOG = "audit log"
NO_PODS = (
    "the console reads no pods: start it with --cluster and the right to list pods, or with --pods FILE, where FILE is what "
    "`kubectl get pods,podgroups -A -o json` prints"
)
MAX_TRIED = 4  # snapshots of tried settings that are kept; one of a large fleet takes some MiB


@dataclass(frozen=True, slots=True)
class Sources:
    """What the console reads, of which each question follows what it needs.

    Attributes:
        settings: device config, policy and fleet.
        reader: of the pods; None if none are read.
        pod_files: the files that they come from; empty for those of the cluster.
        cluster: how to reach the cluster; None if none is read.
        connect: makes a client of it.
        certificate: the serving certificate of the webhook, a PEM file; None if the console does not see it.
        given: the values of the options that the questions add to the command.
        decisions: those of an audit log, or of a database; None if there are none to read.
    """

    settings: SettingsWatcher
    reader: Reader | None = None
    pod_files: tuple[Path, ...] = ()
    cluster: ClusterOptions | None = None
    connect: "Callable[[], Client] | None" = None
    certificate: Path | None = None
    given: Mapping[str, Any] = field(default_factory=dict)
    decisions: DecisionSource | None = None

    @property
    def is_sample(self) -> bool:
        """Whether the pods are this program's sample pods, and so the nodes are its sample fleet."""
        return self.pod_files == (SAMPLE_PODS,)


@dataclass(frozen=True, slots=True)
class ConsoleState:
    """Everything that pages read, in many threads.

    Attributes:
        settings: device config, policy and fleet.
        decisions: the decisions of an audit log, or of a database; None if there are none to read.
        followed: what each question follows, by its name.
    """

    settings: SettingsWatcher
    decisions: DecisionSource | None = None
    followed: Mapping[str, Any] = field(default_factory=dict)

    @property
    def snapshot(self) -> Snapshot:
        """The settings of reviews."""
        return self.settings.snapshot

    @property
    def samples(self) -> tuple[str, ...]:
        """What of it is this program's sample data: names of settings, and `audit log`."""
        origins = {each.name: each.source.origin for each in self.settings.statuses()}
        origins[AUDIT_LOG] = (self.decisions and self.decisions.path) or ""
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
        inputs = replace(inputs, policy=POLICY.read(policy.encode(errors="surrogatepass"), "the policy"))
    return try_out(inputs, settings, split).snapshot()
