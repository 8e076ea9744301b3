"""The policy trusts the accounts that assign devices."""

import json

from webhook.questions.doctor.check import need, unchecked
from webhook.questions.doctor.facts import place_of
from webhook.questions.doctor.setup import Setup
from webhook.questions.doctor.volcano import ASSIGNING, account_of, assigning_workloads
from webhook.results import Results, broken, listed, warning
from webhook.rules.choices import Level
from webhook.rules.validate import reserved_annotation


def trusted_users(setup: Setup) -> Results:
    """The schedulers and device plugins run as users that trustedUsers lists."""
    need(setup.policy_gap)
    settings = setup.policy
    places: dict[str, list[str]] = {}
    gaps = []
    for kind in ASSIGNING:
        found = assigning_workloads(setup.facts, kind, settings.scheduler_names)
        for raw in found:
            places.setdefault(account_of(raw), []).append(place_of(raw))
        gap = setup.facts.gap(kind)
        if not found and gap is not None:
            gaps.append(gap)
    missing = sorted(places.keys() - settings.trusted_users)
    if missing:
        where = listed([f"{listed(places[user])} as {user}" for user in missing])
        message = f"not in trustedUsers, but assign devices: {where}"
        remedy = (
            f"write in the policy `trustedUsers: {json.dumps([*sorted(settings.trusted_users), *missing])}`, and apply "
            "the webhook configurations again"
        )
        if setup.policy.at(None).levels[reserved_annotation.check.id] is Level.DENY:
            yield broken(f"{message}; their annotations are refused, and no pod with such devices starts", remedy)
        else:
            yield warning(f"{message}; reserved-annotation reports their annotations", remedy)
    yield from map(unchecked, gaps)
    trusted = f"trusted: {listed(sorted(places))}"
    return trusted if places else "no scheduler or device plugin that assigns devices was found"
