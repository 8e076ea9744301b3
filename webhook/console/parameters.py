"""Parameters that several operations and pages share: the filter of decisions, and the settings to try."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator

from webhook.audit.filters import MAX_GLOB, Filter, exactly
from webhook.durations import read_time
from webhook.errors import RequestError
from webhook.outcome import WORDS
from webhook.parameters import Parameters
from webhook.settings.trial import MAX_SPLIT
from webhook.texts import matches

MAX_GLOBS = 20
MAX_SETTINGS = 100

_Glob = Annotated[str, Field(min_length=1, max_length=MAX_GLOB)]
_Setting = Annotated[str, Field(max_length=1000)]


def _globs(what: str) -> Any:
    return Field(default=(), max_length=MAX_GLOBS, description=f"{what}; `*` and `?` stand for anything; repeatable")


class FilterRequest(Parameters):
    """Which decisions to take. All filters have to match; of a repeated key, one value is enough."""

    since: str = Field(
        "", max_length=40, description="only decisions from then on: an age such as 2h, or a time in UTC"
    )
    until: str = Field("", max_length=40, description="only decisions before then: likewise")
    refused: bool = Field(default=False, description="only refused requests")
    rule: tuple[_Glob, ...] = _globs("only decisions with a finding of such a rule")
    namespace: tuple[_Glob, ...] = _globs("only requests in such a namespace")
    user: tuple[_Glob, ...] = _globs("only requests of such a user")
    name: tuple[_Glob, ...] = _globs("only objects of such a name")
    outcome: tuple[_Glob, ...] = _globs(", ".join(WORDS))
    dry_run: bool | None = Field(default=None, description="only dry runs, or none of them")
    endpoint: Literal["mutate", "validate"] | None = Field(default=None, description="only requests to this endpoint")

    @field_validator("outcome")
    @classmethod
    def _known(cls, globs: tuple[str, ...]) -> tuple[str, ...]:
        for glob in globs:
            if not any(matches(word, [glob]) for word in WORDS):
                raise ValueError(f"no outcome is called {glob[:40]!r}; there are {', '.join(WORDS)}")
        return globs

    def filter(self) -> Filter:
        """The filter as of now.

        Raises:
            RequestError: a time cannot be read.
        """
        words = tuple([word for word in WORDS if matches(word, self.outcome)])
        return Filter(
            since=_time(self.since, "since"),
            until=_time(self.until, "until"),
            refused=self.refused,
            rules=self.rule,
            namespaces=self.namespace,
            users=self.user,
            names=self.name,
            words=words,
            dry_run=self.dry_run,
            endpoint=self.endpoint,
        )

    def query(self, **changes: Any) -> dict[str, Any]:
        """The filters for a link, without other parameters; see `Parameters.query`."""
        own = {field.alias for field in FilterRequest.model_fields.values()}
        return {key: value for key, value in super().query(**changes).items() if key in own or key in changes}

    def only(self, **texts: str) -> dict[str, Any] | None:
        """The query for exactly these rules, namespaces, users or names; None if one of them is too long for a filter."""
        globs = {key: exactly(text) for key, text in texts.items()}
        usable = all(0 < len(glob) <= MAX_GLOB and not glob.endswith("…") for glob in globs.values())
        return self.query(**{key: [glob] for key, glob in globs.items()}) if usable else None


def wider(wanted: Parameters, keys: Sequence[str]) -> dict[str, Any] | None:
    """The query for names that contain those of a filter, to offer where nothing matches.

    Args:
        wanted: the parameters of a page.
        keys: of the names in it; one name, or several.

    Returns:
        None if every name has wildcards already, or is too long for them.
    """
    found = wanted.query()
    texts = {key: [found[key]] if isinstance(found[key], str) else found[key] for key in keys if key in found}
    wide = {key: [_containing(text) for text in each] for key, each in texts.items()}
    return found | wide if wide != texts else None


def _containing(text: str) -> str:
    return text if any(mark in text for mark in "*?[") or len(text) + 2 > MAX_GLOB else f"*{text}*"


def _time(text: str, key: str) -> datetime | None:
    # In whole minutes, so that the store can reuse the summary of an age such as 2h.
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    try:
        return read_time(text.strip(), now) if text.strip() else None
    except ValueError as error:
        raise RequestError(f"{key}: {error}") from error


def setting_lines(settings: Any) -> Any:
    """The settings one by one, as a form sends all of them in one field."""
    if not isinstance(settings, list | tuple) or not all(isinstance(each, str) for each in settings):
        return settings
    lines = [line.strip() for each in settings for line in each.splitlines()]
    return tuple([line for line in lines if line])


class TriedSettings(Parameters):
    """Settings to try instead of those in use."""

    settings: Annotated[tuple[_Setting, ...], BeforeValidator(setting_lines)] = Field(
        default=(), max_length=MAX_SETTINGS, description="KEY=VALUE of the policy, such as rules.host-access=deny"
    )
    split: int | None = Field(
        default=None, ge=1, le=MAX_SPLIT, description="into how many slices each vGPU card of the fleet is split"
    )
