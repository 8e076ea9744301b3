"""Writes `also` into the cases: which other rules have findings. `python -m tests.rules`; read the difference."""

import yaml

from tests.rules.test_cases import ALL, CASES, also_found
from webhook.inputs.positions import SourceText
from webhook.inputs.rewriting import REMOVED, _Editor  # not `rewritten`, as cases hold what no manifest may

for rule, cases in ALL.items():
    file = CASES / f"{rule}.yaml"
    editor = _Editor(SourceText(file.read_bytes()))
    for index, case in enumerate(cases):
        others = also_found(rule, case) if "finds" in case else []
        if others != sorted(case.get("also", [])):
            editor.edit(editor.find(1, (str(index),)), case, {"also": others or REMOVED})
            case["also"] = others
    text = editor.written().decode()
    for case, written in zip(cases, yaml.safe_load(text), strict=True):
        assert sorted(written.get("also", [])) == sorted(case.get("also", [])), f"{file}: {case['name']}"
    file.write_text(text)
