"""Which waiting pods other settings would start, or keep from starting: each by itself, with what live pods hold now."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from webhook.errors import ConfigError, RequestError
from webhook.why.answer import WaitAnswer, explain_waiting
from webhook.why.live import Key
from webhook.why.waiting import WaitingState, Wanted


class WaitingChange(NamedTuple):
    """A waiting pod about which other settings have another verdict.

    Attributes:
        key: its namespace and name.
        before, after: why it waits, with these settings and with the others.
    """

    key: Key
    before: WaitAnswer
    after: WaitAnswer


def waiting_changes(pods: Iterable[Key], before: WaitingState, after: WaitingState) -> Iterator[WaitingChange]:
    """Compare the verdicts about some waiting pods.

    Args:
        pods: by namespace and name.
        before: a cluster at one moment.
        after: the same cluster with other settings.
    """
    for key in pods:
        wanted = Wanted(key)
        try:
            was = explain_waiting(before.subject(wanted), before.live)
            now = explain_waiting(after.subject(wanted), after.live)
        except (ConfigError, RequestError):  # a pod that no review can read
            continue
        if was.verdict is not now.verdict:
            yield WaitingChange(key, was, now)
