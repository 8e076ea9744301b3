"""Every command that the documentation shows works as printed, and prints the shown output."""

import ast
import re
import shlex
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import click
import pytest
import yaml

from tests.cases import each_case
from tests.deploy.files import CHART
from tests.docs import commands
from tests.docs.commands import ENGLISH, PAGES, ROOT, elsewhere, exit_code, is_curl, make_checkout, run
from tests.docs.markdown import Block, blocks, prose, spans
from tests.docs.test_generated import RENEW
from webhook.cli.main import main, program


class Shown(NamedTuple):
    page: str
    block: Block

    @property
    def name(self) -> str:
        return f"{self.page}: {self.block.text.partition(chr(10))[0]}"


ALL = [Shown(file.name, block) for file in ENGLISH for block in blocks(file.read_text())]
CONSOLE = [shown for shown in ALL if shown.block.language == "console" and not is_curl(shown.block)]
SCRIPTS = [
    shown
    for shown in ALL
    if shown.block.language == "sh"
    and not elsewhere(shown.block)
    and not shown.block.comment.startswith(commands.AS_THE_CHART)
]
MARKED = [shown for shown in ALL if elsewhere(shown.block)]


IN_PROCESS = re.compile(r"(vgpu-webhook [^|<>\\#\n]*( > \S+)?\n)+")
WRITTEN = re.compile(r"cat > (\S+) <<'(\w+)'\n(.*?)^\2\n", re.MULTILINE | re.DOTALL)

RunBlock = Callable[[str], tuple[int, str, str]]


@pytest.fixture
def run_block(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> RunBlock:
    """Runs the commands of a block; in this process if they need no shell, as a start takes longer than a command."""
    checkout = make_checkout(tmp_path)
    monkeypatch.chdir(checkout)
    for name in commands.NOT_INHERITED:
        monkeypatch.delenv(name, raising=False)

    def run_block(script: str) -> tuple[int, str, str]:
        for name, _, text in WRITTEN.findall(script):
            Path(name).write_text(text)
        script = WRITTEN.sub("", script)
        if not IN_PROCESS.fullmatch(script):
            done = run(script, checkout)
            return done.returncode, done.stdout, done.stderr
        out = ""
        for line in script.splitlines():
            command, _, file = line.partition(" > ")
            code = main(shlex.split(command)[1:])
            printed, errors = capsys.readouterr()
            if file:
                Path(file).write_text(printed)
            else:
                out += printed
            if code:
                break
        return code, out, errors

    return run_block


@pytest.mark.parametrize("shown", CONSOLE, ids=lambda shown: shown.name)
def test_a_command_prints_the_shown_output(shown: Shown, run_block: RunBlock):
    command, _, output = shown.block.text.removeprefix("$ ").partition("\n")
    code, out, errors = run_block(f"{command}\n")
    assert out == output, RENEW
    assert code == exit_code(shown.block), errors


@pytest.mark.parametrize("shown", SCRIPTS, ids=lambda shown: shown.name)
def test_a_script_works(shown: Shown, run_block: RunBlock):
    if "make " in shown.block.text:
        pytest.skip("tried below without its work")
    code, out, errors = run_block(shown.block.text)
    assert code == exit_code(shown.block), out + errors


def test_the_commands_that_the_page_of_commands_begins_with_exist():
    """They stand there without the name of the program."""
    beginning = next(
        text for text in prose((ROOT / "docs" / "cli.md").read_text()).split("\n\n") if "API server" in text
    )
    named = {span for span in spans(beginning) if not span.startswith("-")}
    assert len(named) > 3
    assert named <= set(program.list_commands(click.Context(program)))


def test_the_targets_of_make_exist():
    workflows = "\n".join(path.read_text() for path in (ROOT / ".github" / "workflows").glob("*.yml"))
    lines = re.findall(r"(?m)^(?:.* run: )?(make [\w-]+)", workflows + "\n".join(shown.block.text for shown in ALL))
    targets = {line.split()[1] for line in lines} | {
        span.split()[1] for file in PAGES for span in spans(prose(file.read_text())) if span.startswith("make ")
    }
    assert {"run", "test", "e2e", "bench"} <= targets
    for target in targets:
        assert run(f"make -n {target}", ROOT).returncode == 0, target


@each_case("shown", MARKED, ids=lambda shown: shown.name)
def test_a_command_that_needs_a_cluster_names_the_tests_that_run_it(shown: Shown):
    kind, _, named = shown.block.comment.partition(": ")
    if kind == "not run here":
        assert named
        return
    for test in named.split():
        file, _, function = test.partition("::")
        tree = ast.parse((ROOT / file).read_text())
        assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, test


def test_the_chart_has_the_values_that_helm_is_given():
    lines = [line for shown in ALL for line in shown.block.text.replace("\\\n", "").splitlines()]
    named = {
        name for line in lines if line.startswith("helm ") for name in re.findall(r"--set(?:-file)? ([\w.]+)=", line)
    }
    named |= {name for file in ENGLISH for name in re.findall(r"--set-file ([\w.]+)=", file.read_text())}
    assert {"image.repository", "policy", "enforcement"} <= named
    for name in named:
        value = yaml.safe_load((CHART / "values.yaml").read_text())
        for key in name.split("."):
            value = value[key]


def invocations(text: str) -> list[list[str]]:
    """The words of each `vgpu-webhook …` and `kubectl vgpu …` in a text, up to a pipe or redirection."""
    found = re.findall(
        r"(?:^|[|$] |bin/)(?:vgpu-webhook|kubectl vgpu) ([a-z].*)", text.replace("\\\n", ""), re.MULTILINE
    )
    return [shlex.split(re.split(r" [|>]|#|`|\)", rest)[0]) for rest in found]


def all_invocations() -> dict[str, list[str]]:
    """From commands and code spans of all pages, generated parts left out."""
    found = {}
    for file in ENGLISH:
        page = re.sub(r"<!-- ([\w-]+): generated .*?<!-- end of \1 -->", "", file.read_text(), flags=re.DOTALL)
        scripts = [block.text for block in blocks(page) if block.language == "sh"]
        scripts += [block.text.partition("\n")[0] for block in blocks(page) if block.language == "console"]
        for text in [*scripts, *spans(prose(page))]:
            for words in invocations(text):
                found[f"{file.name}: {shlex.join(words)}"] = words
    return found


INVOCATIONS = all_invocations()


@each_case("words", INVOCATIONS.values(), ids=INVOCATIONS)
def test_a_command_takes_its_options_and_arguments(words: list[str]):
    """A placeholder may have no value of its kind, and a mention may leave arguments out."""
    command, context = program, click.Context(program, **program.context_settings)
    while isinstance(command, click.Group) and words:
        name, command, words = command.resolve_command(context, words)
        context = click.Context(command, context, name, **command.context_settings)
    with suppress(click.BadParameter, click.BadOptionUsage, click.exceptions.Exit):
        command.parse_args(context, words)
