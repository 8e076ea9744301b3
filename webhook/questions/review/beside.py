"""ResourceQuotas beside the pods that they shall limit: those that count none of what the pods request.

Kubernetes counts `requests.` of an extended resource, under the name that the pods have.
Source: Kubernetes `pkg/quota/v1/evaluator/core/pods.go`.
"""

from collections.abc import Iterator

from webhook.document_review import Reviewed
from webhook.lenient import obj
from webhook.rules.limits import COUNTED, names_devices
from webhook.settings.review import DOUBTFUL_QUOTA
from webhook.snapshot import Snapshot
from webhook.texts import and_more

MAX_NAMED = 3  # amounts of one sentence


class QuotasBeside:
    """Collects the quotas and the pods of some documents, whatever their order."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._quotas: list[tuple[str, str, dict[str, None]]] = []  # place, namespace, what it counts of devices
        self._requested: dict[str, dict[str, None]] = {}  # by namespace

    def add(self, reviewed: Reviewed) -> None:
        """Look at one document; a quota that limits nothing anyway has a finding of its own."""
        request, outcome = reviewed.request, reviewed.outcome
        for each in outcome.pods:
            names = dict.fromkeys(amount.resource for amount in each.pod.amounts)
            self._requested.setdefault(request.namespace, {}).update(names)
        if (request.group, request.kind) == ("", "ResourceQuota") and DOUBTFUL_QUOTA not in outcome.rules:
            hard = obj(request.object, "spec", "hard")
            cluster = self._snapshot.context_of(request).cluster
            counted = dict.fromkeys(
                key.removeprefix(COUNTED)
                for key in hard
                if key.startswith(COUNTED) and names_devices({key: hard[key]}, cluster)
            )
            if counted:
                self._quotas.append((reviewed.place, request.namespace, counted))

    def sentences(self) -> Iterator[str]:
        """One for each quota that counts no device of the pods of its namespace."""
        for place, namespace, counted in self._quotas:
            requested = self._requested.get(namespace, {})
            if requested and counted.keys().isdisjoint(requested):
                some, here = (and_more(list(names), MAX_NAMED) for names in (counted, requested))
                yield (
                    f"{place}: it counts {some}, and the pods beside it request {here}; limit "
                    f"{COUNTED}{next(iter(requested))}, too"
                )
