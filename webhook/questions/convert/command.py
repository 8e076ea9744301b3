"""`vgpu-webhook convert`: writes manifests for other systems that share GPUs in this cluster's names."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import click

from webhook.cli.complaints import Complaints
from webhook.cli.files import FileArguments, files_option
from webhook.cli.inputs import read_settings
from webhook.cli.options import output_option
from webhook.cli.program import Command, exit_code, report_warning
from webhook.cli.settings_options import SettingsOptions, settings_option
from webhook.cli.terminal import MARK_STYLES, Style, Terminal
from webhook.devices.dialects import DIALECTS, Dialect, Place, vendor_of
from webhook.document_review import review_document, templates_by_shape, with_classes
from webhook.errors import WebhookError
from webhook.inputs.documents import Document, is_object, read_documents, to_review
from webhook.inputs.positions import steps_of
from webhook.lenient import obj
from webhook.output.difference import difference
from webhook.output.yaml import to_yaml
from webhook.pod.patch import REMOVE, Draft, Edit, field_path
from webhook.pod.templates import Template, read_templates
from webhook.pod.view import PodView
from webhook.questions.convert.amounts import convert_amounts, object_at
from webhook.rules.choices import DialectUse
from webhook.rules.context import Context
from webhook.rules.dialects import dialect_steps
from webhook.rules.reviewed_pod import ReviewedPod
from webhook.rules.validate import foreign_dialect
from webhook.snapshot import Snapshot
from webhook.wire.models import Request

HAMI = DIALECTS["hami"]

_EPILOG = """
Objects without such names are printed as they are. Comments are not kept.

exit codes:
  0  every name has been converted, or there is none
  1  something says nothing here, or could not be converted; standard error has it, and such a pod is left as it is
  2  bad input or configuration; what could be read is printed all the same
"""


@click.command("convert", cls=Command, epilog=_EPILOG)
@click.option(
    "--from",
    "dialect",
    type=click.Choice(list(DIALECTS)),
    help="The system whose names they have; found by itself if left out.",
)
@files_option("YAML or JSON, with one document or several.")
@settings_option("Convert to the names of the cluster's device config, and the schedulerName of its policy.")
@output_option("yaml", "diff", more=" diff shows what changes, and nothing else.")
def command(dialect: str | None, given: FileArguments, settings: SettingsOptions, output: str) -> int:
    """Print manifests for other systems that share GPUs in this cluster's names, and review the result."""
    snapshot, terminal, complain = read_settings(settings).snapshot(), Terminal(), Complaints()
    lost = False
    for file in given.files:
        try:
            documents = read_documents(file)
        except WebhookError as error:
            complain(str(error))
            continue
        for document in documents:
            if file not in given.paths and not is_object(document.value):
                continue
            try:
                before, after, warnings = _converted(document, dialect, snapshot)
            except WebhookError as error:
                complain(f"{document.place}: {error}")
                continue
            lost |= bool(warnings)
            for sentence in warnings:
                report_warning(f"{document.place}: {sentence}")
            if output == "yaml":
                print(f"---\n{to_yaml(after)}", end="")
            elif lines := difference(before, after):
                terminal.line((Style.BOLD, document.place))
                for line in lines:
                    terminal.line("  ", (MARK_STYLES[line.mark], line.shown))
    return exit_code(bad_input=complain.count > 0, found=lost)


def _converted(document: Document, dialect: str | None, snapshot: Snapshot) -> tuple[Any, Any, list[str]]:
    """An object before and after, and a sentence for each name that says nothing here or could not be converted.

    An object that was converted as a whole is reviewed, and there is a sentence for each reason to refuse it.
    """
    request, snapshot = to_review(document), with_classes(snapshot, document)
    raw = request.object or {}
    context = snapshot.context_of(request)
    if dialect:
        context = context._replace(effective=replace(context.effective, dialects={dialect: DialectUse.TRANSLATE}))
    uses = context.effective.dialects
    draft, warnings, left = Draft(raw), list[str](), False
    for template in _templates(request, snapshot):
        used = dialect_steps(ReviewedPod(PodView(template.pod), context), context)
        if len(used) > 1:
            systems = " and ".join(one.title for one, _ in used)
            warnings.append(f"{template.path or 'the pod'}: {foreign_dialect.SEVERAL.format(systems=systems)}")
            left = True
            continue
        written_in, steps = used[0] if used else (None, [])
        edits = [_placed(edit, template, raw) for step in steps for edit in step.edits]
        blocked = any(step.blocks for step in steps)
        left |= blocked or None in edits
        if None in edits and not blocked:
            warnings.append(
                f"{template.path}: its name is written in another field than its amount; convert it by hand"
            )
        elif written_in and not blocked:
            edits += [_placed(edit, template, raw) for edit in _leftovers(written_in, template, raw)]
            draft.apply([edit for edit in edits if edit is not None])
            warnings += _drop_of_object(draft, template, written_in)
            _drop_empty(draft, template)
        warnings += [
            f"{_field(template, step.path)}: {step.advice(written_in)}"
            for step in steps
            if written_in and (step.blocks or not step.here)
        ]
    if draft.object is not raw:
        warnings += [] if left else _refusals(replace(document, value=draft.object), snapshot)
    elif not warnings:
        on = [each for each, use in uses.items() if use is not DialectUse.OFF]
        certain = {each for each in on if uses[each] is DialectUse.TRANSLATE}
        counted = convert_amounts(request, on, certain, snapshot.config.vgpu)
        draft.apply(counted.edits)
        warnings += counted.warnings or _of_others(request, snapshot, context, dialect)
    warnings += _of_vendors(request, snapshot, dialect)
    return raw, draft.object, warnings


