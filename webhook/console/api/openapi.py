"""The OpenAPI document, made from the operations and their models: nothing of it is written by hand."""

import re
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, models_json_schema

from webhook.console.api.operation import Method, Operation, Problem

PREFIX = "/api/v1"
_REFERENCES = "#/components/schemas/{model}"
_PART = re.compile(r"<(?:\w+:)?(\w+)>")


def document(operations: Iterable[Operation[Any, Any]]) -> dict[str, Any]:
    """The document for some operations."""
    listed = list(operations)
    modes: list[tuple[type[BaseModel], JsonSchemaMode]] = [(each.question, "validation") for each in listed]
    modes += [(each.answer, "serialization") for each in listed] + [(Problem, "serialization")]
    references, definitions = models_json_schema(
        modes, by_alias=True, ref_template=_REFERENCES, schema_generator=GenerateJsonSchema
    )
    schemas = definitions.get("$defs", {})
    paths: dict[str, Any] = {}
    for each in listed:
        found = {
            "operationId": each.id,
            "summary": each.summary,
            **_asked(each, references, schemas),
            "responses": {
                "200": _content("the answer", references[each.answer, "serialization"]),
                "default": _content("why there is none", references[Problem, "serialization"]),
            },
        }
        paths.setdefault(_PART.sub(r"{\1}", each.path), {})[each.method.lower()] = found
    asked = {_name(references[each.question, "validation"]) for each in listed if each.method is Method.GET}
    return {
        "openapi": "3.1.0",
        "info": {"title": "vgpu-webhook console", "version": product_version()},
        "servers": [{"url": PREFIX}],
        "paths": paths,
        "components": {"schemas": {name: schema for name, schema in schemas.items() if name not in asked}},
    }


def product_version() -> str:
    """The version that is installed."""
    try:
        return version("volcano-vgpu-webhook")
    except PackageNotFoundError:
        return "unknown"


def _asked(each: Operation[Any, Any], references: Any, schemas: dict[str, Any]) -> dict[str, Any]:
    """The parameters or the body."""
    reference = references[each.question, "validation"]
    if each.method is Method.POST:
        return {"requestBody": {"required": True, **_content("", reference)}}
    schema = schemas[_name(reference)]
    parts = _PART.findall(each.path)
    parameters = [
        {
            "name": name,
            "in": "path" if name in parts else "query",
            "required": name in parts or name in schema.get("required", ()),
            "description": field.get("description", ""),
            "schema": {key: value for key, value in field.items() if key != "description"},
        }
        for name, field in schema.get("properties", {}).items()
    ]
    return {"parameters": parameters} if parameters else {}


def _content(description: str, reference: dict[str, Any]) -> dict[str, Any]:
    told = {"description": description} if description else {}
    return told | {"content": {"application/json": {"schema": reference}}}


def _name(reference: dict[str, Any]) -> str:
    return str(reference["$ref"]).rpartition("/")[2]
