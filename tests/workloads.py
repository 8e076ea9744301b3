"""Objects of every kind of workload, with given pods at the template paths."""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from webhook.pod.workload_kinds import WORKLOAD_KINDS, Form, TemplatePath, WorkloadKind

Json = dict[str, Any]

KINDS = [*WORKLOAD_KINDS.values()]
WHOLE_KINDS = [kind for kind in KINDS if kind.is_whole]
PARTIAL_KINDS = [kind for kind in KINDS if not kind.is_whole]
kinds = st.sampled_from(KINDS)


def kind_id(kind: Any) -> str:
    return f"{kind.kind}.{kind.group}" if isinstance(kind, WorkloadKind) else ""


def workload(kind: WorkloadKind, templates: Sequence[Json], **metadata: Any) -> Json:
    """An object of a kind with these pod templates: a list gets all of them, any other field the first."""
    fields: Json = {"metadata": {"name": "w", **metadata}}
    for place in kind.templates:
        _put(fields, _steps(place), [_part(place.form, template) for template in templates])
    version = f"{kind.group}/{kind.versions[0]}".removeprefix("/")
    return {"apiVersion": version, "kind": kind.kind, **fields}


def _steps(place: TemplatePath) -> list[str]:
    return place.templates.split(".")


def _put(parent: Json, steps: list[str], parts: list[Json]) -> None:
    step, *rest = steps
    key = step.removesuffix("[*]")
    if not rest:
        parent[key] = parts if key != step else {**parent.get(key, {}), **parts[0]}
    elif rest[0] == "*":
        values = parent.setdefault(key, {})
        for index, part in enumerate(parts):
            _put(values.setdefault(f"Role{index}", {}), rest[1:], [part])
    elif key != step:
        items = parent.setdefault(key, [{"name": f"item{index}"} for index in range(len(parts))])
        for item, part in zip(items, parts, strict=True):
            _put(item, rest, [part])
    else:
        _put(parent.setdefault(key, {}), rest, parts)


def _part(form: Form, template: Json) -> Json:
    """A pod template in a form, reduced to the fields of the form; fields of wrong types become empty."""
    spec, metadata = (value if isinstance(value := template.get(key), dict) else {} for key in ("spec", "metadata"))
    containers = spec.get("containers") or []
    match form:
        case Form.WORKFLOW:
            step = {key: spec[key] for key in ("nodeSelector", "tolerations", "initContainers") if key in spec}
            return {"name": "step", "metadata": metadata, **step, "containerSet": {"containers": containers}}
        case Form.POD_SPEC:
            return {**spec, **({"annotations": metadata["annotations"]} if "annotations" in metadata else {})}
        case Form.SPARK_POD:
            return {"cores": 1, "template": template}
        case Form.TRAINER:
            named = [each for each in containers if isinstance(each, dict)] if isinstance(containers, list) else []
            resources = next((each["resources"] for each in named if each.get("resources")), None)
            return {"numNodes": 1, **({"resourcesPerNode": resources} if resources else {})}
        case _:
            return template
