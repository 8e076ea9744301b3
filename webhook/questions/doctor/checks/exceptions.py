"""The exceptions of the policy still hold, and some pod uses them."""

from datetime import UTC

from webhook.policy.schema import PolicyException
from webhook.questions.doctor.check import known, need
from webhook.questions.doctor.setup import Setup
from webhook.results import Results, listed, warning
from webhook.rules.context import EVERY_POD
from webhook.rules.registry import VALIDATIONS
from webhook.texts import matches

_READ_EVERY_POD = {rule.id for rule in VALIDATIONS if rule.families is EVERY_POD}


def exceptions(setup: Setup) -> Results:
    """Exceptions that ended, and those that fit no pod; pods without devices are not known here."""
    need(setup.policy_gap)
    today = setup.facts.now.astimezone(UTC).date()
    found = setup.policy.exceptions
    ended = [each for each in found if each.until < today]
    if ended:
        yield warning(
            f"ended, so findings have their levels again: {listed([*map(_label, ended)])}",
            "ask the owners; remove the entries from `exceptions` of the policy, or move their `until`",
        )
    idle = [each for each in found if each not in ended and _READ_EVERY_POD.isdisjoint(each.rules)]
    pods = known(setup.facts.bound_pods) if idle else ()
    idle = [
        each for each in idle if not any(p.namespace == each.namespace and matches(p.name, each.names) for p in pods)
    ]
    if idle:
        yield warning(
            f"no pod with devices has such a name now: {listed([*map(_label, idle)])}",
            "ask the owners whether they still need them; the metric exceptions_used counts their uses",
        )
    return f"{len(found)} in the policy, none ended or unused" if found else "the policy has none"


def _label(exception: PolicyException) -> str:
    return f"{exception.names[0]} in {exception.namespace} (until {exception.until}, {exception.owner})"
