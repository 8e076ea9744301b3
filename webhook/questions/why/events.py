"""Writes an Event about each waiting pod, and one more when its verdict changes, so that `kubectl describe pod` shows why.

A pod that took no assignment of its own, so that another one gets it, has an Event, too.

It may create Events, and neither list nor change them. So the name of an Event follows from the pod and its verdict: creating
it again, after a restart or by another replica, is refused by the API server, and there are no doubles.
"""

import hashlib
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from webhook.devices.ledger import BoundPod, LedgerFinding, LedgerRule
from webhook.errors import ClusterError, WebhookError
from webhook.live.devices import LiveCluster
from webhook.live.reader import Reader
from webhook.questions.why.listing import WaitingPod, list_waiting
from webhook.questions.why.node_reasons import WaitVerdict
from webhook.questions.why.text import waiting_words
from webhook.texts import visible
from webhook.worker import Worker

if TYPE_CHECKING:
    from webhook.cluster.client import Client  # only --cluster needs the Kubernetes client
    from webhook.cluster.lease import Lease

REPEAT_SECONDS = 3600.0  # for which an API server keeps Events by default; then the pod gets its Event again
MAX_NOTE = 1000  # bytes; the API server takes 1,024
MAX_POD_NAME = 200  # characters of the name of an Event

CONTROLLER = "vgpu-webhook"
EVENTS = "/apis/events.k8s.io/v1/namespaces/{}/events"
REASONS = {
    WaitVerdict.NEVER: ("VGPUNeverFits", "Warning"),
    WaitVerdict.NOT_NOW: ("VGPUWaits", "Normal"),
    WaitVerdict.FITS_NOW: ("VGPUFitsNow", "Normal"),
}
UNTAKEN = {LedgerRule.LEFT_BEHIND: "VGPUAssignmentLeftBehind", LedgerRule.NOT_TAKEN: "VGPUAssignmentNotTaken"}
# The Event exists, or its namespace ends or refuses it: the others go on.
REFUSED = frozenset({HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN, HTTPStatus.UNPROCESSABLE_ENTITY})

log = logging.getLogger("vgpu-webhook")


@dataclass(frozen=True, slots=True)
class EventPace:
    """How often Events are written; times in seconds.

    Attributes:
        turn: between two renewals of the lease.
        round: between two looks at all waiting pods.
        settle: for which the scheduler may need a pod that is able to start.
        most: Events, after which the pods are read again: they may have started.
        rate, burst: Events a second, as the controllers of Kubernetes send requests.
    """

    turn: float = 10.0
    round: float = 30.0
    settle: float = 60.0
    most: int = 200
    rate: float = 20.0
    burst: int = 30


PACE = EventPace()


class TokenBucket:
    """A limit on the rate of events: a constant number a second, and a burst after a pause."""

    def __init__(self, rate: float, burst: int) -> None:
        self._rate, self._burst = rate, burst
        self._tokens, self._at = float(burst), time.monotonic()

    def take(self) -> float:
        """Take a token; how many seconds to wait until it is there."""
        now = time.monotonic()
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate) - 1
        self._at = now
        return max(-self._tokens / self._rate, 0.0)


