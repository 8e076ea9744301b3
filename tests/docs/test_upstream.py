"""What docs/upstream.md names exists: scenarios, tests and cases that show a finding, rules and checks that report it."""

import ast
import re

import yaml

from tests.cases import each_case
from tests.docs.commands import ROOT
from tests.docs.generated import UPSTREAM
from tests.docs.markdown import slug, spans
from webhook.devices.ledger import LedgerRule
from webhook.suites.rulebook import rows

FINDINGS = [finding for findings in UPSTREAM.values() for finding in findings]
TITLES = {scenario["title"] for scenario in yaml.safe_load((ROOT / "tests/gpuless/scenarios.yaml").read_text())}
TOLD = {row.id for row in rows()} | set(LedgerRule) | {"usage", "why", "target", "what-if --target"}
DOCTOR = re.compile(r"doctor: (?:`[a-z-]+`(?:, | and )?)+")  # its checks, which its own tests look for
TARGETS = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)


def exists(named: str) -> bool:
    """Whether a target of make, a file, or a test or class in a file (`FILE::NAME`) exists."""
    if named.startswith("make "):
        return named.removeprefix("make ") in TARGETS
    file, _, name = named.partition("::")
    if not name or not (ROOT / file).is_file():
        return (ROOT / file).is_file()
    defined = ast.parse((ROOT / file).read_text()).body
    return name in {each.name for each in defined if isinstance(each, ast.FunctionDef | ast.ClassDef)}


@each_case("finding", FINDINGS, ids=lambda finding: slug(finding["title"]))
def test_what_shows_a_finding_exists(finding: dict[str, str]):
    cell = finding["reproduce"]
    named = [span for span in spans(cell) if span.startswith(("make ", "tests/"))]
    titles = set(re.findall(r"\*([^*]+)\*", cell)) - {"read:"}
    assert named
    assert [each for each in named if not exists(each)] == []
    assert titles <= TITLES
    assert ("make life" in named) == bool(titles)


def test_what_tells_of_a_finding_exists():
    told = {
        span
        for finding in FINDINGS
        for span in spans(DOCTOR.sub("", finding["here"]))
        if not re.search(r"[.:]|^vgpu-number$", span)
    }
    assert told <= TOLD
    assert len(told) > 20


def test_every_finding_says_which_versions_have_it_and_what_comes_of_it():
    assert len(FINDINGS) > 40
    assert [finding for finding in FINDINGS if not all(finding.values())] == []
