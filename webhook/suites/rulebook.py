"""Every rule, with its documentation and its example."""

import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from webhook.document_review import PATCH, REFUSED_ANYWAY
from webhook.errors import ConfigError
from webhook.inputs.files import read_bytes
from webhook.outcome import Outcome
from webhook.pod.fields import FieldGroup, place_and_key
from webhook.pod.size import MAX_CONTAINERS, MAX_ENTRIES, MAX_TEMPLATES
from webhook.review.too_large import NOT_REVIEWED, POD_TOO_LARGE
from webhook.rules.base import PART, Mutation, Validation
from webhook.rules.choices import Level
from webhook.rules.registry import MUTATIONS, VALIDATIONS
from webhook.settings.table import MAX_SETTINGS_BYTES
from webhook.suites.suite import Suite, SuiteCase
from webhook.wire.codec import MAX_STRUCTURAL_CHARS
from webhook.wire.models import Request

_ROOT = Path(str(files("webhook"))).parent
_EXAMPLES = "webhook/rules/examples"
MAX_SHOWN = 2  # keys of one place


@dataclass(frozen=True, slots=True)
class RuleExample:
    """A pod for which a rule has a finding or a repair, and its review.

    Attributes:
        case: the example in the suite of all examples.
        manifest: the text of the pod.
        request, outcome: its review.
    """

    case: SuiteCase
    manifest: str
    request: Request
    outcome: Outcome

    @property
    def conditions(self) -> dict[str, Any]:
        """What differs from the samples, by dotted path: `policy.memoryAboveCard`."""
        return dict(_paths(self.case.settings))

    @property
    def messages(self) -> list[tuple[Level, str]]:
        """The denials and warnings for the pod's author."""
        denials = [(Level.DENY, f"{denial.rule}: {denial.message}") for denial in self.outcome.denials]
        return denials + [(Level.WARN, warning) for warning in self.outcome.warnings]


@cache
def example_suite() -> Suite:
    """The suite with the examples of all rules.

    Raises:
        ConfigError: it is missing or cannot be read.
    """
    return Suite(str(_ROOT / _EXAMPLES / "suite.yaml"))


