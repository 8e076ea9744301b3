"""The parameters of a question as one model, which query strings, forms, JSON and the options of commands fill in."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from inspect import Parameter, signature
from typing import Any, Self, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from pydantic.alias_generators import to_camel, to_pascal

from webhook.errors import RequestError
from webhook.mistakes import mistake_in_value


class Parameters(BaseModel):
    """Parameters. Unknown ones are refused, so that no typo is ignored."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)

    @classmethod
    def checked(cls, values: Mapping[str, Any]) -> Self:
        """The parameters with these values.

        Raises:
            RequestError: the message names the first mistake.
        """
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise RequestError(_first_mistake(error, cls)) from error

    @classmethod
    def mistakes(cls, values: Mapping[str, Any]) -> dict[str, str]:
        """What is wrong with values of known parameters, by key; empty if all can be used."""
        try:
            cls.model_validate(values)
        except ValidationError as error:
            errors = error.errors(include_url=False)
            return {str(each["loc"][0]): mistake_in_value(each) for each in errors if each["type"] != "extra_forbidden"}
        return {}

    @classmethod
    def values(cls, lists: Iterable[tuple[str, Sequence[str]]], parts: Mapping[str, Any]) -> dict[str, Any]:
        """The values in a query string or a form, in which an empty field means nothing.

        Args:
            lists: each key with its values.
            parts: parameters that come from elsewhere, as from the path.

        Raises:
            RequestError: a parameter is given twice where one value is expected: programs disagree on which of the two
                counts.
        """
        read = dict(parts)
        fields = {field.alias or name: field for name, field in cls.model_fields.items()}
        for key, values in lists:
            given = [value for value in values if value != ""]
            if key in parts:
                raise RequestError(f"{key}: the path names it already; leave it out of the query")
            if key not in fields:
                read[key] = values[-1]  # `checked` refuses it
            elif get_origin(fields[key].annotation) is tuple:
                read[key] = given
            elif len(given) > 1:
                raise RequestError(f"{key}: given {len(given)} times; write it once")
            elif given:
                read[key] = given[0]
        return read

    def query(self, **changes: Any) -> dict[str, Any]:
        """The parameters that differ from their defaults, for a link.

        Args:
            changes: other values for some of them; None leaves one out.
        """
        changed = self.model_dump(mode="json", by_alias=True, exclude_defaults=True) | changes
        spelled = {key: str(value).lower() if isinstance(value, bool) else value for key, value in changed.items()}
        return {key: value for key, value in spelled.items() if value is not None}


def parameters_of(function: Callable[..., Any]) -> type[Parameters]:
    """The model of a function's parameters after the first one; those of a parameter that is a model are among them."""
    hints = get_type_hints(function, include_extras=True)
    own = list(signature(function).parameters.values())[1:]
    bases = [hints[each.name] for each in own if _is_model(hints[each.name])]
    fields: dict[str, Any] = {
        each.name: (hints[each.name], ... if each.default is Parameter.empty else each.default)
        for each in own
        if not _is_model(hints[each.name])
    }
    name = f"{to_pascal(function.__name__)}Parameters"
    return create_model(name, __base__=tuple(bases) or Parameters, **fields)


def _is_model(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Parameters)


def _first_mistake(error: ValidationError, model: type[Parameters]) -> str:
    first = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"])[:100] or "the request"
    if first["type"] != "extra_forbidden":
        return f"{place}: {mistake_in_value(first)}"
    keys = [field.alias or name for name, field in model.model_fields.items()]
    near = get_close_matches(place, keys, 1)
    known = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(keys)) or 'none'}"
    return f"{place}: no such key; {known}"
