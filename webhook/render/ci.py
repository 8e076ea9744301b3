"""Findings as CI systems read them: SARIF, JUnit XML, and the workflow commands of GitHub Actions."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TextIO
from urllib.parse import quote
from xml.etree import ElementTree as ET

from webhook.document_review import LocatedFinding, Reviewed, locate
from webhook.outcome import Violation
from webhook.render.yaml import to_json
from webhook.rules.settings import Enforcement, Level
from webhook.suites.rulebook import ENGINE_FINDINGS, EngineFinding, RuleEntry, rows
from webhook.texts import visible

SARIF_VERSION = "2.1.0"
SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
TOOL = "vgpu-webhook"

_SARIF_LEVELS = {Level.DENY: "error", Level.WARN: "warning", Level.AUDIT: "note"}
_GITHUB_COMMANDS = {Level.DENY: "error", Level.WARN: "warning", Level.AUDIT: "notice"}
_GITHUB_TEXT = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_GITHUB_VALUE = _GITHUB_TEXT | {":": "%3A", ",": "%2C"}


@cache
def product_version() -> str:
    """The version that is installed."""
    try:
        return version("volcano-vgpu-webhook")
    except PackageNotFoundError:
        return "unknown"


def located_findings(reviewed: Reviewed) -> Iterator[LocatedFinding]:
    """The findings of an object at the levels at which they take effect, then the warnings of its repairs.

    What refuses the object, or its pods, is `deny`.
    """
    outcome, document = reviewed.outcome, reviewed.document
    for violation in outcome.softened:
        level = Level.DENY if violation.rule in outcome.never_runs else violation.level
        yield locate(document, replace(violation, level=level))
    if outcome.enforcement is not Enforcement.AUDIT:
        for rule, sentence in outcome.notices:
            yield locate(document, Violation(rule, Level.WARN, "", sentence))


def _unread_text(unread: int) -> str:
    documents = "1 file or document" if unread == 1 else f"{unread} files or documents"
    return f"{documents} could not be read; standard error has the reasons"


def _object_name(reviewed: Reviewed) -> str:
    request = reviewed.request
    return "/".join([part for part in (request.namespace, request.kind, reviewed.name) if part])


class Sarif:
    """Writes all findings as one SARIF 2.1.0 log."""

    def __init__(self, stream: TextIO) -> None:
        """Take the stream."""
        self._stream = stream
        self._rules: dict[str, int] = {}
        self._results: list[dict[str, Any]] = []

    def add(self, reviewed: Reviewed, _: object = None) -> None:
        """Add the findings of one object."""
        for finding in located_findings(reviewed):
            self._results.append(
                {
                    "ruleId": finding.rule,
                    "ruleIndex": self._rules.setdefault(finding.rule, len(self._rules)),
                    "level": _SARIF_LEVELS[finding.level],
                    "message": {"text": finding.message},
                    "locations": [_sarif_location(reviewed, finding)],
                }
            )

    def finish(self, unread: int) -> None:
        """Write the log."""
        known: dict[str, RuleEntry | EngineFinding] = {entry.id: entry for entry in rows()}
        known |= {entry.id: entry for entry in ENGINE_FINDINGS}
        rules: list[dict[str, Any]] = []
        for rule in self._rules:
            entry = known.get(rule)
            texts = {"shortDescription": {"text": entry.what}, "fullDescription": {"text": entry.why}} if entry else {}
            rules.append({"id": rule} | texts)
        notifications = [{"level": "error", "message": {"text": _unread_text(unread)}}] if unread else []
        run = {
            "tool": {"driver": {"name": TOOL, "version": product_version(), "rules": rules}},
            "invocations": [{"executionSuccessful": not unread, "toolExecutionNotifications": notifications}],
            "columnKind": "unicodeCodePoints",
            "results": self._results,
        }
        print(to_json({"$schema": SARIF_SCHEMA, "version": SARIF_VERSION, "runs": [run]}), file=self._stream)


def _sarif_location(reviewed: Reviewed, finding: LocatedFinding) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": {"uri": quote(finding.file)}}
    if finding.line:
        physical["region"] = {"startLine": finding.line, "startColumn": finding.column}
    logical = {"name": _object_name(reviewed), "kind": "resource"}
    if finding.path:
        logical["fullyQualifiedName"] = f"{_object_name(reviewed)}/{finding.path}"
    return {"physicalLocation": physical, "logicalLocations": [logical]}


class JUnit:
    """Writes a test case for each object: failed if it, or its pods, would be refused."""

    def __init__(self, stream: TextIO) -> None:
        """Take the stream."""
        self._stream = stream
        self._suites: dict[str, ET.Element] = {}

    def case(self, file: str, place: str, name: str) -> ET.Element:
        """Add a test case to the suite of a file."""
        return ET.SubElement(self._suite(file), "testcase", classname=visible(place), name=visible(name))

    def add(self, reviewed: Reviewed, _: object = None) -> None:
        """Add one object; one without pods is no test."""
        if not reviewed.has_pods:
            return
        case = self.case(reviewed.document.file, reviewed.place, _object_name(reviewed))
        if reviewed.not_reviewed:
            ET.SubElement(case, "skipped", message=visible(reviewed.not_reviewed))
        warnings = []
        for finding in located_findings(reviewed):
            where = f"line {finding.line}, column {finding.column}: " if finding.line else ""
            text = visible(f"{where}{finding.path}: {finding.message}" if finding.path else f"{where}{finding.message}")
            if finding.level is Level.DENY:
                ET.SubElement(case, "failure", type=finding.rule, message=visible(finding.message)).text = text
            else:
                warnings.append(f"{finding.level}  {finding.rule}: {text}")
        if warnings:
            ET.SubElement(case, "system-out").text = "\n".join(warnings)

    def finish(self, unread: int) -> None:
        """Write the test suites."""
        if unread:
            case = self.case(TOOL, TOOL, "every document is read")
            ET.SubElement(case, "error", message=_unread_text(unread))
        root = ET.Element("testsuites", name=TOOL)
        root.extend(self._suites.values())
        for suite in self._suites.values():
            suite.set("tests", str(len(suite)))
            for name, found in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
                suite.set(name, str(sum(case.find(found) is not None for case in suite)))
        ET.indent(root)
        text = ET.tostring(root, encoding="unicode")
        print(f'<?xml version="1.0" encoding="UTF-8"?>\n{text}', file=self._stream)

    def _suite(self, file: str) -> ET.Element:
        return self._suites.setdefault(file, ET.Element("testsuite", name=visible(file)))


class GitHub:
    """Writes a workflow command for each finding, which GitHub shows beside the line."""

    def __init__(self, stream: TextIO) -> None:
        """Take the stream."""
        self._stream = stream

    def add(self, reviewed: Reviewed, _: object = None) -> None:
        """Write the findings of one object."""
        for finding in located_findings(reviewed):
            values = {"file": finding.file}
            if finding.line:
                values |= {"line": str(finding.line), "col": str(finding.column)}
            values["title"] = f"{finding.rule} in {_object_name(reviewed)}"
            self.command(_GITHUB_COMMANDS[finding.level], values, finding.message)

    def finish(self, unread: int) -> None:
        """Write a command for what could not be read."""
        if unread:
            self.command("error", {"title": TOOL}, _unread_text(unread))

    def command(self, name: str, values: dict[str, str], message: str) -> None:
        """Write a command: `error`, `warning` or `notice`, with a place and a title; a message may have several lines."""
        spelled = ",".join([f"{key}={_escape(value, _GITHUB_VALUE)}" for key, value in values.items()])
        print(f"::{name} {spelled}::{_escape(message, _GITHUB_TEXT)}", file=self._stream)


def _escape(text: str, escapes: dict[str, str]) -> str:
    return visible("".join([escapes.get(letter, letter) for letter in text]))
