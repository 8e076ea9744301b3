"""Policy tests: suites of cases in YAML, each an object with the review that it must get."""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from textwrap import indent
from typing import Annotated, Any

import orjson
import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from webhook.document_review import Reviewed, review_document
from webhook.errors import ConfigError, Mistakes, RequestError
from webhook.inputs.documents import Document, manifest_files, read_documents
from webhook.inputs.files import MAX_MANIFEST_BYTES, STANDARD_INPUT, read_bytes, read_input, source_name
from webhook.inputs.parse import parse_stream
from webhook.inputs.positions import SourceText
from webhook.lenient import text
from webhook.mistakes import mistake_in_model, unknown_rule
from webhook.outcome import WORDS, Outcome
from webhook.review.too_large import NOT_REVIEWED, POD_TOO_LARGE
from webhook.rules.choices import Level
from webhook.rules.registry import MUTATIONS, VALIDATIONS
from webhook.settings.snapshot import SnapshotInputs
from webhook.settings.sources import SAMPLES
from webhook.settings.table import MAX_SETTINGS_BYTES, SETTINGS, DocumentSetting, ListSetting, Setting
from webhook.snapshot import Snapshot

SAMPLE, UNKNOWN = "sample", "unknown"
EXPECT = "expect"

_WIDE = 2**31 - 1  # columns: long messages stay on one line

_RULES = [*[rule.id for rule in MUTATIONS], *[rule.id for rule in VALIDATIONS], POD_TOO_LARGE, NOT_REVIEWED]


def _known_rule(rule: str) -> str:
    if rule not in _RULES:
        raise ValueError(unknown_rule(rule, _RULES))
    return rule


def _known_outcome(word: str) -> str:
    if word not in WORDS:
        raise ValueError(f"no outcome is called {word!r}; there are {', '.join(WORDS)}")
    return word


def _file_or_object(value: Any) -> Any:
    if isinstance(value, dict) or (isinstance(value, str) and value):
        return value
    raise ValueError("it must be the name of a file, or an object")


RuleId = Annotated[str, AfterValidator(_known_rule)]
FileOrObject = Annotated[Any, AfterValidator(_file_or_object)]


class _Section(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True)


class ExpectedFinding(_Section):
    """A finding; keys that are absent are not compared."""

    rule: RuleId
    level: Level | None = None
    path: str | None = None
    message: str | None = None


class Expectation(_Section):
    """A review as `review -o json` prints it; keys that are absent are not compared."""

    outcome: Annotated[str, AfterValidator(_known_outcome)] | None = None
    rules: list[RuleId] | None = None
    pods_refused: list[RuleId] | None = None
    never_starts: list[RuleId] | None = None
    findings: list[ExpectedFinding] | None = None
    warnings: list[str] | None = None
    patch: list[dict[str, Any]] | None = None


