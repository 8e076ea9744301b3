"""Findings of reviews and scans as CI systems and editors read them: SARIF, JUnit XML, GitHub's workflow commands, lines."""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from typing import Any, Generic, TextIO, TypeVar
from urllib.parse import quote
from xml.etree import ElementTree as ET

from webhook.audit.decision import soften
from webhook.cli.complaints import Complaints
from webhook.document_review import LocatedFinding, Reviewed, locate
from webhook.lenient import text
from webhook.outcome import Violation
from webhook.output.json import to_json
from webhook.pod.owners import Subject
from webhook.product import documentation, product_version
from webhook.rules.choices import Enforcement, Level
from webhook.suites.rulebook import ENGINE_FINDINGS, EngineFinding, RuleEntry, rows
from webhook.texts import counted, visible

SARIF_VERSION = "2.1.0"
SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
TOOL = "vgpu-webhook"

_SARIF_LEVELS = {Level.DENY: "error", Level.WARN: "warning", Level.AUDIT: "note"}
_GITHUB_COMMANDS = {Level.DENY: "error", Level.WARN: "warning", Level.AUDIT: "notice"}
_GITHUB_TEXT = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_GITHUB_VALUE = _GITHUB_TEXT | {":": "%3A", ",": "%2C"}


Item = TypeVar("Item")


@dataclass(slots=True)
class ScanRow:
    """A finding of a workload, of its pods, or of a pod of its own.

    Attributes:
        subject: the workload or pod.
        finding: None if it requests devices and there is nothing to report.
        pods: how many of the workload's pods have it; 0 if it is the subject itself.
        example: the name of one of them.
        file: that has it, or one of them; empty if it is of a cluster.
    """

    subject: Subject
    finding: LocatedFinding | None
    pods: int = 0
    example: str = ""
    file: str = ""


@dataclass(frozen=True, slots=True)
class Reported:
    """An object, and what was found of it or of its pods.

    Attributes:
        subject: the object.
        rows: the findings; none if all is well.
        file: that has it; empty if it is of a cluster.
        place: the file, and where in it.
        skipped: why it was not reviewed; empty if it was.
    """

    subject: Subject
    rows: Sequence[ScanRow]
    file: str = ""
    place: str = ""
    skipped: str = ""

    @property
    def name(self) -> str:
        """What names it for people: namespace, kind and name."""
        return "/".join([part for part in (self.subject.namespace, self.subject.kind, self.subject.name) if part])

    @property
    def findings(self) -> Iterator[tuple[ScanRow, LocatedFinding]]:
        """Each finding, with how many pods have it."""
        return ((row, row.finding) for row in self.rows if row.finding is not None)


def reported(reviewed: Reviewed) -> Reported:
    """A review as reports have it."""
    request, document = reviewed.request, reviewed.document
    version = text(document.value, "apiVersion")
    subject = Subject(request.namespace, version, request.kind, reviewed.name, "")
    rows = [ScanRow(subject, finding, file=document.file) for finding in located_findings(reviewed)]
    return Reported(subject, rows, document.file, reviewed.place, reviewed.not_reviewed)


def scanned(rows: Iterable[ScanRow]) -> Iterator[Reported]:
    """The rows of a scan, in their order, by object."""
    for subject, group in groupby(rows, lambda row: row.subject):
        same = list(group)
        yield Reported(subject, same, same[0].file, same[0].file or subject.namespace)


