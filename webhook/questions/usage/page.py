"""The pages of the fleet: what pods hold of each node now, and the nodes when they are empty."""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Annotated, Any, Literal

from pydantic import Field
from werkzeug.routing import RequestRedirect

from webhook.audit.filters import exactly
from webhook.console.pages import Section, link
from webhook.console.parameters import wider
from webhook.console.pictures.node import COLOURS
from webhook.console.state import ConsoleState
from webhook.devices import registry
from webhook.devices.ledger import LedgerFinding, OccupiedNode
from webhook.devices.usage import FamilyUsage, by_family, holders
from webhook.output.json import ResponseModel
from webhook.questions.usage import fleet
from webhook.questions.usage.fleet import NodeFilter, glob_field, matcher
from webhook.questions.usage.metrics import exposition
from webhook.questions.usage.text import uncounted
from webhook.questions.usage.watcher import CurrentUsage, NodeUsage, follow_usage, usage_of

NODES = 30  # of a page
MAX_NODES = 500  # of one response
MAX_FINDINGS = 100
MAX_NAMESPACES = 100
MAX_TYPES = 5  # free devices of a family, on the page
MAX_HOLDERS = 200  # listed of one node on the page


SECTION = Section("Fleet", follow=follow_usage, metrics=exposition)


class UsageRequest(NodeFilter):
    """Which nodes to return. All filters have to match."""

    namespace: Annotated[str, glob_field("nodes with a pod of this namespace")] = ""
    pod: Annotated[str, glob_field("nodes with a pod of this name")] = ""
    findings: Annotated[bool, Field(description="only nodes where something is wrong with an assignment")] = False
    sort: Annotated[
        Literal["name", "fullest", "emptiest", "pods"], Field(description="the order of the nodes; equal ones by name")
    ] = "name"
    offset: Annotated[int, Field(ge=0, le=10**6, description="how many nodes to skip")] = 0
    limit: Annotated[int, Field(ge=0, le=MAX_NODES, description="how many nodes at most")] = NODES

    def query(self, **changes: Any) -> dict[str, Any]:
        """The parameters for a link; a change of a filter leads to the first page."""
        query = super().query(**changes)
        if "offset" not in changes and changes:
            query.pop("offset", None)
        return query


class UsageResponse(ResponseModel):
    """What pods hold of each node.

    Attributes:
        known: False if the pods or the nodes are not known.
        problem: why they are unknown or out of date, and what to do; None if they are up to date.
        version: another number for another content; it begins anew with the console.
        pods: how many pods hold something.
        matching: how many nodes match.
        totals: of the matching nodes, by family.
        namespaces: how many MiB of device memory the pods of each hold on all nodes; the first 100, the most first.
        nodes: the matching nodes with their devices and who holds them, as `usage -o json` prints them.
        findings: what is wrong with assignments, the first 100; on all nodes.
        more_findings: how many of them are left out.
    """

    known: bool
    problem: str | None
    version: int = 0
    pods: int = 0
    matching: int = 0
    totals: tuple[FamilyUsage, ...] = ()
    namespaces: Mapping[str, int] = Field(default_factory=dict)
    nodes: tuple[OccupiedNode, ...] = ()
    findings: tuple[LedgerFinding, ...] = ()
    more_findings: int = 0


def drawn(state: ConsoleState, wanted: UsageRequest, _: UsageResponse) -> Mapping[str, Any]:
    """What the page shows besides the value.

    Raises:
        RequestRedirect: nothing is known of pods, so the empty nodes are shown.
    """
    watcher = usage_of(state)
    current = watcher.current() if watcher is not None else None
    if watcher is None or (current is None and watcher.problem):
        query = wanted.query()
        filters = {key: query[key] for key in NodeFilter.model_fields if key in query}
        raise RequestRedirect(link("pages.fleet", filters))
    matching = select(current, wanted) if current is not None else []
    return {
        "known": current,
        "shown": matching[wanted.offset : wanted.offset + wanted.limit],
        "filtered": bool(wanted.query(sort=None, offset=None, limit=None)),
        "wider": wider(wanted, ("name", "type", "namespace", "pod")),
        "families": {family.id: family for family in registry.FAMILIES},
        "colours": colours(current) if current is not None else {},
        "most": MAX_HOLDERS,
        "leaving": any(holder.terminating for _, _, holder in holders(each.node for each in matching)),
        "exactly": exactly,
        "uncounted": uncounted,
        "most_types": MAX_TYPES,
    }


@SECTION.page("/usage", "usage.html", more=drawn)
def usage(state: ConsoleState, wanted: UsageRequest) -> UsageResponse:
    """Who holds which slice of which device."""
    watcher = usage_of(state)
    current = watcher.current() if watcher is not None else None
    problem = watcher.problem if watcher is not None else None
    if current is None:
        return UsageResponse(known=False, problem=problem)
    matching = select(current, wanted)
    return UsageResponse(
        known=True,
        problem=problem,
        version=current.version,
        pods=current.pods,
        matching=len(matching),
        totals=current.totals if len(matching) == len(current.nodes) else tuple(_totals(matching, current)),
        namespaces=dict(islice(current.namespaces.items(), MAX_NAMESPACES)),
        nodes=tuple(each.node for each in matching[wanted.offset : wanted.offset + wanted.limit]),
        findings=current.findings[:MAX_FINDINGS],
        more_findings=max(len(current.findings) - MAX_FINDINGS, 0),
    )


def select(current: CurrentUsage, wanted: UsageRequest) -> list[NodeUsage]:
    """The nodes that match a request, in its order."""
    tests = list(_tests(wanted))
    matching = [each for each in current.nodes if all(test(each) for test in tests)]
    orders: Mapping[str, Callable[[NodeUsage], Any]] = {
        "name": lambda each: each.node.name,
        "fullest": lambda each: (-each.share, each.node.name),
        "emptiest": lambda each: (each.share, each.node.name),
        "pods": lambda each: (-each.pods, each.node.name),
    }
    return sorted(matching, key=orders[wanted.sort])


def _tests(wanted: UsageRequest) -> Iterator[Callable[[NodeUsage], bool]]:
    if wanted.family:
        yield lambda each: each.node.family == wanted.family
    if wanted.search:
        search = matcher(f"*{wanted.search}*")
        yield lambda each: any(map(search, _words(each)))
    if wanted.findings:
        yield lambda each: bool(each.findings)
    if wanted.name:
        name = matcher(wanted.name)
        yield lambda each: bool(name(each.node.name))
    if wanted.type:
        kind = matcher(wanted.type)
        yield lambda each: any(map(kind, {card.type for card in each.node.cards}))
    if wanted.namespace:
        namespace = matcher(wanted.namespace)
        yield lambda each: any(map(namespace, each.namespaces))
    if wanted.pod:
        pod = matcher(wanted.pod)
        yield lambda each: any(pod(holder.name) for card in each.node.cards for holder in card.pods)


def _totals(matching: list[NodeUsage], current: CurrentUsage) -> Iterator[FamilyUsage]:
    return by_family([each.node for each in matching], current.live.snapshot.families)


def _words(each: NodeUsage) -> Iterator[str]:
    """What a search looks at."""
    yield each.node.name
    for card in each.node.cards:
        yield card.type
        for holder in card.pods:
            yield from (holder.namespace, holder.name)


def colours(current: CurrentUsage) -> dict[str, str]:
    """The class of each namespace that has a colour of its own: those whose pods hold most."""
    return {namespace: f"n-{place}" for place, namespace in zip(range(COLOURS), current.namespaces, strict=False)}


SECTION.page("/fleet", "fleet.html", more=fleet.drawn)(fleet.fleet)
