"""Findings of reviews and scans for people who do not use a terminal: one page of HTML, or a CSV table."""

import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, TextIO

from webhook.cli.ci import TOOL, Concise, GitHub, JUnit, Reported, Sarif, Writer, rule_page
from webhook.cli.complaints import Complaints
from webhook.cli.terminal import LEVEL_STYLES
from webhook.product import product_version
from webhook.texts import counted, visible

COLUMNS = (
    "namespace", "apiVersion", "kind", "name", "pods", "pod", "level", "rule", "path", "message", "file", "line", "column",
)  # fmt: skip
_FORMULA = ("=", "+", "-", "@")  # what a spreadsheet computes; control characters are escaped before


class Csv(Writer[Reported]):
    """Writes a line for each finding, and one for each object without findings."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._writer = csv.writer(stream, lineterminator="\n")
        self._writer.writerow(COLUMNS)

    def add(self, one: Reported) -> None:
        """Write the findings of one object."""
        subject = one.subject
        named = (subject.namespace, subject.api_version, subject.kind, subject.name)
        for row, each in one.findings:
            finding = (each.level, each.rule, each.path, each.message, each.file, each.line, each.column)
            self._write(*named, row.pods, row.example, *finding)
        if not any(one.findings):
            level = "skipped" if one.skipped else "fine"
            self._write(*named, "", "", level, "", "", one.skipped, one.file, "", "")

    def _write(self, *cells: Any) -> None:
        self._writer.writerow([_plain("" if cell is None else str(cell)) for cell in cells])


def _plain(text: str) -> str:
    shown = visible(text)
    return f"'{shown}" if shown.startswith(_FORMULA) else shown


_STYLE = """\
:root { color-scheme: light dark; --line: light-dark(#d9dde5, #333843); --muted: light-dark(#59606d, #9ba3b2) }
body { margin: 1.5rem auto; max-width: 80rem; padding: 0 1rem; font: 15px/1.5 system-ui, sans-serif;
  background: light-dark(#fbfbfd, #14161b); color: light-dark(#1b1f27, #e7eaf0) }
a { color: light-dark(#1f5fd6, #7aa8ff) }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; vertical-align: top; padding: .35rem .6rem; border-bottom: 1px solid var(--line);
  overflow-wrap: anywhere }
th:nth-child(-n+3) { min-width: 6rem }
small { color: var(--muted); display: block }
.deny { color: light-dark(#b3202c, #ff8b8b); font-weight: 600 }
.warn { color: light-dark(#8a5300, #f0b95c) }
.audit, .skipped { color: var(--muted) }
.fine { color: light-dark(#17703a, #6fd394) }
"""
# Nothing is loaded and no script runs, whatever the names in the page are.
_HEAD = f"""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{TOOL}: findings</title>
<style>
{_STYLE}</style>
</head>
<body>
<h1>{TOOL}: findings</h1>
"""
_TABLE = """\
<table>
<thead><tr><th scope="col">namespace</th><th scope="col">object</th><th scope="col">level</th><th scope="col">rule</th>
<th scope="col">message</th></tr></thead>
<tbody>
"""


class Html(Writer[Reported]):
    """Writes one page, which loads nothing."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._lines: list[str] = []
        self._counts: Counter[str] = Counter()

    def add(self, one: Reported) -> None:
        """Add the findings of one object."""
        subject = one.subject
        head = f"<tr><td>{_text(subject.namespace)}</td><td>{_text(subject.kind_and_name)}"
        for row, finding in one.findings:
            pods = f"<small>{counted(row.pods, 'pod')}, such as {_text(row.example)}</small>" if row.pods else ""
            line = f" line {finding.line}, column {finding.column}" if finding.line else ""
            place = " ".join(part for part in (finding.path, f"{finding.file}{line}" if finding.file else "") if part)
            page, rule = rule_page(finding.rule), _text(finding.rule)
            linked = f'<a href="{escape(page)}">{rule}</a>' if page else rule
            message = f"{_text(finding.message)}<small>{_text(place)}</small>"
            self._add(f"{head}{pods}</td>", str(finding.level), linked, message)
        if not any(one.findings):
            self._add(f"{head}</td>", "skipped" if one.skipped else "fine", "", _text(one.skipped))

    def finish(self, complaints: Complaints, notes: Sequence[str] = ()) -> None:
        levels = [level for level in (*map(str, LEVEL_STYLES), "fine", "skipped") if self._counts[level]]
        counts = ", ".join(f'<span class="{level}">{self._counts[level]} {level}</span>' for level in levels)
        sentences = [("deny", sentence) for sentence in complaints.sentences]
        sentences += [("warn", sentence) for sentence in notes]
        listed = [f'<li class="{name}">{_text(sentence)}</li>\n' for name, sentence in sentences]
        self._stream.write(f"{_HEAD}<p>{counts or 'nothing found'}</p>\n")
        self._stream.writelines(["<ul>\n", *listed, "</ul>\n"] if listed else [])
        self._stream.writelines([_TABLE, *self._lines, "</tbody>\n</table>\n"] if self._lines else [])
        self._stream.write(f"<p><small>{TOOL} {_text(product_version())}</small></p>\n</body>\n</html>\n")

    def _add(self, head: str, level: str, rule: str, message: str) -> None:
        self._counts[level] += 1
        self._lines.append(f'{head}<td class="{level}">{level}</td><td>{rule}</td><td>{message}</td></tr>\n')


def _text(text: str) -> str:
    return escape(visible(text))


WRITERS: Mapping[str, type[Writer[Reported]]] = {
    "concise": Concise,
    "sarif": Sarif,
    "junit": JUnit,
    "github": GitHub,
    "html": Html,
    "csv": Csv,
}
