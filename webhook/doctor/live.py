"""Facts from the API server. Nothing is changed there, and no more is read than checks look at."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from urllib.parse import quote

from webhook.doctor.device_config import PLUGIN_NAMESPACES
from webhook.doctor.facts import EVERYWHERE, Answer, Facts, Kind, Unread, kept
from webhook.doctor.ours import SECRET, entries, port, service
from webhook.doctor.reading import Object, namespace_of
from webhook.doctor.scheduler_conf import SchedulerConf, scheduler_conf
from webhook.doctor.workloads import SCHEDULER, Workload, workload_of
from webhook.errors import ClusterError
from webhook.kube.client import NOT_FOUND, OK, Client
from webhook.kube.credentials import Credentials
from webhook.policy.policy import Policy

MAX_TEXT = 64 << 20  # the metrics of a large API server take some MiB

_FORBIDDEN = 403
_UNAUTHORIZED = 401
_UNAVAILABLE = 503

_CORE, _APPS, _ADMISSION = "/api/v1", "/apis/apps/v1", "/apis/admissionregistration.k8s.io/v1"
_API: Mapping[Kind, str] = {
    Kind.DAEMON_SET: _APPS,
    Kind.DEPLOYMENT: _APPS,
    Kind.ENDPOINT_SLICE: "/apis/discovery.k8s.io/v1",
    Kind.MUTATING: _ADMISSION,
    Kind.VALIDATING: _ADMISSION,
}
_FIRST = (Kind.NODE, Kind.MUTATING, Kind.VALIDATING, Kind.DEPLOYMENT, Kind.DAEMON_SET)


def facts_from(
    credentials: Credentials, now: datetime, policy: Policy | None, namespace: str = "", name: str = ""
) -> Facts:
    """Read from the API server all that is looked at.

    Args:
        credentials: for the API server.
        now: the instant at which certificates are judged.
        policy: the operator's; None for that of the cluster.
        namespace: of the webhook's Service; empty for what the webhook configurations call.
        name: likewise.

    Raises:
        ConfigError: there are no credentials.
        ClusterError: nobody answers, or nobody knows us.
    """
    with closing(Client(credentials)) as client:
        unasked = Unread("text", "not asked for", "time")
        start = Facts(
            now=now, objects={}, namespace=namespace, name=name, policy=policy, readiness=unasked, metrics=unasked
        )
        return _Gathering(client, start).gather()


class _Gathering:
    def __init__(self, client: Client, start: Facts) -> None:
        self._client = client
        self._objects: dict[Kind, tuple[Object, ...]] = {}
        self._complete: set[tuple[Kind, str]] = set()
        self._gaps: dict[tuple[Kind, str], Unread] = {}
        self._facts = start

    def gather(self) -> Facts:
        """What is asked for later depends on what came before."""
        for kind in _FIRST:
            self._list(kind)
        namespace, name = service(self.facts)
        self._list(Kind.SERVICE, namespace)
        self._list(Kind.ENDPOINT_SLICE, namespace)
        self._get(Kind.SECRET, namespace, SECRET)
        looked: set[str] = set()
        while fresh := _namespaces(self.facts) - looked:
            for wanted in sorted(fresh):
                self._list(Kind.CONFIG_MAP, wanted)
            looked |= fresh
        called = next(map(port, entries(self.facts, Kind.VALIDATING).values()), 443)
        proxy = f"{_path(Kind.SERVICE, namespace)}/https:{quote(name, safe='')}:{called}/proxy/readyz"
        readiness = self._text(proxy, "/readyz of the webhook", f"get on services/proxy in {namespace}")
        metrics = self._text("/metrics", "metrics of the API server", "get on the URL /metrics")
        return replace(self.facts, readiness=readiness, metrics=metrics)

    @property
    def facts(self) -> Facts:
        """What is known so far."""
        return replace(self._facts, objects=self._objects, complete=frozenset(self._complete), gaps=self._gaps)

    def _list(self, kind: Kind, namespace: str = EVERYWHERE) -> None:
        where = f" in {namespace}" if namespace else ""
        try:
            found = tuple([kept(kind, raw) for raw in self._client.list(_path(kind, namespace))])
        except ClusterError as error:
            self._miss(kind, namespace, error, Unread(f"{kind.plural}{where}", "", f"list on {kind.plural}{where}"))
        else:
            self._objects[kind] = (*self._objects.get(kind, ()), *found)
            self._complete.add((kind, namespace))

    def _get(self, kind: Kind, namespace: str, name: str) -> None:
        try:
            self._objects[kind] = (kept(kind, self._client.get(f"{_path(kind, namespace)}/{name}")),)
        except ClusterError as error:
            if error.status != NOT_FOUND:
                needs = f"get on {kind.plural}/{name} in {namespace}"
                self._miss(kind, namespace, error, Unread(f"{kind} {namespace}/{name}", "", needs))
                return
        self._complete.add((kind, namespace))

    def _miss(self, kind: Kind, namespace: str, error: ClusterError, unread: Unread) -> None:
        """Go on with the rest, unless nothing has come so far and nothing will."""
        if error.status == _UNAUTHORIZED or (error.status in (0, OK) and not self._complete):
            raise error
        self._gaps[kind, namespace] = replace(unread, why=_why(error))

    def _text(self, path: str, what: str, needs: str) -> Answer | Unread:
        try:
            return Answer(200, self._client.text(path, MAX_TEXT))
        except ClusterError as error:
            if error.status == _UNAVAILABLE:
                return Answer(error.status, str(error))
            return Unread(what, _why(error), needs)


def _path(kind: Kind, namespace: str) -> str:
    inside = f"/namespaces/{quote(namespace, safe='')}" if namespace else ""
    return f"{_API.get(kind, _CORE)}{inside}/{kind.plural}"


def _why(error: ClusterError) -> str:
    return "not allowed (403)" if error.status == _FORBIDDEN else str(error)


def _namespaces(facts: Facts) -> set[str]:
    """Where ConfigMaps are looked for: the scheduler's may name yet another namespace."""
    scheduler = workload_of(facts, Kind.DEPLOYMENT, SCHEDULER)
    found = {*PLUGIN_NAMESPACES, service(facts)[0]}
    if isinstance(scheduler, Workload):
        found.add(namespace_of(scheduler.raw))
    conf = scheduler_conf(facts, scheduler)
    if isinstance(conf, SchedulerConf):
        found.add(conf.config_place[0])
    return found - {EVERYWHERE}
