"""Rows of commands, in commands.yaml beside a test: what is given, what is run, and what is expected.

words     at the top: `$NAME` of a command line, for words that many rows have
files     by name, at the top for all rows: a text as it is, a list as documents, of YAML if the name says so, else of JSON
only      the rules of the policy that `$only` names, also ID=LEVEL; at the top for all rows
case      a name; without one, the command line is it
run       the command line; files are named without a directory
stdin     what standard input has
code      0 unless it is there
out, err  texts in it, whatever the white space; nothing is on standard error unless `err` is there, which may be null
lacks     texts in neither
prints    all of standard output
count     how many lines that has
holds     by name, what files then have
error     of a mistake: a text in the line on standard error; the code is 2
lines     of each line of JSON: see `has`
yaml      of each document of YAML: likewise
cluster   by path, the objects of an API server, which `$cluster` names; also at the top
refuses   by path, the status of its responses
then      more runs, in the same directory; `files` of one are written before it
mistakes  at the top: command lines that end with 2, each with a text in the only line on standard error
"""

import json
import re
import shlex
from collections.abc import Iterable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from string import Template
from typing import Any

import pytest
import yaml

from tests.cli.conftest import CONFIG, DATA, FLEETS, only_rules, pod, vgpus
from tests.cluster.apiserver import ApiServer
from tests.cluster.faults import status
from webhook.settings.sources import SAMPLES

# Words of Python, its libraries and this code, which do not help the user.
INTERNAL_WORDS = re.compile(
    r"Traceback|Errno|byte string|codec|Expecting |Input should|Value error|while parsing|while scanning|constructor|"
    r"dictionary|instance of|invalid choice|invalid \S+ value|the following arguments|unrecognized|usage:|pydantic|"
    r"yaml\.|kube-config|MalformedFraming|https?://|NoneType"
)
KEYS = {key for keys in re.findall(r"(?m)^(\w+(?:, \w+)*) ", __doc__ or "") for key in keys.split(", ")}  # of a row
PLACES = {"DATA": DATA, "FLEETS": FLEETS, "CONFIG": CONFIG, "SAMPLES": SAMPLES}


class Loader(yaml.SafeLoader):
    """YAML with `!pod`, its `!spec` and `!template`, of which `vgpus` are number, memory and cores; and `!list`."""


def _pod(loader: Loader, node: yaml.Node) -> dict[str, Any]:
    fields = loader.construct_mapping(node, deep=True)
    if "vgpus" in fields:
        fields["limits"] = vgpus(*map(int, str(fields.pop("vgpus")).split()))
    return pod(**fields)


def _list(loader: Loader, node: yaml.Node) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": loader.construct_sequence(node, deep=True)}


Loader.add_constructor("!pod", _pod)
Loader.add_constructor("!spec", lambda loader, node: _pod(loader, node)["spec"])
Loader.add_constructor("!template", lambda loader, node: {"metadata": {}, "spec": _pod(loader, node)["spec"]})
Loader.add_constructor("!list", _list)


def table_of(module: str) -> dict[str, Any]:
    return yaml.load(Path(module).with_name("commands.yaml").read_text(), Loader)


