"""A replay of one decision or of many gives the same results as a replay of the whole log, within limits."""

import json
import random
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.console.audit_lines import HOSTILE, LINES, console_client, get_page, write
from tests.console.conftest import Fixed, sample_parts
from tests.console.pages import Page
from webhook.audit.decision import read_decision
from webhook.audit.inputs import try_out
from webhook.audit.replay import Replayer
from webhook.cli.console import replay_options
from webhook.console import replay as replaying
from webhook.console.replay import ReplayRequest, replay
from webhook.console.state import ConsoleState
from webhook.settings.files import SettingsPaths
from webhook.settings.sources import ClusterOptions

API = "/api/v1/replay"
OTHER_SCHEDULER = ["schedulerName=other", "schedulerNames=[other]"]
PARTS = sample_parts()


@pytest.fixture
def client(tmp_path: Path):
    return console_client(write(tmp_path / "audit.jsonl", LINES))


def post(client: Any, status: int = 200, **body: Any) -> dict[str, Any]:
    response = client.post(API, json=body)
    assert response.status_code == status, response.text
    return response.json


def test_a_replay_with_the_original_inputs_changes_nothing(client: Any):
    found = post(client)
    assert found["one"] is None
    assert found["many"]["verdicts"] == {"same": 16}
    assert found["many"]["complete"] is True
    assert found["many"]["until"] == LINES[-1]["time"]
    assert found["many"]["groups"] == []
    assert {post(client, number=number)["one"]["verdict"] for number in range(1, 17)} == {"same"}


def test_a_replay_of_one_decision_shows_what_other_settings_change(client: Any):
    found = post(client, number=8, settings=["rules.card-count=warn"])["one"]
    assert (found["verdict"], found["direction"]) == ("changed", "denied -> allowed")
    assert (found["allowedBefore"], found["allowedAfter"]) == (False, True)
    assert (found["gained"], found["lost"]) == ([], [])
    assert found["levelChanges"] == [{"rule": "card-count", "before": "deny", "after": "warn"}]
    assert [each["level"] for each in found["findingsAfter"]] == ["warn"]
    assert found["repairedBy"] == 7


def test_a_replay_of_many_decisions_groups_what_other_settings_change(client: Any):
    found = post(client, settings=["rules.card-count=warn"], denied=True)["many"]
    assert found["replayed"] == 4
    assert found["directions"] == {"denied -> allowed": 3, "new warnings": 1}
    allowed, warned = found["groups"][0], found["groups"][1]
    assert (allowed["direction"], allowed["count"], allowed["example"]) == ("denied -> allowed", 3, 8)
    assert allowed["namespaces"] == [{"name": "team-vision", "decisions": 3}]
    assert (warned["count"], warned["example"]) == (1, 2)
    for group in (allowed, warned):
        assert (group["gained"], group["lost"]) == ([], [])
        assert group["levelChanges"] == [{"rule": "card-count", "before": "deny", "after": "warn"}]
    page = client.post("/decisions/replay", data={"settings": "rules.card-count=warn"})
    assert "<code>card-count</code> deny → warn" in page.text
    assert "+card-count" not in page.text


REQUESTS = [
    {},
    {"settings": ["rules.card-count=warn"]},
    {"settings": ["rules.host-access=deny"], "outcome": ["w*", "mutated"]},
    {"split": 2, "name": ["n*"], "denied": True},
    {"since": "2026-11-20T08:05", "until": "2026-11-20T09:06", "namespace": ["team-*"], "dry_run": False},
]