class Writer(ABC, Generic[Item]):
    """Writes what was found in one format."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    @abstractmethod
    def add(self, one: Item, /) -> None:
        """Write or keep what was found of one object."""

    def finish(self, complaints: Complaints, notes: Sequence[str] = ()) -> None:
        """End, with what could not be read; a format without a place for that leaves it to standard error.

        Args:
            complaints: what could not be read.
            notes: what was not reviewed or not checked.
        """


def rule_page(rule: str) -> str:
    """The address of what explains a finding; empty if it is not known."""
    return documentation(f"rules.md#{rule}" if rule in known_rules() else "usage.md#what-is-wrong-with-assignments")


@cache
def known_rules() -> dict[str, RuleEntry | EngineFinding]:
    """The rules, and the findings of the engine, by id."""
    known: list[RuleEntry | EngineFinding] = [*rows(), *ENGINE_FINDINGS]
    return {entry.id: entry for entry in known}


def located_findings(reviewed: Reviewed) -> Iterator[LocatedFinding]:
    """The findings of an object at the levels at which they take effect, then the warnings of its repairs.

    What refuses the object, or its pods, is `deny`.
    """
    outcome, document = reviewed.outcome, reviewed.document
    for violation in soften(outcome.violations, outcome.enforcement):
        level = Level.DENY if violation.rule in outcome.never_runs else violation.level
        yield locate(document, replace(violation, level=level))
    if outcome.enforcement is not Enforcement.AUDIT:
        for rule, sentence in outcome.notices:
            yield locate(document, Violation(rule, Level.WARN, "", sentence))


class Sarif(Writer[Reported]):
    """Writes all findings as one SARIF 2.1.0 log."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._rules: dict[str, int] = {}
        self._results: list[dict[str, Any]] = []

    def add(self, one: Reported) -> None:
        """Add the findings of one object."""
        for row, finding in one.findings:
            pods = {"properties": {"pods": row.pods, "pod": row.example}} if row.pods else {}
            self._results.append(
                {
                    "ruleId": finding.rule,
                    "ruleIndex": self._rules.setdefault(finding.rule, len(self._rules)),
                    "level": _SARIF_LEVELS[finding.level],
                    "message": {"text": finding.message},
                    "locations": [_sarif_location(one, finding)],
                }
                | pods
            )

    def finish(self, complaints: Complaints, notes: Sequence[str] = ()) -> None:
        notifications = [
            {"level": level, "message": {"text": sentence}}
            for level, sentences in (("error", complaints.sentences), ("note", notes))
            for sentence in sentences
        ]
        rules = [_sarif_rule(rule) for rule in self._rules]
        run = {
            "tool": {"driver": {"name": TOOL, "version": product_version(), "rules": rules}},
            "invocations": [{"executionSuccessful": not complaints.count, "toolExecutionNotifications": notifications}],
            "columnKind": "unicodeCodePoints",
            "results": self._results,
        }
        print(to_json({"$schema": SARIF_SCHEMA, "version": SARIF_VERSION, "runs": [run]}), file=self._stream)


def _sarif_rule(rule: str) -> dict[str, Any]:
    entry, page = known_rules().get(rule), rule_page(rule)
    descriptor: dict[str, Any] = {"id": rule}
    if entry:
        descriptor |= {"shortDescription": {"text": entry.what}, "fullDescription": {"text": entry.why}}
        descriptor["help"] = {"text": f"{entry.what}. Why: {entry.why}. `vgpu-webhook rules {rule}` shows an example."}
    return descriptor | ({"helpUri": page} if page else {})


def _sarif_location(one: Reported, finding: LocatedFinding) -> dict[str, Any]:
    logical = {"name": one.name, "kind": "resource"}
    if finding.path:
        logical["fullyQualifiedName"] = f"{one.name}/{finding.path}"
    location: dict[str, Any] = {"logicalLocations": [logical]}
    if finding.file:
        location["physicalLocation"] = {"artifactLocation": {"uri": quote(os.fsencode(finding.file))}}
    if finding.line:
        location["physicalLocation"]["region"] = {"startLine": finding.line, "startColumn": finding.column}
    return location


