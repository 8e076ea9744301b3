"""Policies with mistakes: each is one line that names the key and what to do."""

from tests.cli.test_bad_input import error_line


def test_all_mistakes_of_a_policy_are_reported_at_once(run, write):
    policy = write(
        "policy.yaml",
        "rulez: {}\nworkloads: maybe\nmemoryAboveCard: 5\nfleet: {autoscaled: 1, staleAfterSeconds: 0}\n"
        "rules: {card-cuont: off, cores-range: maybe, toleration: off}\n"
        "namespaces: [{match: team}, {exempt: yes please}]\nschedulerName: ''\n",
    )
    result = run("policy", "check", policy)
    assert (result.code, result.out) == (2, "")
    assert [line.removeprefix(f"error: {policy}: ") for line in sorted(result.err.splitlines())] == [
        "fleet.autoscaled: it must be true or false, not 1",
        "fleet.staleAfterSeconds: it must be 1 or more, not 0",
        "memoryAboveCard: it must be 'clamp' or 'deny', not 5",
        "namespaces.0.match: it must be a list, not 'team'",
        "namespaces.1.exempt: it must be true or false, not 'yes please'",
        "namespaces.1.match: it is missing; add it",
        "rules.cores-range: it must be 'deny', 'warn', 'audit' or 'off', not 'maybe'",
        "rules: 'toleration' is a repair, which has no level; switch it on or off under `repairs`",
        "rules: no rule is called 'card-cuont'; did you mean 'card-count'?",
        "rulez: no such key; did you mean 'rules'?",
        "schedulerName: it must be at least 1 character long, not ''",
        "workloads: it must be 'warn', 'deny' or 'off', not 'maybe'",
    ]


def test_a_policy_from_a_config_map_and_from_standard_input(run, write):
    document = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"policy.yaml": "rules: {cores-range: warn}"}}
    result = run("policy", "effective", write("map.yaml", document))
    assert (result.code, result.err) == (0, "")
    assert "  cores-range: warn  # rules, default deny\n" in result.out
    result = run("policy", "check", write("other.yaml", document | {"data": {"a": "b"}}))
    assert error_line(result).endswith("the ConfigMap has no key policy.yaml; name the ConfigMap that has it")
    line = error_line(run("policy", "check", "-", stdin=b"rules: {x: deny}"))
    assert line == "error: standard input: rules: no rule is called 'x'; `vgpu-webhook rules` lists them"