@pytest.mark.parametrize("body", REQUESTS, ids=lambda body: "-".join(body) or "all")
def test_the_command_prints_what_the_page_shows(tmp_path: Path, body: dict[str, Any]):
    files = SettingsPaths().or_samples()
    state = ConsoleState(
        Fixed(sample_parts()), write(tmp_path / "a log", LINES), replay_options=replay_options(files, cluster=None)
    )
    found = replay.run(state, replay.parse(body)).many
    program, *arguments = shlex.split(found.command)
    assert program == "vgpu-webhook"
    command = [sys.executable, "-m", "webhook.cli.main", *arguments, "-o", "json"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    summary = json.loads(ran.stdout.splitlines()[-1])["summary"]
    assert (summary["verdicts"], summary["directions"]) == (found.verdicts, found.directions)
    assert summary["decisions"] == found.replayed > 0


def test_the_command_reads_saved_files_instead_of_the_cluster():
    cluster = ClusterOptions()
    assert replay_options(SettingsPaths(policy=Path("mine.yaml")), cluster) == (
        *("--fleet", "fleet.yaml", "--device-config", "device-config.yaml"),
        *("--policy", "mine.yaml"),
    )
    assert replay_options(SettingsPaths(), None) == ()


def _shuffled_pairs(count: int) -> list[Any]:
    """Pairs of decisions of many pods in random order; some have another device config, so that a replay repairs the pod."""
    chance = random.Random(5)
    lines = []
    for number in range(count):
        pod = chance.randrange(8)
        identity = {"namespace": f"team-{chance.randrange(4)}", "user": f"user-{number}", "name": f"job-{number}"}
        for part in (0, 1):
            line = {
                **LINES[2 * pod + part],
                **identity,
                "time": f"2026-11-20T08:{number % 60:02}:0{part}Z",
                "id": f"{number}-{part}",
            }
            line["digests"] = {**line["digests"], "config": "other"} if number % 3 == 0 else line["digests"]
            lines.append((number + part * chance.choice([0.1, 1.5, 3.2]), line))
    return [line for _, line in sorted(lines, key=lambda item: item[0])]


@pytest.mark.parametrize("settings", [[], ["rules.card-count=warn"], OTHER_SCHEDULER])
def test_a_replay_of_one_decision_equals_its_part_of_a_replay_of_the_log(tmp_path: Path, settings: list[str]):
    lines = _shuffled_pairs(60)
    client = console_client(write(tmp_path / "log", lines))
    replayer = Replayer(PARTS.snapshot(), try_out(PARTS, settings, None).snapshot())
    for number, line in enumerate(lines, 1):
        whole = replayer.replay(read_decision(line))
        one = post(client, number=number, settings=settings)["one"]
        assert (one["verdict"], one["direction"]) == (whole.verdict, whole.direction), line
        assert one["patchAfter"] == list(whole.outcome.operations if whole.outcome else ()), line
        rules = [each.rule for each in (whole.outcome.violations if whole.outcome else ())]
        assert [each["rule"] for each in one["findingsAfter"]] == rules, line


def test_a_replay_of_a_validation_repairs_the_pod_first(client: Any):
    """Without the repair the result differs, so the test above detects a missing repair."""
    alone = Replayer(PARTS.snapshot(), try_out(PARTS, OTHER_SCHEDULER, None).snapshot()).replay(read_decision(LINES[3]))
    assert alone.direction == "allowed -> denied"
    assert post(client, number=4, settings=OTHER_SCHEDULER)["one"]["verdict"] == "same"


@pytest.mark.parametrize("query", [{"endpoint": "validate"}, {"rule": ["*"]}, {"outcome": ["allowed"]}])
def test_a_filter_does_not_hide_the_repair_of_a_pod(tmp_path: Path, query: Any):
    lines = _shuffled_pairs(60)
    client = console_client(write(tmp_path / "log", lines))
    replayer = Replayer(PARTS.snapshot(), try_out(PARTS, OTHER_SCHEDULER, None).snapshot())
    whole = [replayer.replay(read_decision(line)) for line in lines]
    replay_filter = ReplayRequest.model_validate(query).filter()
    found = post(client, settings=OTHER_SCHEDULER, **query)["many"]
    assert found["directions"] == Counter(
        [each.direction for each in whole if each.direction and replay_filter.admits(each.decision)]
    )
    assert found["verdicts"]["same"] > 0


def test_the_time_of_a_replay_is_limited(client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(replaying, "MAX_DECISIONS", 3)
    found = post(client, settings=["rules.card-count=warn"], split=4, user=["a b*"], since="2026-11-20")["many"]
    assert (found["replayed"], found["complete"]) == (0, True)
    assert found["command"] == (
        "vgpu-webhook replay --set rules.card-count=warn --what-if split=4 --since 2026-11-20T00:00:00Z --user 'a b*' "
        + str(tmp_path / "audit.jsonl")
    )
    found = post(client)["many"]
    assert (found["replayed"], found["complete"], found["until"]) == (3, False, LINES[2]["time"])
    monkeypatch.setattr(replaying, "MAX_SECONDS", -1.0)
    assert post(client)["many"]["replayed"] == 0
    page = client.post("/decisions/replay", data={})
    assert "run this command on the whole log" in page.text


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"settings": ["rules.nothing=warn"]}, 422, "no rule is called"),
        ({"settings": ["x"]}, 422, "write KEY=VALUE"),
        ({"settings": ["rules.card-count=" + "x" * 1000]}, 400, "settings"),
        ({"settings": ["a=b"] * 101}, 400, "settings"),
        ({"split": 0}, 400, "split"),
        ({"number": 99}, 404, "no decision 99"),
        ({"number": 1, "denied": True}, 400, "one decision or"),
        ({"limit": 1}, 400, "limit"),
    ],
)
def test_an_invalid_request_is_refused_with_the_reason(client: Any, body: Any, status: int, message: str):
    assert message in post(client, status, **body)["message"]


