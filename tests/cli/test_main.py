"""What all commands share: names, imports, exit codes, completion."""

import os
import re
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import click
import pytest

from tests.cases import each_case
from tests.cli.conftest import python
from tests.cli.rows import rows
from tests.server.program import COMMAND as COMMAND_FILE
from tests.server.program import until
from webhook.cli.completion import kubectl_complete
from webhook.cli.main import COMMANDS, COMPLETION_VARIABLE, MODULES, program
from webhook.cli.program import ExitCode

test_command = rows(__file__)

ROOT = Path(__file__).parents[2]
COMMAND = next(iter(COMMANDS))
SERVERS_AND_CLIENTS = {"flask", "gunicorn", "kubernetes", "sqlalchemy", "sqlite3", "urllib3"}
# Modules that import slowly and that only some commands need.
HEAVY = SERVERS_AND_CLIENTS | {"asyncio", "cryptography", "jsonpatch", "pydantic", "yaml"}
ALWAYS_HEAVY = {"certs", "serve", "console"}  # the commands that always need a server or the client of the API server


@pytest.mark.parametrize("argv", [["--version"], ["--help"], ["revew"]], ids=" ".join)
def test_short_commands_import_little(argv: list[str]):
    code = (
        "import sys; from webhook.cli.main import main; main(sys.argv[1:]); "
        f"print(sorted({HEAVY!r} & sys.modules.keys()), sorted(m for m in sys.modules if m.startswith('webhook.cli.')))"
    )
    heavy, loaded = python(code, *argv).stdout.splitlines()[-1].split("] [")
    assert (heavy, loaded) == ("[", "'webhook.cli.main', 'webhook.cli.program']")


def test_commands_that_read_files_import_no_server_database_or_kubernetes_client():
    code = (
        "import sys; from importlib import import_module; "
        "loaded = [import_module(name) for name in sys.argv[1:]]; "
        f"print(len(loaded), sorted({SERVERS_AND_CLIENTS!r} & sys.modules.keys()))"
    )
    commands = sorted(MODULES[name] for name in COMMANDS.keys() - ALWAYS_HEAVY)
    assert python(code, *commands).stdout == f"{len(commands)} []\n"


def test_certs_imports_nothing_that_reviews_pods():
    code = "import sys, webhook.cli.certs; print({'webhook.rules', 'webhook.settings'} & sys.modules.keys())"
    assert python(code).stdout == "set()\n"


@pytest.mark.parametrize("word", ["--version", "version"])
def test_the_version(word: str, run):
    assert run(word).out == f"vgpu-webhook {version('volcano-vgpu-webhook')}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str, run):
    result = run(name, "--help")
    assert result.code == 0
    assert result.out.startswith(f"Usage: vgpu-webhook {name} ")
    command = import_module(MODULES[name]).command
    for each in (command, *getattr(command, "commands", {}).values()):
        assert each.help
        assert all(option.help for option in each.params if isinstance(option, click.Option)), each.name
        assert not re.search(r"(?m)^\d  ", each.epilog or ""), "exit codes are indented"


@pytest.mark.parametrize(
    "argv, own, shared",
    [
        (["scan"], "--findings-only", ["Files", "Output", "Settings from files", "Cluster"]),
        (["decisions"], "--summary", ["Files", "Filters", "Output"]),
        (["certs", "ensure"], "--rotate-ca", ["Cluster"]),
        (["version"], "--help", []),
    ],
    ids=" ".join,
)
def test_help_has_the_options_of_the_command_first(argv: list[str], own: str, shared: list[str], run):
    out = run(*argv, "--help").out
    assert re.findall(r"(?m)^(\S.*):$", out.partition("exit codes")[0]) == ["Options", *shared]
    first = out.partition("Options:\n")[2].partition("\n\n")[0]
    assert own in first
    assert "--output" not in first


def test_help_lists_every_command(run):
    out = run("--help").out
    assert all(f"\n  {name} " in out for name in COMMANDS)


@pytest.mark.parametrize(
    "path, program_name", [("/usr/bin/kubectl-vgpu", "kubectl vgpu"), ("/usr/bin/vgpu-webhook", "vgpu-webhook")]
)
def test_usage_names_the_program_that_was_called(path: str, program_name: str, run, monkeypatch):
    monkeypatch.setattr(sys, "argv", [path])
    assert run(COMMAND, "--help").out.startswith(f"Usage: {program_name} {COMMAND} ")
    assert run(COMMAND, "--nope").err == f"error: no such option '--nope'; see `{program_name} {COMMAND} --help`\n"