def _paths(value: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for key, inner in value.items():
        if isinstance(inner, dict):
            yield from _paths(inner, f"{path}{key}.")
        else:
            yield f"{path}{key}", inner


REPAIR = "repair"


@dataclass(frozen=True, slots=True)
class RuleEntry:
    """A rule in the table of rules.

    Attributes:
        id: the rule's.
        kind: `mutation` or `validation`.
        level: the default level of a validation; `repair` for a mutation.
        what: its summary.
        module: that defines it.
        reads: what it reads: fields with their paths, or in words.
    """

    id: str
    kind: str
    level: str
    what: str
    module: str
    reads: tuple[str | FieldGroup, ...]

    @property
    def file(self) -> str:
        """The rule's file, from the root of the source tree."""
        return self.module.replace(".", "/") + ".py"

    @property
    def example_file(self) -> str:
        """The file of its example, likewise."""
        return f"{_EXAMPLES}/{self.case_name}.yaml"

    @property
    def case_name(self) -> str:
        """The name of its example in the suite of all examples."""
        return f"{self.module.split('.')[-2]}/{self.id}"

    @property
    def text(self) -> str:
        """What it reads, with the docstring of its file: what it refuses, finds or writes; why."""
        reads = textwrap.fill(
            f"Reads:    {'; '.join(self.shown_reads)}", 127, subsequent_indent=" " * 10, break_on_hyphens=False
        )
        return PART.sub(lambda first: f"{reads}\n{first[0]}", self._doc, 1)

    @property
    def shown_reads(self) -> list[str]:
        """What it reads, for people: groups of fields in words, then the paths of others."""
        groups = [each.what for each in self.reads if isinstance(each, FieldGroup)]
        return [*groups, *with_keys([each for each in self.reads if isinstance(each, str)])]

    @property
    def _doc(self) -> str:
        return (sys.modules[self.module].__doc__ or self.what).strip()

    @property
    def parts(self) -> Mapping[str, str]:
        """The parts of the docstring by their word, each on one line: Refuses, Finds or Writes; Why."""
        return {word: " ".join(part.split()) for word, part in PART.findall(self._doc)}

    @property
    def why(self) -> str:
        """Why the rule is there, as the cell of a table."""
        return self.parts.get("Why", "").removesuffix(".")

    def example(self) -> RuleExample:
        """The rule's example, reviewed.

        Raises:
            ConfigError: it is missing or cannot be read.
        """
        suite = example_suite()
        case = next((case for case in suite.cases if case.name == self.case_name), None)
        if case is None:
            raise ConfigError(f"{suite.file}: the rule {self.id} has no case; add {self.case_name}")
        manifest = read_bytes(_ROOT / self.example_file, MAX_SETTINGS_BYTES).decode()
        reviewed = suite.run(case).reviewed
        return RuleExample(case, manifest, reviewed.request, reviewed.outcome)


@dataclass(frozen=True, slots=True)
class EngineFinding:
    """A finding of the engine itself, under an id that no rule has.

    Attributes:
        id: in the place of a rule's id.
        level: `deny` or `warn`; no policy changes it.
        what: when it is reported.
        why: the reason, and what to do.
    """

    id: str
    level: Level
    what: str
    why: str


ENGINE_FINDINGS = (
    EngineFinding(
        POD_TOO_LARGE,
        Level.DENY,
        f"a pod with more than {MAX_CONTAINERS:,} containers, {MAX_ENTRIES:,} variables, mounts, volumes, resources, "
        f"annotations and the like, or {MAX_STRUCTURAL_CHARS:,} commas, colons and brackets of JSON",
        "Reviewing it takes too long, and what is not reviewed could break a rule. Make several pods of it. "
        "An update counts what it changes.",
    ),
    EngineFinding(
        NOT_REVIEWED,
        Level.WARN,
        f"a workload with more than {MAX_TEMPLATES:,} pod templates, one that is too large, or many that choose cards or nodes "
        "in different ways",
        "The warning names the templates that are not reviewed. Their pods are reviewed when they are created.",
    ),
    EngineFinding(
        PATCH,
        Level.WARN,
        "a file with a Deployment, StatefulSet, Job or the like that has no selector, or a container without image",
        "It is a patch of kustomize, or the API server refuses it. What is found in a patch may not hold for the whole object.",
    ),
    EngineFinding(
        REFUSED_ANYWAY,
        Level.WARN,
        "a file with an amount of an extended resource that the API server refuses, or with an unknown field beside `spec`",
        "Extended resources are whole numbers, the same in requests and limits. Nothing else reports it before the file is "
        "applied.",
    ),
    EngineFinding(
        "policy",
        Level.DENY,
        "the ConfigMap `vgpu-webhook-policy`, written with a policy that cannot be used",
        "The replicas would keep the last policy, and new ones would not become ready. Errors and warnings are those of "
        "`vgpu-webhook policy check`.",
    ),
    EngineFinding(
        "device-config",
        Level.WARN,
        "the ConfigMap `volcano-vgpu-device-config`, written so that scheduler, device plugin and webhook do not agree, "
        "or so that numbers of running pods change their meaning",
        "Volcano reads it once, when it starts, and without an error. The messages are those of `vgpu-webhook doctor`.",
    ),
    EngineFinding(
        "scheduler-config",
        Level.WARN,
        "the ConfigMap `volcano-scheduler-configmap`, written so that the scheduler cannot read it, or assigns no devices",
        "The messages are those of `vgpu-webhook doctor`.",
    ),
    EngineFinding(
        "quota-limits",
        Level.WARN,
        "a ResourceQuota on devices that limits nothing, or no pod can keep",
        "Kubernetes counts only `requests.` of extended resources, as written: a pod that requests no memory takes whole "
        "cards and counts as no memory.",
    ),
    EngineFinding(
        "queue-limits",
        Level.WARN,
        "a Queue of Volcano with an amount of devices that limits nothing, no pod can keep, or a parent does not allow",
        "A queue counts plain names, as pods request them, if the scheduler has the plugin `capacity` or `proportion`.",
    ),
)


def rows() -> list[RuleEntry]:
    """Every rule: mutations in the order they run, then validations in the order they are reported."""
    return [_mutation(rule) for rule in MUTATIONS] + [_validation(rule) for rule in VALIDATIONS]


def _mutation(rule: Mutation) -> RuleEntry:
    return RuleEntry(rule.id, "mutation", REPAIR, rule.summary, rule.propose.__module__, tuple(rule.reads))


def _validation(rule: Validation) -> RuleEntry:
    module = (rule.check_workload or rule.check).__module__
    return RuleEntry(rule.id, "validation", rule.level, rule.summary, module, tuple(rule.reads))


def with_keys(paths: Iterable[str]) -> list[str]:
    """Paths for people: those that differ in their last key as one, with a few of the keys."""
    by_place: dict[str, list[str]] = {}
    for path in paths:
        place, key = place_and_key(path)
        by_place.setdefault(place, []).append(key)
    shown = {place: ", ".join(keys[:MAX_SHOWN]) + (", …" * (len(keys) > MAX_SHOWN)) for place, keys in by_place.items()}
    return [f"{place}[{keys}]" if keys else place for place, keys in shown.items()]
