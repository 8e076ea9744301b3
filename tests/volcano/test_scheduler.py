"""The scheduler's configuration is read as Volcano reads it."""

from typing import Any

import pytest

from webhook.errors import ConfigError
from webhook.volcano.scheduler import EXCLUSIVE_RULES, MAX_RULES, SchedulerConf, parse_scheduler_conf
from webhook.volcano.target import Target


def conf(*plugins: Any) -> SchedulerConf:
    return parse_scheduler_conf({"tiers": [{"plugins": list(plugins)}]}, "test")


@pytest.mark.parametrize("document", [None, [], {}, {"tiers": []}, {"tiers": "x"}, {"tiers": [1]}, "tiers"])
def test_a_configuration_without_tiers_is_refused(document: Any):
    with pytest.raises(ConfigError, match="test: it has no tiers"):
        parse_scheduler_conf(document, "test")


def test_invalid_values_count_as_absent():
    scheduler_conf = conf(
        1, {"name": 7, "arguments": []}, {"name": "deviceshare", "arguments": {"deviceshare.SchedulePolicy": 1}}
    )
    assert scheduler_conf.schedule_policy == "default"
    assert scheduler_conf.facts == ("default", False, False, False, False, False, False, ())


@pytest.mark.parametrize(
    "written, policies",
    [("binpack", ("binpack",)), ("spread", ("spread",)), ("", ("default",)), ("Binpack", ("default",))],
)
def test_the_configured_policy_is_used(written: str, policies: tuple[str, ...]):
    scheduler_conf = conf({"name": "deviceshare", "arguments": {"deviceshare.SchedulePolicy": written}})
    assert Target(scheduler=scheduler_conf).policies == policies
    assert Target((1, 14, 0), scheduler=scheduler_conf).policies == ("default",)


def test_without_the_configuration_every_policy_is_possible():
    assert Target().policies == Target(scheduler=conf({"name": "gang"})).policies == ("default", "binpack", "spread")
    assert Target((1, 14, 0)).policies == ("default",)


def test_plugins_of_all_tiers_count():
    tiers = [{"plugins": [{"name": name}]} for name in ("gang", "capacity")]
    found = parse_scheduler_conf({"tiers": tiers}, "test")
    assert (found.starts_gangs, found.limits_queues, found.nests_queues) == (True, True, False)


def test_plugin_options_are_read():
    assert not conf({"name": "gang", "enableJobReady": False}).starts_gangs
    assert conf({"name": "gang", "enablePreemptable": False}).starts_gangs
    assert conf({"name": "capacity", "enableHierarchy": True}).nests_queues
    assert not conf({"name": "drf", "enableHierarchy": True}).nests_queues
    assert conf({"name": "deviceshare", "arguments": {"deviceshare.NodeLockEnable": True}}).locks_nodes


@pytest.mark.parametrize(
    "written, rules",
    [
        ([{"app": "train"}, {"team": "a", "tier": "gold"}], ({"app": "train"}, {"team": "a", "tier": "gold"})),
        ([{"app": "train", "tier": 1}, {"x": True}, {}, "app=train", None, {2: "a"}, {"a": "b"}], ({"a": "b"},)),
        ([{f"k{n}": "v"} for n in range(MAX_RULES + 1)], tuple([{f"k{n}": "v"} for n in range(MAX_RULES)])),
        ({"app": "train"}, ()),
        ("app=train", ()),
        (None, ()),
        (7, ()),
    ],
)
def test_exclusive_rules_are_read_as_far_as_they_are_labels(written: Any, rules: tuple[Any, ...]):
    scheduler_conf = conf({"name": "deviceshare", "arguments": {EXCLUSIVE_RULES: written}})
    assert scheduler_conf.exclusive_rules == rules
    assert Target((1, 15, 0), scheduler=scheduler_conf).exclusive_rules == rules
    assert Target((1, 14, 4), scheduler=scheduler_conf).exclusive_rules == Target().exclusive_rules == ()


@pytest.mark.parametrize(
    "labels, matched",
    [
        ({"app": "train"}, 0b01),
        ({"app": "serve"}, 0),
        ({"app": "train", "team": "a", "tier": "gold"}, 0b11),
        ({"team": "a"}, 0),
        ({"app": ["train"]}, 0),
        ({}, 0),
    ],
)
def test_a_pod_matches_a_rule_with_all_of_its_labels(labels: dict[str, Any], matched: int):
    arguments = {EXCLUSIVE_RULES: [{"app": "train"}, {"team": "a", "tier": "gold"}]}
    target = Target(scheduler=conf({"name": "deviceshare", "arguments": arguments}))
    assert target.rules_of(labels) == matched
    assert target.rule_labels == {"app", "team", "tier"}
