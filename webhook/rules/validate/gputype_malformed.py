"""The scheduler splits gputype lists at commas and trims nothing.

Refuses:  a nouse-gputype that excludes every card; warns of other gputype lists with empty elements or spaces
Why:      an empty element is a substring of every card type: use "A100," allows every card, nouse "T4," excludes every card.

A word with a space is part of many card types: " A800" of "NVIDIA-NVIDIA A800-SXM4-80GB". What it leaves is for
no-eligible-card to decide.

A nouse-gputype excludes every card if it is empty or has an empty element.
"""

from webhook.devices.vgpu.eligibility import clean_words, excludes_every_card
from webhook.rules.api import VGPU_ONLY, Context, Finding, Findings, ReviewedPod, annotations, deny, names, wording

EFFECTS = {names.USE_GPUTYPE: "allows", names.NOUSE_GPUTYPE: "excludes"}

DETAIL = "{key} is {value}, {problem}; {advice}"
EMPTY = '{key} is "", which {effect} every card; {advice}'
EMPTY_ELEMENT = "whose empty element {effect} every card"
SPACES = "whose spaces are taken literally"
NAME_TYPE = "name a card type or remove the annotation"


@deny(families=VGPU_ONLY, needs=annotations(names.USE_GPUTYPE, names.NOUSE_GPUTYPE))
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Find lists that the scheduler reads differently from what the author meant."""
    for key, effect in EFFECTS.items():
        text = pod.view.annotation(key)
        if text is None:
            continue
        meant = ",".join(clean_words(text))
        if meant and text == meant:
            continue
        empty = any(not word for word in text.split(","))
        problem = EMPTY_ELEMENT.format(effect=effect) if empty else SPACES
        advice = f"write {wording.quoted(meant)}" if meant else NAME_TYPE
        template = DETAIL if text else EMPTY
        detail = template.format(key=key, value=wording.quoted(text), problem=problem, effect=effect, advice=advice)
        refuses = key == names.NOUSE_GPUTYPE and excludes_every_card(pod.view)
        yield Finding(wording.annotation_path(key), detail, doubtful=not refuses)
