"""The README is true: its commands run, what it prints is what they print, and its tables are what the code says."""

import re
import shlex
import shutil
import subprocess
import sys
import unicodedata
from functools import cache
from pathlib import Path

import pytest
import yaml

from tests.readme.pages import blocks, headings, pictures, prose, slug, spans, tables, targets
from tests.readme.tables import made, shown
from webhook.policy.policy import parse_policy
from webhook.rules.registry import DEFAULT_LEVELS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BIN = Path(sys.executable).parent

# What a character of a picture joins: up, right, down, left.
JOINS = {"│": "ud", "─": "lr", "┌": "rd", "┐": "ld", "└": "ur", "┘": "ul", "├": "urd", "┤": "uld", "┬": "lrd"}
JOINS |= {"┴": "ulr", "┼": "urdl", "▼": "u", "▶": "l"}


def run(command):
    program, *arguments = shlex.split(command)
    found = BIN / program
    command = [str(found) if found.exists() else program, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


run_once = cache(run)


# What asks a running console is tried in tests/readme/test_console.py.
SHOWN = [block for block in blocks(README, "console") if not block.text.startswith("$ curl ")]


@pytest.mark.parametrize("block", SHOWN, ids=lambda block: block.text.partition("\n")[0])
def test_a_shown_command_prints_what_is_shown(block):
    command, _, printed = block.text.removeprefix("$ ").partition("\n")
    assert run(command).stdout == printed


def test_the_shown_refusal_is_what_the_webhook_says():
    text = next(block.text for block in blocks(README, "text") if block.text.startswith("Error from server"))
    printed = run("vgpu-webhook demo --once --port 0").stdout
    _, _, message = text.partition("denied the request: ")  # kubectl goes on in the same line
    sentences = message.splitlines()[:-1]
    assert len(sentences) == 4
    assert all(sentence in printed for sentence in sentences)


def test_the_shown_commands_of_make_are_targets():
    lines = [line for block in blocks(README) for line in block.text.splitlines() if line.startswith("make ")]
    assert len(lines) >= 6
    for line in lines:
        target = line.split()[1]
        assert run(f"make -n {target}").returncode == 0, target


def commands(page):
    """The project's own commands in blocks and code spans, each with its words up to a pipe."""
    texts = [line for block in blocks(page) for line in block.text.splitlines()] + list(spans(prose(page)))
    for text in texts:
        for program in ("vgpu-webhook", "python -m certs"):
            for found in re.findall(rf"(?:^|[|$-] ){program} [a-z].*", text):
                yield program, shlex.split(re.split(r" [|>] |#", found.lstrip("|$- "))[0])[len(program.split()) :]


COMMANDS = {f"{program} {shlex.join(words)}": (program, words) for program, words in commands(README)}


@pytest.mark.parametrize("program,words", COMMANDS.values(), ids=COMMANDS)
def test_the_options_of_shown_commands_exist(program, words):
    command, *rest = words
    nested = rest[:1] if command in ("policy", "certs") else []
    ran = run_once(shlex.join([*program.split(), command, *nested, "--help"]))
    assert ran.returncode == 0, ran.stderr
    options = [word.partition("=")[0] for word in rest if re.match(r"--?[a-zA-Z]", word)]
    assert [option for option in options if not re.search(rf"(?<!\S){option}\b", ran.stdout)] == []


@pytest.mark.parametrize("name", made())
def test_the_tables_are_what_the_code_says(name):
    assert shown(README)[name] == made()[name], "renew it by `python -m tests.readme`"


def test_the_rules_that_it_names_exist():
    first = [row[0].strip("`") for table in tables(README) if table[0][0] == "rule" for row in table[1:]]
    named = [word for cell in first for word in re.findall(r"[a-z]+(?:-[a-z]+)+", cell)]
    assert named
    assert set(named) <= set(DEFAULT_LEVELS)


def test_the_checks_of_doctor_that_it_names_exist():
    printed = run("vgpu-webhook doctor --from webhook/samples/cluster").stdout
    known = set(re.findall(r"^\S+ +([a-z-]+) ", printed, re.MULTILINE))
    told = re.findall(r"doctor`: ((?:`[a-z-]+`(?:, )?)+)", README)
    named = {check for cell in told for check in spans(cell)}
    assert len(named) > 10
    assert named <= known


def test_the_shown_policy_is_the_sample():
    policy = next(block.text for block in blocks(README, "yaml") if "namespaces:" in block.text)
    assert policy == (ROOT / "webhook/samples/policy.yaml").read_text()
    parse_policy(yaml.safe_load(policy), "README")


def test_the_rule_to_add_finds_what_its_case_says(tmp_path):
    """Added to a copy of the project, as the text says: its case passes, and fails where the sentence is another."""
    (source,) = blocks(README, "python")
    case = next(block.text for block in blocks(README, "yaml") if "finds:" in block.text)
    for part in ("webhook", "tests/rules", "tests/data/fleets", "tests/data/config"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "webhook/rules/validate/cores_exclusive.py").write_text(source.text)
    registry = tmp_path / "webhook/rules/registry.py"
    text = registry.read_text().replace("    cores_range,\n", "    cores_exclusive,\n    cores_range,\n", 1)
    registry.write_text(
        text.replace("    cores_range.RULE,\n", "    cores_range.RULE,\n    cores_exclusive.RULE,\n", 1)
    )
    for written, code in ((case, 0), (case.replace("nobody else", "somebody"), 1)):
        (tmp_path / "tests/rules/cases/cores-exclusive.yaml").write_text(written)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/rules/test_cases.py"]
        ran = subprocess.run(
            [*command, "-k", "cores-exclusive"],
            cwd=tmp_path,
            env={"PYTHONPATH": str(tmp_path), "PATH": str(BIN)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (ran.returncode, "1 passed" in ran.stdout) == (code, code == 0), ran.stdout + ran.stderr


def test_contents_and_links_lead_somewhere():
    levels = [(level, f"#{slug(words)}") for level, words in headings(README)[1:]]
    contents = README.partition("**Contents**\n\n")[2].partition("\n\n")[0]
    assert targets(contents) == [anchor for _, anchor in levels]
    assert re.findall(r"^- \[.*?\]\((.*?)\)", contents, re.MULTILINE) == [
        anchor for level, anchor in levels if level == 2
    ]
    for target in targets(README):
        if target.startswith("#"):
            assert target in [anchor for _, anchor in levels]
        elif "://" not in target:
            assert (ROOT / target).is_file(), target


def test_the_files_that_it_names_exist():
    named = {span.partition(" ")[0] for span in spans(prose(README))}
    paths = [name for name in named if re.match(r"(webhook|tests|deploy|certs)/[\w./-]+$", name)]
    assert len(paths) > 20
    assert [
        path for path in paths if not (ROOT / path).exists() and "cores_exclusive" not in path.replace("-", "_")
    ] == []


def columns(line):
    """The characters of a line by the column in which they stand: wide ones take two."""
    at, found = 0, {}
    for character in line:
        found[at] = character
        at += 2 if unicodedata.east_asian_width(character) in "WF" else 1
    return found


def loose_ends(picture):
    """Lines of a picture that lead nowhere: each way that a character joins, its neighbour has to join back."""
    grid = [columns(line) for line in picture.splitlines()]
    for row, line in enumerate(grid):
        for column, character in line.items():
            ways = JOINS.get(character, "")
            above = grid[row - 1].get(column, "") if row else ""
            below = grid[row + 1].get(column, "") if row + 1 < len(grid) else ""
            if "u" in ways and "d" not in JOINS.get(above, ""):
                yield row, column, character
            if "d" in ways and "u" not in JOINS.get(below, ""):
                yield row, column, character


@pytest.mark.parametrize("picture", pictures(README))
def test_the_lines_of_a_picture_meet(picture):
    ends = list(loose_ends(picture))
    assert [end for end in ends if not starts_below_words(picture, end)] == []
    assert list(loose_ends(picture.replace("  ▼", " ▼")))


def starts_below_words(picture, end):
    """A line begins below the words that it leads away from."""
    row, column, _ = end
    above = columns(picture.splitlines()[row - 1]) if row else {}
    return above.get(column, " ") not in (" ", *JOINS)
