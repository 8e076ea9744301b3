"""What an operation of the API is: a question and an answer, both pydantic models, and what turns one into the other."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from typing import Any, Generic, TypeVar, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel
from werkzeug.datastructures import MultiDict
from werkzeug.exceptions import BadRequest

from webhook.console.guard import computing
from webhook.console.state import State
from webhook.errors import RequestError, WebhookError
from webhook.mistakes import mistake_in_value

UNUSABLE = 422  # well-formed, but not to be used


class Question(BaseModel):
    """What is asked: a query string, or a JSON body. Unknown keys are refused, since a misspelt filter must not be none."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)


class Answer(BaseModel):
    """What is answered, or a part of it."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True, serialize_by_alias=True
    )


class Problem(Answer):
    """Why there is no answer.

    Attributes:
        status: of HTTP.
        reason: that status in words.
        message: what is wrong, and what to do.
    """

    status: int
    reason: str
    message: str


class Method(StrEnum):
    """How an operation is asked: nothing but these two, and neither changes anything."""

    GET = "GET"
    POST = "POST"


Asked = TypeVar("Asked", bound=Question)
Answered = TypeVar("Answered", bound=Answer)


@dataclass(frozen=True, slots=True)
class Operation(Generic[Asked, Answered]):
    """One operation.

    Attributes:
        id: its name, in camel case.
        method, path: where it is; the path is below /api/v1, its `<parts>` are fields of the question.
        summary: what it answers, in a sentence.
        question, answer: the models.
        perform: makes the answer.
        heavy: it computes for long, so that few may run at a time.
    """

    id: str
    method: Method
    path: str
    summary: str
    question: type[Asked]
    answer: type[Answered]
    perform: Callable[[State, Asked], Answered]
    heavy: bool = False

    def ask(self, state: State, values: Mapping[str, Any]) -> Answered:
        """Check a question and answer it.

        Raises:
            BadRequest: it is not a question of this kind.
            HTTPException: there is no such thing, or too much is asked for at a time.
            WebhookError: what it hands in cannot be used.
        """
        question = self.read(values)
        if not self.heavy:
            return self.perform(state, question)
        with computing():
            return self.perform(state, question)

    def read(self, values: Mapping[str, Any]) -> Asked:
        """Check a question.

        Raises:
            BadRequest: it is not one; the message names the first mistake.
        """
        try:
            return self.question.model_validate(values)
        except ValidationError as error:
            raise BadRequest(_first(error, self.question)) from error

    def from_query(self, query: MultiDict[str, str]) -> dict[str, Any]:
        """The values of a query string or a form; a key may be repeated where the question takes several.

        Raises:
            BadRequest: a key is repeated where it may not be: programs disagree on which of the two holds.
        """
        found: dict[str, Any] = {}
        fields = {field.alias or name: field for name, field in self.question.model_fields.items()}
        for key, values in query.lists():
            kept = [value for value in values if value != ""]  # an empty field of a form asks nothing
            if key not in fields:
                found[key] = values[-1]  # to be refused
            elif get_origin(fields[key].annotation) is tuple:
                found[key] = kept
            elif len(kept) > 1:
                raise BadRequest(f"{key}: given {len(kept)} times; write it once")
            elif kept:
                found[key] = kept[0]
        return found


def status_of(error: WebhookError) -> int:
    """The HTTP status for what was handed in and cannot be used."""
    return error.status if isinstance(error, RequestError) else UNUSABLE


def _first(error: ValidationError, question: type[Question]) -> str:
    """The first mistake: where it is, and what to write instead."""
    first = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"])[:100] or "the question"
    if first["type"] != "extra_forbidden":
        return f"{place}: {mistake_in_value(first)}"
    keys = [field.alias or name for name, field in question.model_fields.items()]
    near = get_close_matches(place, keys, 1)
    known = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(keys)) or 'none'}"
    return f"{place}: no such key; {known}"