def test_without_an_audit_log_there_is_nothing_to_replay():
    client = console_client(None)
    assert post(client)["many"]["replayed"] == 0
    assert "--audit-log FILE" in post(client, 404, number=1)["message"]


# --- the pages --------------------------------------------------------------------------------------------------------


def test_the_page_of_a_decision_replays_it(client: Any):
    assert "Reviews the request again" in get_page(client, "/decisions/8").text
    assert "The same" in get_page(client, "/decisions/8?settings=").text
    page = get_page(client, "/decisions/8?settings=rules.card-count%3Dwarn%0D%0A%0D%0Arules.host-access%3Ddeny&split=")
    assert "denied → allowed" in page.text
    assert "/decisions/7" in page.links("/decisions/")
    assert "rules.card-count=warn\nrules.host-access=deny" in page.text  # the form keeps it
    assert "write KEY=VALUE" in get_page(client, "/decisions/8?settings=x", 422).text


def test_the_page_of_decisions_replays_those_that_match_its_filters(client: Any):
    listed = get_page(client, "/decisions?namespace=team-v*&outcome=denied&outcome=allowed&dryRun=false")
    hidden = [(each["name"], each["value"]) for each in listed.all("input") if each.get("type") == "hidden"]
    form = [pair for pair in hidden if pair != ("outcome", "allowed")] + [("outcome", "allowed")]
    assert sorted(form) == [
        ("dryRun", "false"),
        ("namespace", "team-v*"),
        ("outcome", "allowed"),
        ("outcome", "denied"),
    ]
    data = {
        "settings": "rules.card-count=warn",
        "namespace": "team-v*",
        "outcome": ["denied", "allowed"],
        "dryRun": "false",
    }
    response = client.post("/decisions/replay", data=data)
    page = Page(response.text)
    assert response.status_code == 200
    assert "denied → allowed" in page.text
    (link,) = [link for link in page.links("/decisions/") if link.startswith("/decisions/8?")]
    assert "denied → allowed" in get_page(client, link).text
    assert client.get("/decisions/replay").status_code == 405


def test_the_form_keeps_invalid_input_and_shows_the_problem(client: Any):
    data = {"settings": "rules.card-cuont=warn", "split": "4", "namespace": "team-v*"}
    response = client.post("/decisions/replay", data=data)
    assert response.status_code == 422
    page = Page(response.text)
    assert "Cannot be replayed." in page.text
    assert "card-cuont" in page.text[page.text.index("Cannot be replayed.") :]
    assert "rules.card-cuont=warn" in page.text[: page.text.index("Cannot be replayed.")]
    fields = {each["name"]: each.get("value") for each in page.all("input")}
    assert (fields["split"], fields["namespace"]) == ("4", "team-v*")
    page = get_page(client, "/decisions/8?settings=rules.card-cuont%3Dwarn&split=4", 422)
    assert "Cannot be replayed." in page.text
    assert "rules.card-cuont=warn" in page.text
    assert {each["name"]: each.get("value") for each in page.all("input")}["split"] == "4"
    assert "no such key" in get_page(client, "/decisions/8?setings=x", 400).text


def test_the_page_for_many_decisions_refuses_the_number_of_one(client: Any):
    response = client.post("/decisions/replay", data={"number": "2"})
    assert response.status_code == 400
    assert "/decisions/2" in response.text


def test_hostile_text_does_not_change_the_elements_of_a_page(tmp_path: Path):
    def shown(text: str) -> Page:
        names = dict.fromkeys(("id", "user", "namespace", "name"), text)
        finding = {"rule": text, "level": "warn", "path": text, "message": text}
        patch = [{"op": "add", "path": f"/{text}", "value": text}]
        lines = [{**LINES[1], **names, "findings": [finding], "patch": patch}, {**LINES[0], **names, "patch": patch}]
        client = console_client(
            write(tmp_path / "log", [*lines, {**LINES[0], **names, "request": {"pod": {"spec": text}}}])
        )
        responses = [
            client.post("/decisions/replay", data={"user": "*"}),
            *[client.get(f"/decisions/{n}?split=4") for n in (1, 2, 3)],
        ]
        assert [response.status_code for response in responses] == [200] * 4
        page = Page("".join([response.text for response in responses]))
        assert "\u202e" not in page.text
        assert "\x1b" not in page.text
        return page

    assert shown(HOSTILE).shape == shown("tame").shape
