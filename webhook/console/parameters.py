"""Parameters that several operations and pages share: the filter of decisions, and the settings to try."""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from webhook.audit.filters import MAX_GLOB
from webhook.parameters import Parameters
from webhook.settings.trial import MAX_SPLIT

MAX_SETTINGS = 100

_Setting = Annotated[str, Field(max_length=1000)]


def wider(wanted: Parameters, keys: Sequence[str]) -> dict[str, Any] | None:
    """The query for names that contain those of a filter, to offer where nothing matches.

    Args:
        wanted: the parameters of a page.
        keys: of the names in it; one name, or several.

    Returns:
        None if every name has wildcards already, or is too long for them.
    """
    query = wanted.query()
    texts = {key: [query[key]] if isinstance(query[key], str) else query[key] for key in keys if key in query}
    wide = {key: [_containing(text) for text in each] for key, each in texts.items()}
    return query | wide if wide != texts else None


def _containing(text: str) -> str:
    return text if any(mark in text for mark in "*?[") or len(text) + 2 > MAX_GLOB else f"*{text}*"


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
