"""The JSON Schema of the policy file."""

from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from webhook.policy.policy import Policy


class _Generator(GenerateJsonSchema):
    """Pydantic's, without what repeats a key or spells a private name."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002  # pydantic's signature
        return False

    def normalize_name(self, name: str) -> str:
        return super().normalize_name(name).lstrip("_")


def json_schema() -> dict[str, Any]:
    """The JSON Schema of the policy file, draft 2020-12.

    It is a little wider than the loader: it cannot express that schedulerName is one of schedulerNames.
    """
    schema = Policy.model_json_schema(schema_generator=_Generator)
    return {"$schema": _Generator.schema_dialect} | schema
