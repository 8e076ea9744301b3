"""One decision or many made again: as a replay of the whole log would, bounded, and shown with what changes."""

import json
import random
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.console.audit_lines import HOSTILE, LINES, browse, look, write
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
    return browse(write(tmp_path / "audit.jsonl", LINES))


def ask(client: Any, status: int = 200, **question: Any) -> dict[str, Any]:
    answer = client.post(API, json=question)
    assert answer.status_code == status, answer.text
    return answer.json


def test_what_was_decided_with_these_inputs_comes_out_the_same(client: Any):
    found = ask(client)
    assert found["one"] is None
    assert found["many"]["verdicts"] == {"same": 16}
    assert found["many"]["complete"] is True
    assert found["many"]["until"] == LINES[-1]["time"]
    assert found["many"]["groups"] == []
    assert {ask(client, number=number)["one"]["verdict"] for number in range(1, 17)} == {"same"}


def test_one_decision_with_other_settings(client: Any):
    found = ask(client, number=8, settings=["rules.card-count=warn"])["one"]
    assert (found["verdict"], found["direction"]) == ("changed", "denied -> allowed")
    assert (found["allowedBefore"], found["allowedAfter"]) == (False, True)
    assert (found["gained"], found["lost"]) == ([], [])
    assert found["levelChanges"] == [{"rule": "card-count", "before": "deny", "after": "warn"}]
    assert [each["level"] for each in found["findingsAfter"]] == ["warn"]
    assert found["repairedBy"] == 7


def test_many_decisions_with_other_settings(client: Any):
    found = ask(client, settings=["rules.card-count=warn"], denied=True)["many"]
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