class _Settings(_Section):
    fleet: FileOrObject = None
    device_config: FileOrObject = None
    policy: FileOrObject = None
    scheduler_conf: FileOrObject = None
    queues: Annotated[str, Field(min_length=1)] | None = None
    quotas: Annotated[str, Field(min_length=1)] | None = None
    device_classes: Annotated[str, Field(min_length=1)] | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that are given, by their key."""
        return self.model_dump(include=set(_Settings.model_fields), by_alias=True, exclude_none=True)


class SuiteCase(_Settings):
    """An object, the settings that differ from those of the suite, and the expected review."""

    name: Annotated[str, Field(min_length=1)]
    manifest: FileOrObject
    namespace: str = ""
    expect: Expectation | None = None


class SuiteFile(_Settings):
    """The content of a suite file: settings for all cases, and the cases."""

    cases: Annotated[list[SuiteCase], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class CaseResult:
    """A case and its review.

    Attributes:
        file, case: the suite and the case.
        line: where the case begins in the file.
        reviewed: the review.
        expected: what the case expects.
        actual: the same keys, of the review.
    """

    file: str
    case: SuiteCase
    line: int
    reviewed: Reviewed
    expected: Mapping[str, Any]
    actual: Mapping[str, Any]

    @property
    def passed(self) -> bool:
        """Whether the review is as expected; an expectation of nothing never passes."""
        return bool(self.expected) and self.expected == self.actual


def suite_files(path: str, *, recursive: bool) -> list[str]:
    """A file as it is; a directory as its suites: `suite.yaml` and files whose names end in `.suite.yaml`, or `.yml`.

    Raises:
        ConfigError: a directory cannot be read, or holds no suite.
    """
    files = manifest_files(path, recursive=recursive)
    if path == STANDARD_INPUT or not Path(path).is_dir():
        return files
    endings = ("/suite.yaml", "/suite.yml", ".suite.yaml", ".suite.yml")
    if suites := [file for file in files if file.endswith(endings)]:
        return suites
    more = "" if recursive else ", or add -R to read the directories below it"
    raise ConfigError(f"{path}: no suite in this directory; name one suite.yaml or NAME.suite.yaml{more}")


class Suite:
    """A suite file, read and checked; its cases are reviewed one by one."""

    def __init__(self, path: str) -> None:
        """Read it.

        Raises:
            ConfigError: it cannot be read, or is no suite.
        """
        self.file = source_name(path)
        self._data = read_input(path, MAX_MANIFEST_BYTES)
        self._text = SourceText(self._data)
        self._directory = Path() if path == STANDARD_INPUT else Path(path).parent
        self._settings: dict[tuple[str, str], Any] = {}
        self._snapshots: dict[bytes, Snapshot] = {}
        documents = parse_stream(self._data, self.file)
        if len(documents) != 1:
            raise ConfigError(f"{self.file}: a suite is one document with `cases`, but this file has {len(documents)}")
        self._document = documents[0]
        try:
            self._content = SuiteFile.model_validate(self._document)
        except ValidationError as error:
            raise Mistakes(self.file, [self._mistake(each) for each in error.errors(include_url=False)]) from error
        names = [case.name for case in self.cases]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ConfigError(f"{self.file}: two cases are called {twice!r}; give each a name of its own")
        try:
            self.snapshot(_Settings())
        except ConfigError as error:
            raise ConfigError(f"{self.file}: {error}") from error

    @property
    def cases(self) -> Sequence[SuiteCase]:
        """The cases in order."""
        return self._content.cases

    def _mistake(self, error: ErrorDetails) -> str:
        path = [part for part in error["loc"] if part != "[key]"]
        sentence = mistake_in_model(error, SuiteFile, path)
        place: list[str] = []
        if path[:1] == ["cases"] and len(path) > 1 and isinstance(path[1], int):
            name = text(self._document["cases"][path[1]], "name")
            place.append(f"case {name!r}" if name else f"case {path[1] + 1}")
            path = path[2:]
        place += [".".join(map(str, path))] if path else []
        return ": ".join([*(place or ["the suite"]), sentence])

    # --- reviews ----------------------------------------------------------------------------------------------------

    def run(self, case: SuiteCase) -> CaseResult:
        """Review a case.

        Raises:
            ConfigError: a file of it, or a setting, cannot be used, or there is nothing to review.
        """
        index = next(index for index, each in enumerate(self.cases) if each.name == case.name)
        position = self._text.position(1, ["cases", str(index)])
        try:
            manifest, snapshot = self._manifest(case, index), self.snapshot(case)
            reviewed = review_document(manifest, snapshot, case.namespace, abridged=True)
        except (ConfigError, RequestError) as error:
            raise ConfigError(f"{self.file}: case {case.name!r}: {error}") from error
        expected = case.expect.model_dump(mode="json", by_alias=True, exclude_none=True) if case.expect else {}
        return CaseResult(
            self.file, case, position.line if position else 1, reviewed, expected, _actual(reviewed.outcome, expected)
        )

    def _manifest(self, case: SuiteCase, index: int) -> Document:
        if isinstance(case.manifest, dict):
            inside = ("cases", str(index), "manifest")
            return Document(self.file, case.manifest, self.file, inside=inside, text=self._text)
        documents = read_documents(str(self._directory / case.manifest))
        if len(documents) != 1:
            raise ConfigError(
                f"{case.manifest} has {len(documents)} objects, but a case tests one; write each into a file of its own"
            )
        return documents[0]

    def snapshot(self, given: _Settings) -> Snapshot:
        """The settings of a case, which most cases share."""
        written = {setting: self._written(setting, given) for setting in SETTINGS}
        key = orjson.dumps(list(written.values()))
        if key not in self._snapshots:
            values = {one.part: self._value(one, value) for one, value in written.items() if value is not None}
            self._snapshots[key] = SnapshotInputs.of(values).snapshot()
        return self._snapshots[key]

    def _written(self, setting: Setting, given: _Settings) -> Any:
        """A setting of a case: a document that is laid over the suite's, or the file or object of a list; None without it."""
        field = setting.option.replace("-", "_")
        suite, case = (getattr(each, field) for each in (self._content, given))
        if not isinstance(setting, DocumentSetting):
            return None if (case or suite) == UNKNOWN else case or suite
        of_suite, of_case = [
            self._once(setting, value, partial(_read_document, setting)) if isinstance(value, str) else value
            for value in (suite, case)
        ]
        if isinstance(case, dict) and isinstance(of_suite, dict):
            return _merged(of_suite, case)
        return of_suite if case is None else of_case

    def _value(self, setting: Setting, written: Any) -> Any:
        if isinstance(setting, DocumentSetting):
            return setting.parse(written, to_camel(setting.option.replace("-", "_")))
        if isinstance(setting, ListSetting) and isinstance(written, dict):
            return setting.read([written], setting.option)
        return self._once(setting, written, setting.load)

    def _once(self, setting: Setting, name: str, load: Callable[[Path], Any]) -> Any:
        """Read a file that several cases use."""
        if (setting.part, name) not in self._settings:
            sample = SAMPLES / f"{setting.option}.yaml"
            path = sample if name == SAMPLE and sample.is_file() else self._directory / name
            self._settings[setting.part, name] = load(path)
        return self._settings[setting.part, name]

    # --- golden expectations ----------------------------------------------------------------------------------------

    def updated(self, results: Sequence[CaseResult]) -> str:
        """The text of the suite with the reviews as expectations; everything else stays as it is written.

        Args:
            results: of cases that expect something else, or nothing: those get outcome, rules and patch.

        Raises:
            ConfigError: the file cannot be changed in place.
        """
        wanted = deepcopy(self._document)
        new = self._data.decode("utf-8-sig").split("\n")
        nodes = _case_nodes(self._data)
        for index, case in reversed(list(enumerate(self.cases))):
            result = next((result for result in results if result.case.name == case.name), None)
            if result and index < len(nodes):
                wanted["cases"][index][EXPECT] = _golden(result)
                _splice(new, nodes[index], _golden(result))
        text = "\n".join(new)
        try:
            same = parse_stream(text.encode(), self.file) == [wanted]
        except ConfigError:
            same = False
        if not same:
            raise ConfigError(
                f"{self.file}: --update changes `expect` only in block style, without anchors; "
                "write each key of a case on a line of its own"
            )
        return text