class JUnitSuites(Writer[Item]):
    """Writes test cases, in a suite for each file."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._suites: dict[str, ET.Element] = {}

    def case(self, file: str, place: str, name: str) -> ET.Element:
        """Add a test case to the suite of a file."""
        return ET.SubElement(self._suite(file), "testcase", classname=visible(place), name=visible(name))

    def finish(self, complaints: Complaints, notes: Sequence[str] = ()) -> None:
        """Write the test suites."""
        for kind, sentences in (("error", complaints.sentences), ("skipped", notes)):
            for sentence in sentences:
                ET.SubElement(self.case(TOOL, TOOL, sentence), kind, message=visible(sentence))
        root = ET.Element("testsuites", name=TOOL)
        root.extend(self._suites.values())
        for suite in self._suites.values():
            suite.set("tests", str(len(suite)))
            for name, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
                suite.set(name, str(sum(case.find(kind) is not None for case in suite)))
        ET.indent(root)
        print(f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}', file=self._stream)

    def _suite(self, file: str) -> ET.Element:
        return self._suites.setdefault(file, ET.Element("testsuite", name=visible(file)))


class JUnit(JUnitSuites[Reported]):
    """Writes a test case for each object: failed if it, or its pods, would be refused."""

    def add(self, one: Reported) -> None:
        case = self.case(one.file or one.subject.namespace or TOOL, one.place or TOOL, one.name)
        if one.skipped:
            ET.SubElement(case, "skipped", message=visible(one.skipped))
        warnings = []
        for row, finding in one.findings:
            where = f"line {finding.line}, column {finding.column}: " if finding.line else ""
            where += f"{counted(row.pods, 'pod')}, such as {row.example}: " if row.pods else ""
            where += f"{finding.path}: " if finding.path else ""
            shown = visible(f"{where}{finding.message}")
            if finding.level is Level.DENY:
                ET.SubElement(case, "failure", type=finding.rule, message=visible(finding.message)).text = shown
            else:
                warnings.append(f"{finding.level}  {finding.rule}: {shown}")
        if warnings:
            ET.SubElement(case, "system-out").text = "\n".join(warnings)


class GitHubCommands(Writer[Item]):
    """Writes workflow commands, which GitHub shows beside the lines that they are about."""

    def finish(self, complaints: Complaints, notes: Sequence[str] = ()) -> None:
        """Write a command for everything that could not be read, and for each note."""
        for name, sentences in (("error", complaints.sentences), ("notice", notes)):
            for sentence in sentences:
                self.command(name, {"title": TOOL}, sentence)

    def command(self, name: str, values: dict[str, str], message: str) -> None:
        """Write a command: `error`, `warning` or `notice`, with a place and a title; a message may have several lines."""
        spelled = ",".join([f"{key}={_escape(value, _GITHUB_VALUE)}" for key, value in values.items()])
        print(f"::{name} {spelled}::{_escape(message, _GITHUB_TEXT)}", file=self._stream)


class GitHub(GitHubCommands[Reported]):
    """Writes a workflow command for each finding."""

    def add(self, one: Reported) -> None:
        """Write the findings of one object."""
        for _, finding in one.findings:
            values = {"file": finding.file} if finding.file else {}
            if finding.line:
                values |= {"line": str(finding.line), "col": str(finding.column)}
            values["title"] = f"{finding.rule} in {one.name}"
            self.command(_GITHUB_COMMANDS[finding.level], values, finding.message)


class Concise(Writer[Reported]):
    """Writes a line for each finding, which begins with file, line and column as compilers write it."""

    def add(self, one: Reported) -> None:
        """Write the findings of one object, or why it was not reviewed."""
        if one.skipped:
            self._write(one.place or one.name, f"skipped {one.name}: {one.skipped}")
        for row, finding in one.findings:
            pods = f"{counted(row.pods, 'pod')}, such as {row.example}: " if row.pods else ""
            self._write(finding.place or one.name, f"{finding.level} {finding.rule}: {pods}{finding.message}")

    def _write(self, place: str, text: str) -> None:
        print(visible(f"{place}: {text}"), file=self._stream)


def _escape(text: str, escapes: dict[str, str]) -> str:
    return visible("".join([escapes.get(letter, letter) for letter in text]))
