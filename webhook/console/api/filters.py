"""Which decisions are asked for: what the question, the form and the links of the Decisions page have in common."""

from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator
from werkzeug.exceptions import BadRequest

from webhook.audit.filters import MAX_GLOB, Filter, exactly, read_time
from webhook.console.api.operation import Question
from webhook.outcome import WORDS

MAX_GLOBS = 20

_Glob = Annotated[str, Field(min_length=1, max_length=MAX_GLOB)]


def _globs(what: str) -> Any:
    return Field(default=(), max_length=MAX_GLOBS, description=f"{what}; `*` and `?` stand for anything; repeatable")


class FilterQuestion(Question):
    """What a decision must be. All of it has to hold; of a key that is repeated, one value is enough."""

    since: str = Field("", max_length=40, description="from then on: an age such as 2h, or a time in UTC")
    until: str = Field("", max_length=40, description="before then, likewise")
    denied: bool = Field(default=False, description="what was refused only")
    rule: tuple[_Glob, ...] = _globs("what such a rule spoke about")
    namespace: tuple[_Glob, ...] = _globs("what was asked for in such a namespace")
    user: tuple[_Glob, ...] = _globs("what such a user asked for")
    name: tuple[_Glob, ...] = _globs("objects of such a name")
    outcome: tuple[_Glob, ...] = _globs(", ".join(WORDS))
    dry_run: bool | None = Field(default=None, description="dry runs only, or none of them")
    endpoint: Literal["mutate", "validate"] | None = Field(default=None, description="where it was asked for")

    @field_validator("outcome")
    @classmethod
    def _known(cls, globs: tuple[str, ...]) -> tuple[str, ...]:
        for glob in globs:
            if not any(fnmatchcase(word, glob) for word in WORDS):
                raise ValueError(f"no outcome is called {glob[:40]!r}; there are {', '.join(WORDS)}")
        return globs

    def filter(self) -> Filter:
        """What it asks for, as of now.

        Raises:
            BadRequest: a time cannot be read.
        """
        words = tuple([word for word in WORDS if any(fnmatchcase(word, glob) for glob in self.outcome)])
        return Filter(
            since=_time(self.since, "since"),
            until=_time(self.until, "until"),
            denied=self.denied,
            rules=self.rule,
            namespaces=self.namespace,
            users=self.user,
            names=self.name,
            words=words,
            dry_run=self.dry_run,
            endpoint=self.endpoint,
        )

    def query(self, **others: Any) -> dict[str, Any]:
        """It as a query string has it, without what asks nothing; with some keys replaced, without those that are None."""
        found = {
            key: value for key in FilterQuestion.model_fields if (value := getattr(self, key)) not in ("", (), None)
        }
        found = {key: value for key, value in found.items() if value is not False or key == "dry_run"} | others
        spelled = {("dryRun" if key == "dry_run" else key): value for key, value in found.items() if value is not None}
        return {key: str(value).lower() if isinstance(value, bool) else value for key, value in spelled.items()}

    def only(self, **texts: str) -> dict[str, Any] | None:
        """The query for these rules, namespaces, users, names alone; None if one of them cannot be asked for."""
        globs = {key: exactly(text) for key, text in texts.items()}
        return (
            self.query(**{key: [glob] for key, glob in globs.items()}) if all(map(_askable, globs.values())) else None
        )


def _askable(glob: str) -> bool:
    return 0 < len(glob) <= MAX_GLOB and not glob.endswith("…")


def _time(text: str, key: str) -> datetime | None:
    # An age asks the same for a minute, so that sums are remembered.
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    try:
        return read_time(text.strip(), now) if text.strip() else None
    except ValueError as error:
        raise BadRequest(f"{key}: {error}") from error
