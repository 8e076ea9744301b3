"""A gputype word that matches no card of the fleet.

Finds:    a gputype word that matches no card type of the fleet
Why:      it is most likely misspelt: use-gputype then allows fewer cards than intended, nouse-gputype excludes none.
"""

from webhook.devices.vgpu.eligibility import clean_words
from webhook.devices.vgpu.refusals import card_types
from webhook.rules.api import VGPU_ONLY, Context, Finding, Findings, ReviewedPod, annotations, names, warn, wording


@warn(families=VGPU_ONLY, needs=annotations(names.USE_GPUTYPE, names.NOUSE_GPUTYPE), fleet=True)
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Find words that match no card."""
    shapes = context.cluster.known_fleet.vgpu.shapes if context.cluster.known_fleet is not None else ()
    if not shapes:
        return
    for key in (names.USE_GPUTYPE, names.NOUSE_GPUTYPE):
        text = pod.view.annotation(key)
        if key == names.NOUSE_GPUTYPE and names.USE_GPUTYPE in pod.view.annotations:
            return  # it is never read: gputype-shadowed
        if text:
            types = {card.type.upper() for shape in shapes for card, _ in shape.kinds}
            for word in dict.fromkeys(clean_words(text)):
                if not any(word.upper() in known for known in types):
                    yield Finding(
                        wording.annotation_path(key),
                        f"{key}: no card matches {wording.quoted(word)}; there are {card_types(shapes)}",
                    )
