"""A policy by its digest, which decisions and Health show: its content, and when it and the others came into use."""

from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field
from werkzeug.exceptions import NotFound

from webhook.audit.store import DecisionStore, PolicyUse
from webhook.cluster.watcher import SettingsWatcher
from webhook.console.pages import Section
from webhook.console.state import ConsoleState, Sources
from webhook.errors import StoreError
from webhook.output.json import ResponseModel
from webhook.output.yaml import to_yaml
from webhook.policy.policy import Policy
from webhook.worker import Worker

LOOK_SECONDS = 3.0
DEFAULT = "{}  # every key has its default; `vgpu-webhook policy default` prints them\n"


class PolicyKeeper:
    """Keeps each policy that comes into use in the store of decisions, unless the console may only read that."""

    def __init__(self, settings: SettingsWatcher, store: DecisionStore) -> None:
        self._settings, self._store, self._digest = settings, store, ""

    def keep(self) -> float:
        """Keep the policy in use, once; returns the seconds until the next look."""
        used = self._settings.inputs.policy
        if used.digest != self._digest:
            self._digest = used.digest
            with suppress(StoreError):
                self._store.keep_policy(used.digest, datetime.now(UTC), _text(used))
        return LOOK_SECONDS


def follow(sources: Sources) -> None:
    """Keep the policies in a thread, as a database may take long."""
    if sources.decisions is not None:
        Worker("policies", PolicyKeeper(sources.settings, sources.decisions.store).keep).start()


SECTION = Section(follow=follow)

Digest = Annotated[str, Field(pattern="^[0-9a-f]{12}$", description="its digest, as decisions have it")]


class PolicyInFull(ResponseModel):
    """A policy, and when it and the others came into use.

    Attributes:
        digest: of the policy.
        in_use: whether it is in use now.
        text: its content, YAML; empty if it is not known.
        history: the policies of the stored decisions and of this console, the latest first.
    """

    digest: str
    in_use: bool
    text: str
    history: tuple[PolicyUse, ...]


@SECTION.page("/policies/<digest>", "policy.html", whole=("text",))
def policy(state: ConsoleState, digest: Digest) -> PolicyInFull:
    """A policy by its digest, and when the policy changed."""
    used = state.settings.inputs.policy
    in_use = used.digest == digest
    store = state.decisions.store if state.decisions else None
    history = store.policies() if store else []
    if not in_use and digest not in [use.digest for use in history]:
        raise NotFound(f"no policy {digest} is known here; /health shows the one in use")
    text = _text(used) if in_use else store.policy_text(digest) if store else ""
    return PolicyInFull(digest=digest, in_use=in_use, text=text, history=tuple(history))


def _text(used: Policy) -> str:
    return to_yaml(dict(used.document)) if used.document else DEFAULT