class WaitingEvents:
    """Writes the Events in a thread, while this replica holds the lease."""

    def __init__(
        self,
        connect: "Callable[[], Client]",
        lease: "Lease",
        reader: Reader,
        *,
        names_others: bool,
        pace: EventPace = PACE,
    ) -> None:
        """Take how to make a client, the lease of the writer, the waiting pods, and whether to name other namespaces' pods."""
        self._names_others = names_others
        self._pace = pace
        self._connect = connect
        self._lease = lease
        self._reader = reader
        self._worker = Worker("events", self._turn)
        self._client: Client | None = None
        self._bucket = TokenBucket(pace.rate, pace.burst)
        self._created: dict[str, float] = {}  # when each Event was created or found, by its namespace and name
        self._counts: Counter[bool] = Counter()  # whether they were written, since the last complete round
        self._next_round = 0.0
        self._renewed = 0.0
        self._problem = ""
        self._leads = False

    def start(self) -> None:
        self._worker.start()

    def _turn(self) -> float:
        began, wanted = time.monotonic(), 0.0
        try:
            client = self._client = self._client or self._connect()
            if self._hold(client) and began >= self._next_round and self._round(client):
                self._next_round = began + self._pace.round
                self._note("")
                self._sum_up()
        except WebhookError as error:
            self._note(str(error))
            wanted = error.retry_after if isinstance(error, ClusterError) else 0.0
        return max(began + self._pace.turn - time.monotonic(), wanted, 0.1)

    def _hold(self, client: "Client") -> bool:
        leads = self._lease.hold(client)
        if leads != self._leads:
            log.info("events: this replica %s", "writes them" if leads else "no longer writes them")
        self._leads, self._renewed = leads, time.monotonic()
        return leads

    def _round(self, client: "Client") -> bool:
        """Write the Events that are due; whether all of them are written."""
        state = self._reader.waiting()
        found = list_waiting(state).pods
        oldest = time.monotonic() - REPEAT_SECONDS
        self._created = {name: at for name, at in self._created.items() if at > oldest}
        for number, event in enumerate(self._due(found, state.live)):
            renewed = time.monotonic() - self._renewed < self._pace.turn
            if number == self._pace.most or not (renewed or self._hold(client)):
                return False
            self._worker.rest(self._bucket.take())
            self._create(client, event)
        return True

    def _due(self, pods: tuple[WaitingPod, ...], live: LiveCluster) -> Iterator[dict[str, Any]]:
        for event in self._all(pods, live):
            if _key(event) not in self._created:
                yield event

    def _all(self, pods: tuple[WaitingPod, ...], live: LiveCluster) -> Iterator[dict[str, Any]]:
        identity = self._lease.identity
        for bound, finding in live.findings():
            if finding.rule in UNTAKEN:
                yield assignment_event(bound, finding, identity, datetime.now(UTC))
        for pod in pods:
            now = datetime.now(UTC)
            if pod.verdict in REASONS and is_settled(pod, now, self._pace.settle):
                yield event_of(pod, identity, now, names_others=self._names_others)

    def _create(self, client: "Client", event: dict[str, Any]) -> None:
        written = True
        try:
            client.create(EVENTS.format(event["metadata"]["namespace"]), event)
        except ClusterError as error:
            if error.status not in REFUSED:
                raise
            written = False
            if error.status != HTTPStatus.CONFLICT:
                self._note(str(error))
        self._counts[written] += 1
        self._created[_key(event)] = time.monotonic()

    def _sum_up(self) -> None:
        if self._counts:
            log.info("events: %d written, %d were there already", self._counts[True], self._counts[False])
            self._counts.clear()

    def _note(self, problem: str) -> None:
        if problem and problem != self._problem:
            log.warning("events: %s", problem)
        self._problem = problem


def is_settled(pod: WaitingPod, now: datetime, seconds: float = PACE.settle) -> bool:
    """Whether an Event about a pod is worth while: it never starts, or the scheduler had so many seconds to start it."""
    if pod.verdict is WaitVerdict.NEVER:
        return True
    try:
        return (now - datetime.fromisoformat(pod.since)).total_seconds() >= seconds
    except (TypeError, ValueError):  # the API server sets it
        return False


def event_of(pod: WaitingPod, instance: str, now: datetime, *, names_others: bool) -> dict[str, Any]:
    """The Event about a pod; its name is another one only for another pod, or another verdict.

    What others hold of the nodes changes all the time. It is not part of the name, but a gate, a queue or a gang is.
    """
    known = pod.verdict, "" if pod.node else pod.reason
    words = waiting_words(pod, names_others=names_others)
    return _event(pod, REASONS[pod.verdict], known, words, (instance, now))


def assignment_event(pod: BoundPod, finding: LedgerFinding, instance: str, now: datetime) -> dict[str, Any]:
    """The Event about a pod whose assignment another one gets."""
    note = f"{finding.message}; {finding.remedy}"
    return _event(pod, (UNTAKEN[finding.rule], "Warning"), (finding.rule,), note, (instance, now))


def _event(
    pod: WaitingPod | BoundPod, reason: tuple[str, str], known: tuple[str, ...], note: str, by: tuple[str, datetime]
) -> dict[str, Any]:
    digest = hashlib.blake2b("\n".join((pod.uid, *known)).encode(), digest_size=8).hexdigest()
    about = {"namespace": pod.namespace, "name": pod.name}
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": about | {"name": f"{pod.name[:MAX_POD_NAME].rstrip('-.')}.{digest}"},
        "regarding": about | {"apiVersion": "v1", "kind": "Pod", "uid": pod.uid},
        "eventTime": f"{by[1]:%FT%T.%fZ}",
        "type": reason[1],
        "reason": reason[0],
        "action": "Explain",
        "note": visible(note).encode()[:MAX_NOTE].decode(errors="ignore"),
        "reportingController": CONTROLLER,
        "reportingInstance": by[0],
    }


def _key(event: dict[str, Any]) -> str:
    return f"{event['metadata']['namespace']}/{event['metadata']['name']}"
