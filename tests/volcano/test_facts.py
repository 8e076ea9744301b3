"""Each fact holds in some releases of each minor and not in the others, and a fix stays in the releases after it."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.volcano.target import FACTS, Fact, Target

# By fact, for each minor: a release that does it, and one that does not; a dash stands for "no release of this minor".
VOLCANO = {
    "has_npus": "- 1.13.4, 1.14.0 -, 1.15.2 -, 1.16.0 -",
    "shares_npus": "- 1.13.4, - 1.14.5, - 1.15.2, 1.16.0 -",
    "reads_wrapped_npus": "1.13.0 -, 1.14.4 1.14.3, 1.15.1 1.15.0, 1.16.0 -",
    "gates_nodes": "1.13.4 1.13.3, 1.14.3 1.14.2, 1.15.1 1.15.0, 1.16.0 -",
    "binds_unseen": "- 1.13.4, 1.14.0 -, 1.15.0 -, 1.16.0 -",
    "reads_handshake": "1.13.3 1.13.4, 1.14.2 1.14.3, 1.15.0 1.15.1, - 1.16.0",
    "first_card_memory": "1.13.4 -, - 1.14.0, - 1.15.0, - 1.16.0",
    "reads_uuids": "- 1.13.4, - 1.14.5, - 1.15.2, 1.16.0 -",
    "scales_instances": "- 1.13.4, - 1.14.5, 1.15.0 -, 1.16.0 -",
    "follows_policy": "- 1.13.4, - 1.14.5, 1.15.0 -, 1.16.0 -",
    "reads_exclusive_rules": "- 1.13.4, - 1.14.5, 1.15.0 -, 1.16.0 -",
    "limits_groups": "- 1.13.4, - 1.14.5, - 1.15.2, 1.16.0 -",
    "spreads_groups": "- 1.13.4, - 1.14.5, 1.15.0 -, 1.16.0 -",
    "counts_terminating": "1.13.4 -, 1.14.5 -, - 1.15.0, - 1.16.0",
    "counts_repeats": "1.13.4 -, 1.14.5 -, - 1.15.0, - 1.16.0",
    "allocates_both": "1.13.4 -, 1.14.5 -, 1.15.2 -, - 1.16.0",
    "skips_torn": "- 1.13.4, - 1.14.5, - 1.15.2, 1.16.0 -",
}
PLUGIN = {"one_container": "- 1.11.0, 1.12.0 -, 1.13.0 -", "writes_handshake": "1.11.0 -, 1.12.0 1.12.1, - 1.13.0"}
KUBERNETES = {"lists_units": "- 1.30.0, - 1.35.9, 1.36.0 -, 1.37.2 -"}
CASES = {"volcano": VOLCANO, "device_plugin": PLUGIN, "kubernetes": KUBERNETES}

minors = st.sampled_from([(1, 13), (1, 14), (1, 15), (1, 16), (1, 40), (2, 0)])
facts = st.sampled_from([fact for some in FACTS.values() for fact in some.values()])


def test_every_fact_has_cases():
    """A new one gets a line in VOLCANO, PLUGIN or KUBERNETES above."""
    assert {key: set(some) for key, some in CASES.items()} == {key: set(some) for key, some in FACTS.items()}
    derived = {field.name for field in dataclasses.fields(Target) if not field.init and field.type is bool}
    assert derived == {name for some in FACTS.values() for name in some}


@pytest.mark.parametrize(
    "key, name, case", [(key, name, case) for key, some in CASES.items() for name, case in some.items()]
)
def test_a_fact_holds_in_a_release_of_each_minor_and_not_in_another(key: str, name: str, case: str):
    for pair in case.split(", "):
        for text, expected in zip(pair.split(), (True, False), strict=True):
            if text != "-":
                version = tuple(map(int, text.split(".")))
                assert getattr(Target(**{key: version}), name) is expected, f"{name} in {text}"


@given(facts, minors, st.integers(0, 20), st.integers(0, 20))
def test_a_fix_of_a_patch_release_stays_in_the_later_ones_of_its_minor(
    fact: Fact, minor: tuple[int, int], patch: int, more: int
):
    early, late = fact.holds((*minor, patch)), fact.holds((*minor, patch + more))
    assert (late or not early) if not fact.ends else (early or not late)


@given(facts, st.integers(0, 20))
def test_a_fix_is_in_every_minor_after_the_last_that_it_came_to(fact: Fact, patch: int):
    major, minor, _ = fact.since[-1]
    assert fact.holds((major, minor + 1, patch)) is not fact.ends
    assert list(fact.since) == sorted(fact.since)
    assert len({first[:2] for first in fact.since}) == len(fact.since)


@pytest.mark.parametrize("before, after", [((1, 14, 4), (1, 14, 5)), ((1, 15, 1), (1, 15, 2))])
def test_the_last_patch_releases_changed_no_fact(before: tuple[int, int, int], after: tuple[int, int, int]):
    differing = [name for name in VOLCANO if getattr(Target(before), name) is not getattr(Target(after), name)]
    assert differing == []