QUESTIONS = [
    {},
    {"settings": ["rules.card-count=warn"]},
    {"settings": ["rules.host-access=deny"], "outcome": ["w*", "mutated"]},
    {"split": 2, "name": ["n*"], "denied": True},
    {"since": "2026-11-20T08:05", "until": "2026-11-20T09:06", "namespace": ["team-*"], "dry_run": False},
]


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: "-".join(question) or "all")
def test_the_command_answers_what_the_page_does(tmp_path: Path, question: dict[str, Any]):
    files = SettingsPaths().or_samples()
    state = ConsoleState(
        Fixed(sample_parts()), write(tmp_path / "a log", LINES), replay_options=replay_options(files, cluster=None)
    )
    found = replay.run(state, replay.parse(question)).many
    program, *arguments = shlex.split(found.command)
    assert program == "vgpu-webhook"
    command = [sys.executable, "-m", "webhook.cli.main", *arguments, "-o", "json"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    told = json.loads(ran.stdout.splitlines()[-1])["summary"]
    assert (told["verdicts"], told["directions"]) == (found.verdicts, found.directions)
    assert told["decisions"] == found.replayed > 0


def test_what_only_the_cluster_holds_is_saved_first():
    cluster = ClusterOptions()
    assert replay_options(SettingsPaths(policy=Path("mine.yaml")), cluster) == (
        *("--fleet", "fleet.yaml", "--device-config", "device-config.yaml"),
        *("--policy", "mine.yaml"),
    )
    assert replay_options(SettingsPaths(), None) == ()


def _shuffled(count: int) -> list[Any]:
    """Pairs of many pods in some disorder, made with another device config, so that pods are repaired again."""
    chance = random.Random(5)
    lines = []
    for number in range(count):
        pod = chance.randrange(8)
        who = {"namespace": f"team-{chance.randrange(4)}", "user": f"user-{number}", "name": f"job-{number}"}
        for part in (0, 1):
            made = {
                **LINES[2 * pod + part],
                **who,
                "time": f"2026-11-20T08:{number % 60:02}:0{part}Z",
                "id": f"{number}-{part}",
            }
            made["digests"] = {**made["digests"], "config": "other"} if number % 3 == 0 else made["digests"]
            lines.append((number + part * chance.choice([0.1, 1.5, 3.2]), made))
    return [line for _, line in sorted(lines, key=lambda item: item[0])]


@pytest.mark.parametrize("settings", [[], ["rules.card-count=warn"], OTHER_SCHEDULER])
def test_this_one_comes_out_as_in_a_replay_of_the_whole_log(tmp_path: Path, settings: list[str]):
    lines = _shuffled(60)
    client = browse(write(tmp_path / "log", lines))
    replayer = Replayer(PARTS.snapshot(), try_out(PARTS, settings, None).snapshot())
    for number, line in enumerate(lines, 1):
        whole = replayer.replay(read_decision(line))
        one = ask(client, number=number, settings=settings)["one"]
        assert (one["verdict"], one["direction"]) == (whole.verdict, whole.direction), line
        assert one["patchAfter"] == list(whole.outcome.operations if whole.outcome else ()), line
        rules = [each.rule for each in (whole.outcome.violations if whole.outcome else ())]
        assert [each["rule"] for each in one["findingsAfter"]] == rules, line


def test_a_judgement_alone_would_be_another(client: Any):
    """What the test above would miss if no pod were repaired again."""
    alone = Replayer(PARTS.snapshot(), try_out(PARTS, OTHER_SCHEDULER, None).snapshot()).replay(read_decision(LINES[3]))
    assert alone.direction == "allowed -> denied"
    assert ask(client, number=4, settings=OTHER_SCHEDULER)["one"]["verdict"] == "same"


@pytest.mark.parametrize("query", [{"endpoint": "validate"}, {"rule": ["*"]}, {"outcome": ["allowed"]}])
def test_a_filter_does_not_hide_how_pods_are_repaired(tmp_path: Path, query: Any):
    lines = _shuffled(60)
    client = browse(write(tmp_path / "log", lines))
    replayer = Replayer(PARTS.snapshot(), try_out(PARTS, OTHER_SCHEDULER, None).snapshot())
    whole = [replayer.replay(read_decision(line)) for line in lines]
    wanted = ReplayRequest.model_validate(query).filter()
    found = ask(client, settings=OTHER_SCHEDULER, **query)["many"]
    assert found["directions"] == Counter(
        [each.direction for each in whole if each.direction and wanted.admits(each.decision)]
    )
    assert found["verdicts"]["same"] > 0


def test_its_time_is_bounded(client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(replaying, "MAX_DECISIONS", 3)
    found = ask(client, settings=["rules.card-count=warn"], split=4, user=["a b*"], since="2026-11-20")["many"]
    assert (found["replayed"], found["complete"]) == (0, True)
    assert found["command"] == (
        "vgpu-webhook replay --set rules.card-count=warn --what-if split=4 --since 2026-11-20T00:00:00Z --user 'a b*' "
        + str(tmp_path / "audit.jsonl")
    )
    found = ask(client)["many"]
    assert (found["replayed"], found["complete"], found["until"]) == (3, False, LINES[2]["time"])
    monkeypatch.setattr(replaying, "MAX_SECONDS", -1.0)
    assert ask(client)["many"]["replayed"] == 0
    page = client.post("/decisions/replay", data={})
    assert "run this command on the whole log" in page.text


@pytest.mark.parametrize(
    ("question", "status", "told"),
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
def test_invalid_queries(client: Any, question: Any, status: int, told: str):
    assert told in ask(client, status, **question)["message"]


def test_without_an_audit_log():
    client = browse(None)
    assert ask(client)["many"]["replayed"] == 0
    assert "--audit-log FILE" in ask(client, 404, number=1)["message"]


# --- the pages --------------------------------------------------------------------------------------------------------


def test_replay_this(client: Any):
    assert "Reviews the request again" in look(client, "/decisions/8").text
    assert "The same" in look(client, "/decisions/8?settings=").text
    page = look(client, "/decisions/8?settings=rules.card-count%3Dwarn%0D%0A%0D%0Arules.host-access%3Ddeny&split=")
    assert "denied → allowed" in page.text
    assert "/decisions/7" in page.links("/decisions/")
    assert "rules.card-count=warn\nrules.host-access=deny" in page.text  # the form keeps it
    assert "write KEY=VALUE" in look(client, "/decisions/8?settings=x", 422).text


def test_what_if(client: Any):
    listed = look(client, "/decisions?namespace=team-v*&outcome=denied&outcome=allowed&dryRun=false")
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
    answer = client.post("/decisions/replay", data=data)
    page = Page(answer.text)
    assert answer.status_code == 200
    assert "denied → allowed" in page.text
    (link,) = [link for link in page.links("/decisions/") if link.startswith("/decisions/8?")]
    assert "denied → allowed" in look(client, link).text
    assert client.get("/decisions/replay").status_code == 405


def test_a_mistake_in_what_if_is_shown_beside_the_form_that_keeps_the_input(client: Any):
    data = {"settings": "rules.card-cuont=warn", "split": "4", "namespace": "team-v*"}
    answer = client.post("/decisions/replay", data=data)
    assert answer.status_code == 422
    page = Page(answer.text)
    assert "Cannot be replayed." in page.text
    assert "card-cuont" in page.text[page.text.index("Cannot be replayed.") :]
    assert "rules.card-cuont=warn" in page.text[: page.text.index("Cannot be replayed.")]
    fields = {each["name"]: each.get("value") for each in page.all("input")}
    assert (fields["split"], fields["namespace"]) == ("4", "team-v*")
    page = look(client, "/decisions/8?settings=rules.card-cuont%3Dwarn&split=4", 422)
    assert "Cannot be replayed." in page.text
    assert "rules.card-cuont=warn" in page.text
    assert {each["name"]: each.get("value") for each in page.all("input")}["split"] == "4"
    assert "no such key" in look(client, "/decisions/8?setings=x", 400).text


def test_what_if_is_no_page_of_one_decision(client: Any):
    answer = client.post("/decisions/replay", data={"number": "2"})
    assert answer.status_code == 400
    assert "/decisions/2" in answer.text


def test_hostile_text_is_only_text(tmp_path: Path):
    def shown(text: str) -> Page:
        names = dict.fromkeys(("id", "user", "namespace", "name"), text)
        finding = {"rule": text, "level": "warn", "path": text, "message": text}
        patch = [{"op": "add", "path": f"/{text}", "value": text}]
        lines = [{**LINES[1], **names, "findings": [finding], "patch": patch}, {**LINES[0], **names, "patch": patch}]
        client = browse(write(tmp_path / "log", [*lines, {**LINES[0], **names, "request": {"pod": {"spec": text}}}]))
        answers = [
            client.post("/decisions/replay", data={"user": "*"}),
            *[client.get(f"/decisions/{n}?split=4") for n in (1, 2, 3)],
        ]
        assert [answer.status_code for answer in answers] == [200] * 4
        page = Page("".join([answer.text for answer in answers]))
        assert "\u202e" not in page.text
        assert "\x1b" not in page.text
        return page

    assert shown(HOSTILE).shape == shown("tame").shape