def _of_others(request: Request, snapshot: Snapshot, context: Context, dialect: str | None) -> Iterator[str]:
    """That pods have the names of other systems than the one that was named."""
    uses = dict.fromkeys(DIALECTS.keys() - {dialect}, DialectUse.WARN) if dialect else {}
    context = context._replace(effective=replace(context.effective, dialects=uses))
    for template in _templates(request, snapshot):
        for other, _ in dialect_steps(ReviewedPod(PodView(template.pod), context), context):
            yield f"{template.path or 'the pod'}: it has names of {other.title}; convert it with --from {other.id}"


def _of_vendors(request: Request, snapshot: Snapshot, dialect: str | None) -> Iterator[str]:
    """That pods of HAMi have cards which Volcano does not share, each resource once."""
    for template in _templates(request, snapshot):
        pod = PodView(template.pod)
        if dialect == HAMI.id or pod.scheduler in HAMI.schedulers:
            named = (name for each in pod.every_container() for name in {**each.limits, **each.requests})
            for name in dict.fromkeys(named):
                if vendor := vendor_of(name):
                    why = f"{name} is of {vendor}, whose cards Volcano does not share"
                    yield f"{template.path or 'the pod'}: {why}; leave these pods to {HAMI.title}"


def _leftovers(dialect: Dialect, template: Template, raw: Any) -> Iterator[Edit]:
    """Remove the annotations and labels of a converted pod that say nothing here, but for labels that select it."""
    selected = obj(raw, "spec", "selector", "matchLabels")
    metadata = obj(template.pod, "metadata")
    for field, place in (("annotations", Place.ANNOTATION), ("labels", Place.LABEL)):
        names = {word.name for word in dialect.words if word.place is place and not word.here}
        for name in obj(metadata, field).keys() & names:
            if place is Place.ANNOTATION or name not in selected:
                yield Edit(("metadata", field, name), REMOVE)


def _drop_empty(draft: Draft, template: Template) -> None:
    """Remove the maps of annotations and labels that the conversion emptied, of the object and of its pod."""
    for field in ("annotations", "labels"):
        path = "metadata", field
        for edit in (Edit(path, REMOVE), _placed(Edit(path, REMOVE), template, draft.object)):
            if edit is not None and object_at(draft.original, edit.path) and not object_at(draft.object, edit.path):
                draft.apply([edit])


def _drop_of_object(draft: Draft, template: Template, dialect: Dialect) -> Iterator[str]:
    """Remove the labels and annotations of the object above the pods that say nothing here, and tell them."""
    if not template.path:
        return
    for field, place in (("annotations", Place.ANNOTATION), ("labels", Place.LABEL)):
        for word in dialect.words:
            if (
                word.place is place
                and not word.here
                and word.role is None
                and word.name in obj(draft.object, "metadata", field)
            ):
                draft.apply([Edit(("metadata", field, word.name), REMOVE)])
                yield f"metadata.{field}[{word.name}]: removed, as nothing says the same: {word.note}"


def _refusals(document: Document, snapshot: Snapshot) -> list[str]:
    """Why the webhook refuses what was written, or its pods."""
    outcome = review_document(document, snapshot).outcome
    refused = {*outcome.never_runs, *(violation.rule for violation in outcome.denials)}
    return [f"{v.path}: converted, but {v.rule}: {v.message}" for v in outcome.violations if v.rule in refused]


def _templates(request: Request, snapshot: Snapshot) -> Iterator[Template]:
    """The pods that an object describes; a pod itself at an empty path."""
    raw = request.object or {}
    kind = snapshot.policy.workload_kinds.get((request.group, request.kind))
    if (request.group, request.kind) == ("", "Pod"):
        yield Template("", raw)
    elif kind is not None:
        yield from read_templates(kind, raw)
    else:
        yield from templates_by_shape(request, snapshot)


def _field(template: Template, path: str) -> str:
    return template.field(path).removeprefix(".")


def _placed(edit: Edit, template: Template, raw: Any) -> Edit | None:
    """The edit of a pod at its place in the object; None if the object has no such place."""
    path: list[str | int] = []
    here, known = raw, len(steps_of(template.path))
    for step in steps_of(_field(template, field_path(edit.path))):
        if isinstance(here, list):
            index = int(step) if step.isdecimal() else len(here)
            path.append(index)
            here = here[index] if index < len(here) else None
        else:
            path.append(step)
            here = here.get(step) if isinstance(here, dict) else None
        if here is None and len(path) <= known:
            return None
    return Edit(tuple(path), edit.value) if path[-1] == edit.path[-1] else None