def test_kubectl_finds_the_program():
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts["kubectl-vgpu"] == scripts["vgpu-webhook"] == "webhook.cli.main:main"


def test_python_m_webhook():
    result = subprocess.run(
        [sys.executable, "-m", "webhook", COMMAND, "-h"], capture_output=True, text=True, check=True
    )
    assert result.stdout.startswith(f"Usage: python -m webhook {COMMAND} ")


def test_ctrl_c(monkeypatch, run):
    def interrupted(_context: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(program, "invoke", interrupted)
    assert run(COMMAND).code == ExitCode.INTERRUPTED == 128 + signal.SIGINT


@each_case(
    ("words", "offered"), [("", list(COMMANDS)), ("certs ", ["ensure", "bind", "show"]), ("manifests -o j", ["json"])]
)
def test_tab_offers_commands_options_and_values(words: str, offered: list[str], run, monkeypatch):
    monkeypatch.setenv(COMPLETION_VARIABLE, "bash_complete")
    monkeypatch.setenv("COMP_WORDS", f"vgpu-webhook {words}")
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" "))))
    result = run()
    assert (result.code, result.err) == (0, "")
    assert [line.partition(",")[2] for line in result.out.splitlines()] == offered


def test_an_exit_code_means_one_thing():
    assert len(ExitCode) == len(ExitCode.__members__)


def commands(group: click.Group) -> Iterator[click.Command]:
    context = click.Context(group)
    for name in group.list_commands(context):
        _, command, _ = group.resolve_command(context, [name])
        assert command is not None
        yield from commands(command) if isinstance(command, click.Group) else [command]


def test_a_short_option_means_one_thing():
    """-h, -o, -f and the like are the same option in each command; -A and -n go together where both are."""
    meanings: dict[str, set[str]] = {}
    for command in commands(program):
        for option in (each for each in command.params if isinstance(each, click.Option)):
            long = next((name for name in option.opts if name.startswith("--")), "")
            for short in (name for name in option.opts if not name.startswith("--")):
                meanings.setdefault(short, set()).add(long)
    assert {short: names for short, names in meanings.items() if len(names) > 1} == {}
    assert meanings.get("-f", set()) <= {"--filename"}
    assert meanings.get("-n", set()) <= {"--namespace"}
    own = {c.name for c in commands(program) for o in c.params if "--webhook-namespace" in o.opts and "-n" in o.opts}
    assert own == set(), "-n names the namespace of pods"


def test_sigterm_ends_the_first_process_of_a_container():
    """The kernel ignores it there unless there is a handler, and gunicorn installs one only when it has started."""
    namespace = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child"]
    if subprocess.run([*namespace, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this system makes no PID namespaces")
    container = subprocess.Popen([*namespace, COMMAND_FILE, "decisions", "-"], stdin=subprocess.PIPE)
    children = Path(f"/proc/{container.pid}/task/{container.pid}/children")
    first = int(until(children.read_text))
    handled = r"SigCgt:\t\w*[4-7c-f]\w{3}\n"  # bit 14: SIGTERM
    until(lambda: re.search(handled, Path(f"/proc/{first}/status").read_text()))
    os.kill(first, signal.SIGTERM)
    assert container.wait() == ExitCode.TERMINATED
    container.stdin.close()


@pytest.mark.parametrize(
    "arguments, completions, directive",
    [(["vers"], ["version"], ":4"), (["certs", "sh"], ["show"], ":4"), (["manifests", "--policy", ""], [], ":0")],
)
def test_kubectl_completes_the_plugin(arguments, completions, directive, capsys):
    assert kubectl_complete(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition("\t")[0] for line in lines] == [*completions, directive]
    assert all("\t" in line for line in lines[:-1]), "each completion has its help"


def test_bash_accepts_the_script(run, tmp_path: Path):
    script = tmp_path / "script"
    script.write_text(run("completion", "bash").out)
    result = subprocess.run(
        ["bash", "-c", f"source {script}; complete -p vgpu-webhook"], capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.rstrip().endswith(" vgpu-webhook")
