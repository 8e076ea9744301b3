"""Each alert with recorded metrics: when it fires, and when it does not, as Prometheus evaluates its rule.

`promtool test rules` does; .ci/run gets it with Debian's package prometheus.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.test_monitoring import ALERTS, exposed

REQUIRED = "VGPU_WEBHOOK_PROMTOOL"  # "required": the test fails without promtool
RULES = {rule["alert"]: rule for rule in ALERTS}
CASES: dict[str, dict[str, dict[str, dict[str, str]]]] = yaml.safe_load(
    Path(__file__).with_name("alerts.yaml").read_text()
)
POD = 'job="vgpu-webhook",pod="vgpu-webhook-a"'


def of_the_webhook(series: str) -> str:
    """The series as it is scraped."""
    name, _, labels = series.rstrip("}").partition("{")
    return f"{name}{{{','.join(filter(None, (POD, labels)))}}}" if name.startswith("vgpu_webhook_") else series


def case(alert: str, what: str, series: dict[str, str], *, fires: bool) -> dict[str, Any]:
    """Expect that an alert fires with all labels that its texts use, or not at all."""
    texts = " ".join(RULES[alert]["annotations"].values()) if alert else ""
    named = [f'alertname="{alert}"'] if alert else []
    used = [f'{label}!=""' for label in sorted(set(re.findall(r"\$labels\.(\w+)", texts)))] if fires else []
    selector = ",".join(['alertstate="firing"', *named, *used])
    return {
        "name": f"{alert}: {what}",
        "interval": "1m",
        "input_series": [{"series": of_the_webhook(name), "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {
                "expr": f"(count(ALERTS{{{selector}}}) or vector(0)) > bool 0",
                "eval_time": "130m",
                "exp_samples": [{"labels": "{}", "value": int(fires)}],
            }
        ],
    }


def suites() -> Iterator[tuple[list[Any], list[dict[str, Any]]]]:
    """Rules with their cases: each rule by itself, since promtool evaluates all rules of a file in each case."""
    for alert, cases in CASES.items():
        scenes = [(kind == "fires", *scene) for kind in ("fires", "quiet") for scene in cases[kind].items()]
        yield [RULES[alert]] if alert else ALERTS, [case(alert, *scene, fires=fires) for fires, *scene in scenes]


def test_every_alert_has_a_case_that_fires_and_one_that_does_not():
    assert {alert for alert, cases in CASES.items() if cases["fires"] and cases["quiet"]} == RULES.keys()
    series = {
        name for cases in CASES.values() for scenes in cases.values() for scene in scenes.values() for name in scene
    }
    assert {name.partition("{")[0] for name in series if name.startswith("vgpu_webhook_")} <= exposed()


def test_alerts_fire_as_recorded(tmp_path: Path):
    promtool = shutil.which("promtool")
    if promtool is None:
        assert os.environ.get(REQUIRED) != "required", f"promtool is not installed, but {REQUIRED}=required"
        pytest.skip("promtool is not installed: it is in Debian's package prometheus")
    files = []
    for number, (rules, tests) in enumerate(suites()):
        groups = {"groups": [{"name": "alerts", "rules": rules}]}
        suite = {"rule_files": [f"rules-{number}.json"], "evaluation_interval": "1m", "tests": tests}
        (tmp_path / f"rules-{number}.json").write_text(json.dumps(groups))
        files.append(tmp_path / f"tests-{number}.json")
        files[-1].write_text(json.dumps(suite))
    command = [promtool, "test", "rules", *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
