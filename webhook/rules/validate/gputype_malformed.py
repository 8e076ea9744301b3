"""The scheduler splits gputype lists at commas and trims nothing.

Reads:    the annotations nvidia.com/use-gputype and nvidia.com/nouse-gputype
Refuses:  an empty value, an empty element, spaces around an element
Why:      an empty element is a substring of every card type: use "A100," allows every card, nouse "T4," excludes every card.
"""

from collections.abc import Iterator

from webhook import names
from webhook.devices.requests import DevicePod
from webhook.devices.vgpu.eligibility import clean_words
from webhook.pod.view import ANNOTATIONS
from webhook.rules import wording
from webhook.rules.base import VGPU_ONLY, Context, Finding, Level, Validation

EFFECTS = {names.USE_GPUTYPE: "allows", names.NOUSE_GPUTYPE: "excludes"}

DETAIL = "{key} is {value}, {problem}; {advice}"
EMPTY = '{key} is "", which {effect} every card; {advice}'
EMPTY_ELEMENT = "whose empty element {effect} every card"
SPACES = "whose spaces are taken literally"
NAME_TYPE = "name a card type or remove the annotation"


def check(pod: DevicePod, context: Context) -> Iterator[Finding]:
    """Find lists that the scheduler reads differently from what the author meant."""
    for key, effect in EFFECTS.items():
        text = pod.view.annotation(key)
        if text is None:
            continue
        meant = ",".join(clean_words(text))
        if text != meant:
            empty = any(not word for word in text.split(","))
            problem = EMPTY_ELEMENT.format(effect=effect) if empty else SPACES
            advice = f"write {wording.quoted(meant)}" if meant else NAME_TYPE
            detail = DETAIL.format(key=key, value=wording.quoted(text), problem=problem, advice=advice)
            yield Finding(wording.annotation_path(key), detail)
        elif not meant:
            detail = EMPTY.format(key=key, effect=effect, advice=NAME_TYPE)
            yield Finding(wording.annotation_path(key), detail)


RULE = Validation(
    id="gputype-malformed",
    level=Level.DENY,
    summary="use/nouse-gputype that is empty, has an empty element or spaces around an element",
    check=check,
    families=VGPU_ONLY,
    fields=ANNOTATIONS,
)
