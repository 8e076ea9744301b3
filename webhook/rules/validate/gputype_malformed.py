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

_EFFECT = {names.USE_GPUTYPE: "allows", names.NOUSE_GPUTYPE: "excludes"}


def check(pod: DevicePod, context: Context) -> Iterator[Finding]:
    """Find lists that the scheduler reads differently from what the author meant."""
    for key, effect in _EFFECT.items():
        text = pod.view.annotation(key)
        if text is None:
            continue
        meant = ",".join(clean_words(text))
        if text != meant:
            empty = any(not word for word in text.split(","))
            problem = f"whose empty element {effect} every card" if empty else "whose spaces are taken literally"
            advice = f"write {wording.quoted(meant)}" if meant else "name a card type or remove the annotation"
            yield Finding(wording.annotation_path(key), f"{key} is {wording.quoted(text)}, {problem}; {advice}")
        elif not meant:
            yield Finding(
                wording.annotation_path(key),
                f'{key} is "", which {effect} every card; name a card type or remove the annotation',
            )


RULE = Validation(
    id="gputype-malformed",
    level=Level.DENY,
    summary="use/nouse-gputype that is empty, has an empty element or spaces around an element",
    check=check,
    families=VGPU_ONLY,
    fields=ANNOTATIONS,
)
