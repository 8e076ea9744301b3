"""Results of policy tests: for the terminal, as JSON, as JUnit XML and as commands of GitHub workflows."""

from collections.abc import Mapping
from xml.etree import ElementTree as ET

from webhook.cli.ci import GitHubCommands, JUnitSuites, Writer
from webhook.cli.complaints import Complaints
from webhook.cli.terminal import INDENT, MARK_STYLES, Style, Terminal
from webhook.output.difference import MarkedLine, difference
from webhook.output.json import to_json
from webhook.suites.suite import CaseResult
from webhook.texts import counted, visible


def result_difference(result: CaseResult) -> list[MarkedLine]:
    """The expectation before, the review after; nothing if they are equal."""
    return [line for line in difference(result.expected, result.actual) if line.shown]


class TextResults:
    """Writes a line for each case, and below a failed one what differs."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._file = ""
        self._passed = self._failed = 0

    def add(self, result: CaseResult) -> None:
        if result.file != self._file:
            self._file = result.file
            self._terminal.line((Style.BOLD, result.file))
        if result.passed:
            self._passed += 1
            self._terminal.line(INDENT, (Style.GOOD, "pass"), f"  {result.case.name}")
            return
        self._failed += 1
        self._terminal.line(
            INDENT, (Style.BAD, "FAIL"), f"  {result.case.name}", (Style.DIM, f"  ({result.file}:{result.line})")
        )
        if not result.expected:
            self._terminal.line(INDENT * 4, "it expects nothing; add `expect`, or run with --update")
            return
        for line in result_difference(result):
            self._terminal.line(INDENT * 4, (MARK_STYLES[line.mark], line.shown))

    def finish(self, complaints: Complaints) -> None:
        total = self._passed + self._failed
        parts = [f"{self._passed} passed", f"{self._failed} failed" if self._failed else ""]
        parts.append(f"{complaints.count} not readable" if complaints.count else "")
        self._terminal.line((Style.BOLD, f"{counted(total, 'case')}: "), ", ".join(part for part in parts if part))


class JsonResults(Writer[CaseResult]):
    """Writes each result as a line of JSON."""

    def add(self, result: CaseResult) -> None:
        value = {
            "file": result.file,
            "line": result.line,
            "case": result.case.name,
            "passed": result.passed,
            "expected": result.expected,
            "actual": result.actual,
        }
        print(to_json(value), file=self._stream)


class JUnitResults(JUnitSuites[CaseResult]):
    """Writes a JUnit test case for each case."""

    def add(self, result: CaseResult) -> None:
        case = self.case(result.file, f"{result.file}:{result.line}", result.case.name)
        if not result.passed:
            failure = ET.SubElement(case, "failure", message=_problem(result))
            failure.text = "\n".join(visible(line.shown) for line in result_difference(result))


class GitHubResults(GitHubCommands[CaseResult]):
    """Writes a workflow command for each failed case."""

    def add(self, result: CaseResult) -> None:
        """Write a result, if the case failed."""
        if not result.passed:
            place = {"file": result.file, "line": str(result.line), "title": f"policy test {result.case.name}"}
            lines = [line.shown for line in result_difference(result)]
            self.command("error", place, "\n".join([_problem(result), *(lines if result.expected else ())]))


def _problem(result: CaseResult) -> str:
    return "the review differs from the expectation" if result.expected else "the case expects nothing"


FORMATS: Mapping[str, type[Writer[CaseResult]]] = {"json": JsonResults, "junit": JUnitResults, "github": GitHubResults}
