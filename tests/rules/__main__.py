"""Writes `also` into the cases: which other rules have findings. `python -m tests.rules`; read the difference.

And the outcome of what people published (`answer` in tests/data/field).
"""

import json
import re
import shlex
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO

import yaml

from tests.field import FIELD, MANIFESTS, header, worst
from tests.rules.test_cases import ALL, CASES, also_found
from webhook.cli.main import main
from webhook.inputs.positions import SourceText
from webhook.inputs.rewriting import REMOVED, _Editor  # not `rewritten`, as cases hold what no manifest may

for rule, cases in ALL.items():
    file = CASES / f"{rule}.yaml"
    editor = _Editor(SourceText(file.read_bytes()))
    for index, case in enumerate(cases):
        try:
            others = also_found(rule, case) if "finds" in case else []
        except Exception as error:
            error.add_note(f"in the case {case['name']!r} of {file}")
            raise
        if others != sorted(case.get("also", [])):
            editor.edit(editor.find(1, (str(index),)), case, {"also": others or REMOVED})
            case["also"] = others
    text = editor.written().decode()
    for case, written in zip(cases, yaml.safe_load(text), strict=True):
        assert sorted(written.get("also", [])) == sorted(case.get("also", [])), f"{file}: {case['name']}"
    file.write_text(text)

with chdir(FIELD):
    for path in MANIFESTS:
        text = path.read_text()
        with redirect_stdout(StringIO()) as printed, redirect_stderr(StringIO()):
            main(["review", "-o", "json", *shlex.split(header(text)["args"]), path.name])
        if answers := [json.loads(line) for line in printed.getvalue().splitlines()]:
            path.write_text(re.sub(r"(?m)^# answer: *[\w-]*", f"# answer: {worst(answers)}", text, count=1))