def rows(module: str, **files: str) -> Any:
    """The test of the rows beside a module, which find these files, too."""
    table = table_of(module)
    mistakes = [{"run": line, "error": text} for line, text in table.get("mistakes", {}).items()]
    listed = [*table.get("cases", []), *mistakes]

    @pytest.mark.parametrize("case", listed, ids=lambda case: case.get("case") or case["run"])
    def test_command(
        case: dict[str, Any], run: Any, write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        write("only.yaml", only_rules(*case.get("only", table.get("only", "")).split()))
        usual = {"files": files | table.get("files", {}), "cluster": table.get("cluster", {})}
        with ApiServer() if "cluster" in case else nullcontext() as api:
            for step in (usual, case, *case.get("then", [])):
                assert step.keys() <= KEYS, step.keys() - KEYS
                for name, content in step.get("files", {}).items():
                    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
                    write(name, written(content, name))
                if api is not None:
                    prepare(api, step)
                    api.kubeconfig(tmp_path / "kubeconfig", "team")
                if "run" in step:
                    stdin = {"stdin": written(step["stdin"], "").encode()} if "stdin" in step else {}
                    check(run(*words(step["run"], table.get("words", {})), **stdin), step)

    return test_command


def prepare(api: ApiServer, step: dict[str, Any]) -> None:
    for path, objects in (step.get("cluster") or {}).items():
        file = Template(objects).safe_substitute(PLACES) if isinstance(objects, str) else ""
        api.put(path, *(yaml.safe_load(Path(file).read_text())["items"] if file else objects))
    for path, code in step.get("refuses", {}).items():
        api.fail(path, status(code))


def written(content: Any, name: str) -> str:
    """The text of a file: YAML if its name says so, else JSON."""
    dump = partial(yaml.safe_dump, sort_keys=False) if name.endswith(".yaml") else json.dumps
    documents = content if isinstance(content, list) else [content]
    return "\n---\n".join([each if isinstance(each, str) else dump(each) for each in documents])


def words(line: str, macros: dict[str, str]) -> Iterable[str]:
    texts = {**macros, "only": "--policy only.yaml", "cluster": "--kubeconfig kubeconfig"}
    for word in shlex.split(line):
        if word[:1] == "$" and word[1:] in texts:
            yield from words(texts[word[1:]], macros)
        else:
            yield Template(word).safe_substitute(PLACES)


def check(result: Any, expected: dict[str, Any]) -> None:
    printed = f"{expected['run']}: {result.code}\n{result.out}\n{result.err}"
    assert result.code == expected.get("code", 2 * ("error" in expected)), printed
    if "error" in expected:
        assert (result.err.count("\n"), result.err[:7]) == (1, "error: "), printed
        assert expected["error"] in result.err, printed
        addresses = "://" in expected["run"] or "$cluster" in expected["run"]  # which the message may have
        assert addresses or INTERNAL_WORDS.search(result.err) is None, printed
    elif "err" not in expected:
        assert result.err == "", printed
    for name, text in (("out", result.out), ("err", result.err)):
        assert [each for each in texts_of(expected.get(name)) if flat(each) not in flat(text)] == [], printed
    for text in (result.out + result.err, flat(result.out), flat(result.err)):
        assert [each for each in texts_of(expected.get("lacks")) if each in text] == [], printed
    if "prints" in expected:
        assert "".join(f"{line.rstrip()}\n" for line in result.out.splitlines()) == expected["prints"]
    for name, text in expected.get("holds", {}).items():
        assert Path(name).read_text() == text
    if "count" in expected:
        assert result.out.count("\n") == expected["count"], printed
    if "lines" in expected:
        assert has(result.lines, expected["lines"]), printed
    if "yaml" in expected:
        assert has([each for each in yaml.safe_load_all(result.out) if each], expected["yaml"]), printed


def texts_of(value: Any) -> list[str]:
    return value if isinstance(value, list) else [] if value is None else [value]


def flat(text: str) -> str:
    return " ".join(text.split())


def has(found: Any, expected: Any) -> bool:
    """Whether a value has what is expected: the keys of an object, each item of a list.

    Of a text `~ ` is a part, `^ ` its beginning. A list that begins with `...` has each of the others somewhere. A key may be
    `absent`.
    """
    if isinstance(expected, dict):
        return isinstance(found, dict) and all(has(found.get(key, "absent"), each) for key, each in expected.items())
    if isinstance(expected, list) and expected[:1] == ["..."]:
        return all(any(has(one, each) for one in found) for each in expected[1:])
    if isinstance(expected, list):
        return isinstance(found, list) and len(found) == len(expected) and all(map(has, found, expected))
    if isinstance(expected, str) and expected[:2] in ("~ ", "^ "):
        at = str(found).find(expected[2:])
        return at == 0 if expected[0] == "^" else at >= 0
    return bool(found == expected)
