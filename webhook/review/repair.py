"""The repair of a pod: all mutations, in order."""

from collections.abc import Iterator, Sequence

from webhook.outcome import MAX_FINDINGS
from webhook.pod.patch import APPEND, REMOVE, Draft, Edit, field_path
from webhook.pod.view import PodView
from webhook.rules.base import Mutation
from webhook.rules.choices import Enforcement
from webhook.rules.context import ANY_FAMILY, EVERY_POD
from webhook.rules.reviewed_pod import ReviewedPod
from webhook.texts import COMPACT, shorten_json, visible

SHOWN = 80  # characters of a value


class Repair:
    """Runs all mutations in order, each on what the ones before it left.

    Attributes:
        received: the pod before them.
        draft: the pod, as changed so far.
        edits: what each rule changed, by its id, in order; not the rules that changed nothing.
        notices: (rule, sentence) where the author's own words were changed.
    """

    __slots__ = ("_context", "_pod", "_stale", "draft", "edits", "notices", "received")

    def __init__(self, pod: ReviewedPod, mutations: Sequence[Mutation]) -> None:
        self._context = pod.context
        self._pod = pod
        self._stale = False  # whether the draft is another pod
        self.received = pod.view
        self.draft = Draft(pod.view.raw)
        self.edits: dict[str, list[Edit]] = {}
        self.notices: list[tuple[str, str]] = []
        requested = pod.requested
        for rule in mutations:
            families = rule.families  # compared here, as a call for each rule would take longer
            if families is EVERY_POD or (requested if families is ANY_FAMILY else not families.isdisjoint(requested)):
                edited = self._run(rule, pod)
                if edited and not rule.independent:
                    pod = self.pod
                    if families is EVERY_POD:  # no other repair changes which families a pod requests
                        requested = pod.requested

    @property
    def pod(self) -> ReviewedPod:
        """The pod as it is now; read again only when it is needed."""
        if self._stale:
            self._pod = ReviewedPod(PodView(self.draft.object), self._context, self._pod.previous)
            self._stale = False
        return self._pod

    def _run(self, rule: Mutation, pod: ReviewedPod) -> bool:
        """Whether it changed something."""
        edits: list[Edit] = []
        for proposed in rule.propose(pod, self._context):
            if isinstance(proposed, Edit):
                edits.append(proposed)
            elif len(self.notices) < MAX_FINDINGS:
                self.notices.append((rule.id, proposed.detail))
        if edits:
            self.draft.apply(edits)
            self.edits[rule.id] = edits
            self._stale = True
        return bool(edits)

    def proposals(self) -> Iterator[tuple[str, str]]:
        """(rule, sentence) of every change, not only of those to the author's own words."""
        noticed = {rule for rule, _ in self.notices}
        yield from [(rule, describe(edits)) for rule, edits in self.edits.items() if rule not in noticed]
        yield from self.notices

    def messages(self, enforcement: Enforcement, place: str = "") -> Iterator[tuple[str, str]]:
        """What the author reads: changes of the author's own words, or all changes that are not made."""
        warn = enforcement is Enforcement.WARN
        before = f"would be repaired: {place}" if warn else place
        for rule, detail in self.proposals() if warn else self.notices:
            yield rule, f"{before}{detail}"


def describe(edits: Sequence[Edit]) -> str:
    """Some edits of one rule in a sentence: the first of them, and how many more there are."""
    first, *more = edits
    path = field_path(first.path)
    what = f"{path} is removed"
    if first.value is not REMOVE:
        shown = visible(shorten_json(first.value, SHOWN, COMPACT))
        what = f"{path} {'gets' if first.path[-1] == APPEND else 'becomes'} {shown}"
    twin = tuple("requests" if key == "limits" else key for key in first.path)
    if [edit.path for edit in more] == [twin]:
        return f"{what}, in requests too"
    return f"{what}, and {len(more)} more" if more else what
