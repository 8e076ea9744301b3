"""The pages, files, rules, checks and alerts that the documentation names exist, and the site can be built."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.cases import each_case
from tests.deploy.files import DEPLOY
from tests.docs.commands import BIN, CHINESE, ENGLISH, PAGES, README, ROOT, SAMPLES
from tests.docs.generated import DOCS
from tests.docs.markdown import blocks, headings, prose, slug, spans, tables, targets
from webhook.cli.main import main
from webhook.devices.ledger import LedgerRule
from webhook.policy.policy import parse_policy
from webhook.suites.rulebook import rows

GUIDES = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]
PATH = re.compile(r"(?<![\w/.-])(?:webhook|tests|deploy|certs|docs)/[\w./<>-]*[\w/>]")
RULES = {row.id for row in rows()}
FOREIGN_MESSAGES = {  # of Volcano, its device plugin and the kubelet
    "hami-vgpuDeviceSharing error",
    "cannot get valid pod",
    "device number not matched",
    "no healthy devices present",
}
EXAMPLE_RULE = "cores_exclusive"  # the rule that docs/add-a-rule.md adds


def test_the_site_can_be_built_but_not_with_dead_links(tmp_path: Path):
    """A link to a page or a section that does not exist is an error of `--strict`."""
    shutil.copytree(DOCS, tmp_path / "docs")
    shutil.copy(ROOT / "zensical.toml", tmp_path)
    with (tmp_path / "docs" / "index.md").open("a") as page:
        page.write("\n[dead](no-such-page.md) [dead](rules.md#no-such-section)\n")
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    found = ("page does not exist", "anchor does not exist", "2 issues found")
    output = done.stdout + done.stderr
    assert (done.returncode, [text for text in found if text not in output]) == (1, []), output
    assert (tmp_path / "site" / "architecture" / "index.html").is_file()


def test_every_page_is_in_the_navigation_once():
    """Zensical does not look."""
    navigation = str(tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"])
    assert sorted(re.findall(r"'([\w.-]+\.md)'", navigation)) == sorted(file.name for file in DOCS.glob("*.md"))


@each_case("file", GUIDES, ids=lambda file: file.name)
def test_link_targets_exist(file: Path):
    """Pictures and examples, too, at which Zensical does not look."""
    for target in targets(prose(file.read_text())):
        name, _, anchor = target.partition("#")
        if "://" in target:
            continue
        linked = file.parent / name if name else file
        assert linked.exists(), target
        page = linked.read_text() if anchor else ""
        assert not anchor or f'id="{anchor}"' in page or anchor in [slug(words) for _, words in headings(page)], target


def test_the_architecture_names_every_package():
    listed = spans("\n".join(row[0] for row in tables((DOCS / "architecture.md").read_text())[0]))
    found = {
        f"webhook/{entry.name}{'/' * entry.is_dir()}"
        for entry in (ROOT / "webhook").iterdir()
        if is_source(entry) and entry.name != "__pycache__"
    }
    assert set(listed) == found | {"certs/"}


def is_source(entry: Path) -> bool:
    return entry.is_dir() if entry.suffix != ".py" else not entry.name.startswith("__")


@each_case("file", GUIDES, ids=lambda file: file.name)
def test_named_files_exist(file: Path):
    page = re.sub(r"<!-- ([\w-]+): generated .*?<!-- end of \1 -->", "", file.read_text(), flags=re.DOTALL)
    texts = [*spans(prose(page)), *(block.text for block in blocks(page) if block.language in ("", "sh", "text"))]
    named = {name.partition("<")[0] for text in texts for name in PATH.findall(text)}
    assert [name for name in named if not (ROOT / name).exists() and EXAMPLE_RULE not in name.replace("-", "_")] == []


FILE = r"`([\w/]+\.py)`"
NAMED_IN_FILES = re.compile(rf"`(\w+)`(?: of the \w+)? (?:in |\()({FILE}(?:(?:, | and ){FILE})*)")
FILES_WITH_NAMES = re.compile(rf"{FILE} \(`?([A-Z_]{{2,}}|\w+(?=`))")


def test_named_symbols_are_in_the_named_files():
    """`symbol` in `file`, `symbol` (`file`) and `file` (`symbol`)."""
    page = prose((DOCS / "architecture.md").read_text())
    named = [(symbol, file) for symbol, files, *_ in NAMED_IN_FILES.findall(page) for file in re.findall(FILE, files)]
    named += [(symbol, file) for file, symbol in FILES_WITH_NAMES.findall(page)]
    assert len(named) > 7
    assert [(symbol, file) for symbol, file in named if symbol not in symbols(ROOT / file)] == []


def symbols(file: Path) -> set[str]:
    """What a file defines at any depth: functions, classes and variables."""
    nodes = list(ast.walk(ast.parse(file.read_text())))
    defined = {node.name for node in nodes if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)}
    return defined | {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def test_named_rules_exist():
    for file in PAGES:
        first = [row[0] for table in tables(file.read_text()) if table[0][0] == "rule" for row in table[1:]]
        named = {word for cell in first for word in re.findall(r"`([a-z]+(?:-[a-z]+)+)`", cell)}
        assert named <= RULES, file
    scanned = re.findall(
        r"(?:`scan`|the rules?)(?: of the manifest)?:? ((?:`[a-z-]+`(?:, | and )?)+)",
        "\n".join(map(Path.read_text, PAGES)),
    )
    named = {rule for run_ in scanned for rule in spans(run_) if "-" in rule}
    assert len(named) > 5
    assert named <= RULES | set(LedgerRule)


def test_quoted_messages_are_those_of_the_program():
    page = prose((DOCS / "troubleshooting.md").read_text())
    quoted = set(re.findall(r'"([^"\n]*(?:\n[^"\n]*)?)"', re.sub(r"`[^`]*`", "", page)))
    quoted |= {
        span.removesuffix(", …").removeprefix("vgpu-webhook: ")
        for span in spans(page)
        if re.match(r"vgpu-webhook: |fleet: ", span)
    }
    source = "\n".join(file.read_text() for file in (ROOT / "webhook").rglob("*.py"))
    assert {" ".join(text.split()) for text in quoted if text not in source} == FOREIGN_MESSAGES
    assert len(quoted) > len(FOREIGN_MESSAGES) + 3


def test_each_tool_is_compared_with_links_to_what_is_said_of_it():
    tools = (DOCS / "comparison.md").read_text().partition("\n## Which one to use\n")[0].split("\n### ")[1:]
    unproven = [
        tool.partition("\n")[0] for tool in tools if not all("](https://" in each for each in tool.split("\n- ")[1:4])
    ]
    assert unproven == ["This webhook"]
    assert len(tools) > 10


OUTAGE = """
While no replica answers, the API server refuses, outside of excluded namespaces such as kube-system, new pods that
request a device, ephemeral containers in such pods, and annotations that assign devices or change which ones a pod gets;
it admits everything else.
"""


@pytest.mark.parametrize(
    "name", ["README", "docs/install", "docs/operations", "docs/troubleshooting", "docs/comparison"]
)
def test_every_page_says_the_same_of_an_outage(name: str):
    text = " ".join((ROOT / f"{name}.md").read_text().split())
    assert " ".join(OUTAGE.split()) in text
    assert "install.md#what-happens-while-no-replica-answers" in text or name == "docs/install"


def test_every_alert_has_a_section():
    (rules,) = yaml.safe_load_all((DEPLOY / "components" / "monitoring" / "alerts.yaml").read_text())
    alerts = [rule["alert"] for group in rules["spec"]["groups"] for rule in group["rules"]]
    sections = headings((DOCS / "operations.md").read_text())
    assert [words for level, words in sections if level == 3 and words.startswith("VgpuWebhook")] == alerts


@each_case("file", PAGES, ids=lambda file: file.name)
def test_a_shown_policy_can_be_used(file: Path):
    keys = {"rules", "namespaces", "enforcement", "fleet", "repairs"}
    for block in blocks(file.read_text(), "yaml"):
        value = yaml.safe_load(block.text)
        if isinstance(value, dict) and keys & value.keys() and "cases" not in value:  # a suite has its own test
            parse_policy(value, file.name)


def test_the_shown_ci_configuration_can_be_used():
    workflow, hooks, *_ = [yaml.safe_load(block.text) for block in blocks((DOCS / "ci.md").read_text(), "yaml")]
    (action,) = [step for step in workflow["jobs"]["vgpu"]["steps"] if "with" in step]
    assert action["with"].keys() <= yaml.safe_load((ROOT / "action.yml").read_text())["inputs"].keys()
    (repository,) = hooks["repos"]
    source = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Source"]
    assert (repository["repo"], f"https://github.com/{action['uses'].partition('@')[0]}") == (source, source)
    offered = {hook["id"] for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
    assert {hook["id"] for hook in repository["hooks"]} <= offered


def test_the_shown_small_policy_is_the_sample():
    shown = [block.text for block in blocks((DOCS / "policy.md").read_text(), "yaml")]
    assert (ROOT / "webhook" / "samples" / "policy.yaml").read_text() in shown


def test_the_shown_denial_is_the_response_of_the_webhook(capsys: pytest.CaptureFixture[str]):
    text = next(
        block.text for block in blocks(README.read_text(), "text") if block.text.startswith("Error from server")
    )
    assert main(["review", "--sample", str(SAMPLES / "pod-refused.yaml")]) == 1
    printed = capsys.readouterr().out
    _, _, message = text.partition("denied the request: ")  # kubectl continues in the same line
    sentences = message.splitlines()[:-1]
    assert len(sentences) == 4
    assert all(sentence in printed for sentence in sentences)


def test_the_example_rule_works(tmp_path: Path):
    """In a copy of the project with the rule of the page, its case passes, and with another message it fails."""
    page = (DOCS / "add-a-rule.md").read_text()
    (source,) = blocks(page, "python")
    (case,) = blocks(page, "yaml")
    for part in ("webhook", "tests/data/fleets", "tests/data/config"):
        shutil.copytree(ROOT / part, tmp_path / part)
    (tmp_path / "tests/rules/cases").mkdir(parents=True)
    for file in ("tests/cases.py", "tests/rules/test_cases.py"):
        shutil.copy(ROOT / file, tmp_path / file)
    (tmp_path / "webhook/rules/validate" / f"{EXAMPLE_RULE}.py").write_text(source.text)
    registry = tmp_path / "webhook/rules/registry.py"
    alone = re.sub(r"(?s)(_VALIDATIONS = \().*?\n\)", r'\1"cores-exclusive",)', registry.read_text())
    registry.write_text(alone)  # what another rule finds in the cases, `python -m tests.rules` adds
    wrong = case.text.replace("no other container", "another container").replace("name: a part", "name: wrong, a part")
    (tmp_path / "tests/rules/cases/cores-exclusive.yaml").write_text(case.text + wrong)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "cores-exclusive", "tests/rules"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path), "PATH": str(BIN), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    output = done.stdout + done.stderr
    assert (done.returncode, "1 cases fail" in output, "in the case: wrong, a part" in output) == (1, True, True), (
        output
    )


def test_no_recipe_builds_another_project():
    """For what others release, there are links. `go build .` builds a program of this project."""
    places = [*PAGES, *(ROOT / ".github" / "workflows").glob("*.yml"), *(ROOT / "tests").rglob("*.py")]
    recipe = re.compile(r"git[ ]clone|go[ ]mod[ ]download|go (?:build|install) [^`\n]*[.]/cmd|repository:[ ]\w+-sh/")
    assert [str(file) for file in places if recipe.search(file.read_text())] == []


def test_no_page_names_a_release_before_the_first():
    released = re.findall(r"^## \[(\d[\d.]*)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    named = {
        version
        for file in GUIDES
        for version in re.findall(r"(?:volcano-vgpu-webhook@|rev: )v(\d[\d.]*)", file.read_text())
    }
    assert named <= set(released)
    assert bool(released) != ("**Nothing is released yet.**" in README.read_text())


def test_the_cells_of_tables_are_short():
    """A long cell is a paragraph that nobody finds."""
    for file in ENGLISH:
        cells = [cell for table in tables(file.read_text()) for row in table[1:] for cell in row]
        assert [cell for cell in cells if len(re.sub(r"\]\([^)]*\)", "]", cell).split()) > 25] == [], file


@pytest.mark.parametrize("page", [README, CHINESE], ids=["English", "Chinese"])
def test_a_readme_is_short(page: Path):
    assert len(page.read_text().splitlines()) <= 150


def test_the_first_link_leads_to_manifests_to_copy():
    assert targets(README.read_text())[1] == "docs/request.md"  # after that of the other language


def test_the_proof_in_one_number_is_that_of_the_table():
    (table,) = [rows for rows in tables((DOCS / "proof.md").read_text()) if "differences" in rows[0]]
    pods = sum(int(row[3].replace(",", "")) for row in table[1:])
    assert f"**{sum(int(row[-1]) for row in table[1:])} of {pods:,} random pods**" in README.read_text()
    assert f"code of {len({row[0] for row in table[1:]})} releases" in README.read_text()
