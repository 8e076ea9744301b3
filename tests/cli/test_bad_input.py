"""Bad input of each command: one line that names the problem and what to do, and exit code 2."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cases import each_case
from tests.cli.conftest import pod
from webhook.cli.main import COMMANDS
from webhook.settings.files import SAMPLES

# Words of Python, its libraries and this code, which do not help the user.
INTERNAL_WORDS = re.compile(
    r"Traceback|Errno|byte string|codec|Expecting |Input should|Value error|while parsing|while scanning|constructor|"
    r"dictionary|instance of|invalid choice|invalid \S+ value|the following arguments|unrecognized|usage:|pydantic|"
    r"yaml\.|kube-config|MalformedFraming|https?://|NoneType"
)

HELM = """\
apiVersion: v1
kind: Pod
metadata:
  name: {{ .Release.Name }}
"""
FILES = {
    "helm": HELM.encode(),
    "helm-if": b"{{- if .Values.on }}\nkind: Pod\n{{- end }}\n",
    "helm-json": b'{\n"a": {{ .Values.on }}}',
    "argo": b'a: "{{inputs.parameters.a}}"\nb: [\n',
    "binary": bytes(range(256)),
    "latin-1": "kind: Größe".encode("latin-1"),
    "utf-16": b"\xff\xfe\x00",
    "json in latin-1": b"{\xff}",
    "gzip": b"\x1f\x8b\x08\x00rest",
    "tab": b"a: b\n\tc: d\n",
    "tab at the start": b"a:\n\tc: d\n",
    "bracket": b"a: [\n",
    "quote": b'a: "b',
    "quote that the next one closes": b'a:\n  b: "x\n  c: "y"\n  d: z\n',
    "full-width colon": "spec:\n  nodeName\uff1ax\n  b: 2\n".encode(),
    "full-width comma": "a: {x: 1\uff0cy: 2}\n".encode(),
    "no-break space": "a:\u00a0\n  b: 1\n".encode(),
    "full-width text": "note: 你好\uff0c世界\n b: 2\n".encode(),
    "colon": b"a: b: c",
    "indent": b"a: 1\n  b: 2\n c: 3\n",
    "alias": b"a: *b",
    "tag": b"a: !Ref b",
    "json": b'{"a": [1,}',
    "directory": None,
}


@pytest.fixture(params=["helm", "latin-1", "bracket", "directory"])
def bad(request, tmp_path) -> Path:
    path = tmp_path / "bad"
    content = FILES[request.param]
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    return path


def error_line(result) -> str:
    """The only line on standard error."""
    assert result.code == 2
    lines = result.err.splitlines()
    assert len(lines) == 1, lines
    assert lines[0].startswith("error: ")
    assert INTERNAL_WORDS.search(lines[0]) is None, lines[0]
    return lines[0]


@pytest.mark.parametrize(
    "command",
    [
        ["review"],
        ["review", "good", "--policy"],
        ["review", "good", "--device-config"],
        ["review", "good", "--fleet"],
        ["scan"],
        ["scan", "good", "--policy"],
        ["scan", "--kubeconfig"],
        ["policy", "check"],
        ["manifests", "--policy"],
        ["manifests", "--device-config"],
        ["replay", "good", "--policy"],
        ["doctor", "--from", ".", "--policy"],
        ["doctor", "--kubeconfig"],
        ["serve", "--standalone", "--policy"],
        ["console", "--sample", "--policy"],
    ],
    ids=" ".join,
)
def test_files_that_cannot_be_read(command, bad, run, write, monkeypatch):
    monkeypatch.chdir(write("good", pod()).parent)
    line = error_line(run(*command, bad))
    assert "bad: " in line


@pytest.mark.parametrize(
    "name, message",
    [
        ("helm", "a template expression ({{ … }}) in line 4; render it first, for example with `helm template`"),
        ("helm-if", "a template expression ({{ … }}) in line 1; render it first, for example with `helm template`"),
        ("helm-json", "a template expression ({{ … }}) in line 2; render it first, for example with `helm template`"),
        ("argo", "a value is missing, or a bracket is not closed (line 3, column 1)"),
        ("binary", "it is not text (control characters, or not UTF-8); give a YAML or JSON file"),
        ("latin-1", "it is not text (control characters, or not UTF-8); give a YAML or JSON file"),
        ("utf-16", "it is not text (control characters, or not UTF-8); give a YAML or JSON file"),
        ("json in latin-1", "it is not text (control characters, or not UTF-8); give a YAML or JSON file"),
        ("gzip", "it is compressed; unpack it first"),
        ("tab", "a tab; indent with spaces (line 2, column 1)"),
        ("tab at the start", "a tab; indent with spaces (line 2, column 1)"),
        ("bracket", "a value is missing, or a bracket is not closed (line 2, column 1)"),
        ("quote", "a quote is not closed (line 1, column 4)"),
        ("quote that the next one closes", "a quote is not closed (line 2, column 6)"),
        ("full-width colon", "the character \uff1a is not YAML; write : (line 2, column 11)"),
        ("full-width comma", "the character \uff0c is not YAML; write , (line 1, column 9)"),
        ("no-break space", "a wide space is not YAML; write a space (line 1, column 3)"),
        (
            "full-width text",
            "a colon that is not allowed here; check the indentation, or put the text in quotes (line 2, column 3)",
        ),
        (
            "colon",
            "a colon that is not allowed here; check the indentation, or put the text in quotes (line 1, column 5)",
        ),
        (
            "indent",
            "a colon that is not allowed here; check the indentation, or put the text in quotes (line 2, column 4)",
        ),
        ("alias", "an alias (*) without its anchor (&) (line 1, column 4)"),
        ("tag", "a tag (!) that Kubernetes does not have; remove it (line 1, column 4)"),
        ("json", "'}' is not allowed here (line 1, column 10)"),
        (
            "directory",
            "no file in this directory ends in .yaml, .yml or .json; name a file, or add -R to read the directories below it",
        ),
    ],
)
def test_the_problem_of_a_file_is_named(name, message, run, tmp_path):
    path = tmp_path / name
    path.mkdir() if FILES[name] is None else path.write_bytes(FILES[name])
    assert error_line(run("review", path)).endswith(f": {message}")


@pytest.mark.parametrize("command", [["review"], ["policy", "check"], ["scan"]], ids=" ".join)
def test_a_file_that_may_not_be_opened(command, run, tmp_path, monkeypatch):
    original = Path.open

    def refuse(path, *args, **more):
        if path.name == "x":
            raise PermissionError(13, "Permission denied", str(path))
        return original(path, *args, **more)

    monkeypatch.setattr(Path, "open", refuse)
    assert "x: Permission denied; let this user read it" in error_line(run(*command, tmp_path / "x"))


# --- options --------------------------------------------------------------------------------------------------------


@pytest.fixture
def usage_error(run):
    """Run a command that fails with exit code 2; returns its standard error."""

    def usage_error(*arguments: str) -> str:
        result = run(*arguments)
        assert result.code == 2
        assert INTERNAL_WORDS.search(result.err) is None, result.err
        return result.err

    return usage_error


def see_help(command: str) -> str:
    return f"; see `vgpu-webhook {command} --help`\n"


PORT = "99999 is not in the range 0<=x<=65535"


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["certs"], "error: missing command" + see_help("certs")),
        (["completion"], "missing argument '{bash|zsh|fish}'; choose from bash, zsh, fish" + see_help("completion")),
        (["console", "--audit-log", "/"], "'--audit-log': File '/' is a directory" + see_help("console")),
        (["certs", "show", "--kubeconfig", "/none"], "error: /none: no credentials for the API server"),
        (
            ["why", "--sample", "job/train", "-n", "team-a"],
            "check the name and the namespace; a Job of Volcano is vcjob/NAME",
        ),
        (
            ["policy", "check", str(SAMPLES / "pod-refused.yaml")],
            "this is a manifest of kind Pod, not a policy; `vgpu-webhook review` reads manifests",
        ),
        (["revew"], "error: no such command 'revew'. (Did you mean one of: 'review', 'serve'?)\n"),
        (["policy", "chekc"], "error: no such command 'chekc'. Did you mean 'check'?\n"),
        (["review"], "error: name a file, a directory or - for standard input" + see_help("review")),
        (["review", "--explian", "x"], "error: no such option '--explian'. Did you mean '--explain'?\n"),
        (["review", "--fleet"], "error: option '--fleet' requires an argument" + see_help("review")),
        (["review", "x", "--fleet", "-"], "error: standard input cannot be read here; name a file\n"),
        (
            ["review", "x", "-o", "yml"],
            "'-o' / '--output': 'yml' is not one of 'text', 'json', 'yaml', 'patch', 'sarif', 'junit', 'github', 'html', 'csv'"
            + see_help("review"),
        ),
        (["rules", "a", "b"], "error: got unexpected extra argument (b)" + see_help("rules")),
        (["demo", "--port", "99999"], f"error: invalid value for '--port': {PORT}{see_help('demo')}"),
        (["demo", "--console-port", "99999"], f"error: invalid value for '--console-port': {PORT}{see_help('demo')}"),
        *(
            (["serve", "--drain-seconds", text], f"{text!r} is not a duration; write seconds, or amounts with a unit")
            for text in ("nan", "inf", "-5", "soon", "1h30", "")
        ),
        (["serve", "--drain", "2h"], "'2h' is not between 0s and 1h"),
    ],
)
def test_mistakes_in_a_command_line(arguments, message, usage_error):
    assert message in usage_error(*arguments)


@each_case("command", COMMANDS)
@each_case("argument", ["--no-such-option", "--port=99999999999999999999", "--policy", "\x1b[31m"])
def test_a_mistake_is_one_line_in_every_command(command, argument, usage_error, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    line = usage_error(command, argument, "--also")
    assert line.count("\n") == 1
    assert "\x1b" not in line


# --- policies -------------------------------------------------------------------------------------------------------


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


def test_all_mistakes_of_a_device_config_are_reported_at_once(run, write):
    bad = write("config.yaml", "nvidia: {defaultMemory: 1.5, overwriteEnv: maybe, knownMigGeometries: [{models: 5}]}\n")
    assert error_line(run("manifests", "--device-config", bad)).endswith(
        "config.yaml: nvidia.overwriteEnv: it must be true or false, not 'maybe'; nvidia.defaultMemory: it must be a whole "
        "number, not 1.5; nvidia.knownMigGeometries.0.models: it must be a list, not 5; Volcano would fall back to its "
        "built-in defaults"
    )


# --- streams --------------------------------------------------------------------------------------------------------

SAMPLES = "webhook/samples"
REPORTS = [  # commands that handle errors of their input files, and one that reads no file
    f"review {SAMPLES}/pod-refused.yaml",
    f"scan {SAMPLES}/pod-refused.yaml",
    f"decisions {SAMPLES}/audit.jsonl",
    f"replay {SAMPLES}/audit.jsonl",
    "rules",
    f"doctor --from {SAMPLES}/cluster",
]


@pytest.mark.parametrize("command", REPORTS)
def test_a_full_disk(command, run, monkeypatch):
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        result = run(*command.split())
    assert result.code == 2
    *_, last = result.err.splitlines()
    assert last == "error: cannot write the report: No space left on device"
    assert INTERNAL_WORDS.search(result.err) is None


@pytest.mark.parametrize("command", ["review - <&-", "rules >&-", "rules >&- 2>&-", "rules | head -c 1"])
def test_a_stream_is_closed(command):
    script = f"{sys.executable} -m webhook.cli.main {command}"
    result = subprocess.run(["bash", "-c", script], capture_output=True, check=False)
    assert INTERNAL_WORDS.search(result.stderr.decode()) is None


@pytest.mark.parametrize("name", ["kustomization.yaml", "Kustomization"])
def test_a_kustomization_is_rendered_first(name, run, write):
    write("pod.yaml", pod())
    directory = write(name, "resources: [pod.yaml]\n").parent
    found = error_line(run("review", directory))
    assert found.endswith(f"`kustomize build {directory} | vgpu-webhook review -`")
    assert run("review", "--exclude", name, directory).code == 0
