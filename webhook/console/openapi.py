"""The OpenAPI document of the pages' JSON."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaMode

from webhook.console.pages import MEDIA_TYPE, PREFIX, ConsolePage, Problem
from webhook.product import product_version

_PART = re.compile(r"<(?:\w+:)?(\w+)>")  # of a route
_Key = tuple[int, str]


def openapi_document(pages: Sequence[ConsolePage]) -> dict[str, Any]:
    """The OpenAPI document of some pages."""
    inputs: list[tuple[_Key, JsonSchemaMode, TypeAdapter[Any]]] = [
        ((at, "in"), "validation", TypeAdapter(page.parameters)) for at, page in enumerate(pages)
    ]
    outputs: list[tuple[_Key, JsonSchemaMode, TypeAdapter[Any]]] = [
        ((at, "out"), "serialization", page.value) for at, page in enumerate(pages)
    ]
    problem: tuple[_Key, JsonSchemaMode, TypeAdapter[Any]] = ((-1, "out"), "serialization", TypeAdapter(Problem))
    references, definitions = TypeAdapter.json_schemas(
        [*inputs, *outputs, problem], by_alias=True, ref_template="#/components/schemas/{model}"
    )
    schemas = definitions["$defs"]
    paths: dict[str, Any] = {}
    for at, page in enumerate(pages):
        reference = references[(at, "in"), "validation"]
        for method in page.methods:
            described: dict[str, Any] = {
                "operationId": to_camel(page.name) + ("" if method == page.methods[0] else method.capitalize()),
                "summary": page.summary,
                "responses": {
                    "200": _content(references[(at, "out"), "serialization"], "the result"),
                    "default": _content(references[(-1, "out"), "serialization"], "why there is no result"),
                },
            }
            if method == "POST":
                described["requestBody"] = {"required": True, **_content(reference)}
            else:
                described["parameters"] = _parameters(schemas[reference["$ref"].rpartition("/")[2]], page.path)
            paths.setdefault(_PART.sub(r"{\1}", page.path), {})[method.lower()] = described
    return {
        "openapi": "3.1.0",
        "info": {"title": "vgpu-webhook console", "version": product_version()},
        "servers": [{"url": PREFIX}],
        "paths": paths,
        "components": {"schemas": _used(schemas, paths)},
    }


def _used(schemas: Mapping[str, Any], paths: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schemas that something refers to: not models of query strings, nor what only they refer to."""
    while True:
        written = repr((paths, schemas))
        used = {name: schema for name, schema in schemas.items() if f"/schemas/{name}'" in written}
        if len(used) == len(schemas):
            return schemas
        schemas = used


def _parameters(schema: Mapping[str, Any], path: str) -> list[dict[str, Any]]:
    parts = _PART.findall(path)
    return [
        {
            "name": name,
            "in": "path" if name in parts else "query",
            "required": name in schema.get("required", ()),
            "description": field.get("description", ""),
            "schema": {key: value for key, value in field.items() if key != "description"},
        }
        for name, field in schema.get("properties", {}).items()
    ]


def _content(reference: Mapping[str, Any], description: str = "") -> dict[str, Any]:
    content = {"content": {MEDIA_TYPE: {"schema": reference}}}
    return {"description": description} | content if description else content