def _read_document(setting: DocumentSetting[Any], path: Path) -> Any:
    return setting.document(read_bytes(path, MAX_SETTINGS_BYTES), str(path))


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """The base with other values; objects are merged, lists replaced."""
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        merged[key] = _merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return merged


def _whole(outcome: Outcome) -> dict[str, Any]:
    return {
        "outcome": str(outcome.word),
        "rules": outcome.rules,
        "podsRefused": list(outcome.pods_refused),
        "neverStarts": list(outcome.never_starts),
        "findings": [
            {"rule": v.rule, "level": v.level.value, "path": v.path, "message": v.message} for v in outcome.violations
        ],
        "warnings": outcome.warnings,
        "patch": list(outcome.operations),
    }


def _actual(outcome: Outcome, expected: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a review that a case expects; rules in the order of the case if they are the same."""
    whole = _whole(outcome)
    actual = {key: whole[key] for key in expected}
    for key in ("rules", "podsRefused", "neverStarts"):
        if key in expected and sorted(expected[key]) == sorted(actual[key]):
            actual[key] = expected[key]
    if "findings" in expected:
        wanted = expected["findings"]
        actual["findings"] = [
            {key: value for key, value in finding.items() if at >= len(wanted) or key in wanted[at]}
            for at, finding in enumerate(actual["findings"])
        ]
    return actual


def _golden(result: CaseResult) -> dict[str, Any]:
    if result.expected:
        return dict(result.actual)
    whole = _whole(result.reviewed.outcome)
    keys = [key for key in ("outcome", "rules", "patch") if key != "patch" or whole["patch"]]
    return {key: whole[key] for key in keys}


def _case_nodes(data: bytes) -> list[yaml.MappingNode]:
    """The cases as they are written; none if they are written in another way than as a list."""
    roots = [node for node in yaml.compose_all(data, yaml.SafeLoader) if isinstance(node, yaml.MappingNode)]
    lists = [value for key, value in roots[0].value if key.value == "cases"]
    return [node for sequence in lists for node in sequence.value if isinstance(node, yaml.MappingNode)]


def _splice(text: list[str], case: yaml.MappingNode, expect: Mapping[str, Any]) -> None:
    """Write an expectation into the lines of a suite, in place of the one that a case has."""
    column = case.value[0][0].start_mark.column
    dumped = yaml.safe_dump(dict(expect), sort_keys=False, allow_unicode=True, width=_WIDE)
    lines = [f"{EXPECT}:", *indent(dumped, "  ").splitlines()]
    old = next(((key, value) for key, value in case.value if key.value == EXPECT), None)
    if old is None:
        at = _last_line(case) + 1
        text[at:at] = [" " * column + line for line in lines]
        return
    first, last = old[0].start_mark.line, max(old[0].start_mark.line, _last_line(old[1]))
    before = text[first][: old[0].start_mark.column]
    text[first : last + 1] = [before + lines[0], *[" " * column + line for line in lines[1:]]]


def _last_line(node: yaml.Node) -> int:
    """The last line of a value, without the comments and blank lines that follow."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        node = last[1] if isinstance(last, tuple) else last
    mark = node.end_mark
    return mark.line if mark.column or mark.line == node.start_mark.line else mark.line - 1
