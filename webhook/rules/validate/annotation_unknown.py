"""An annotation that almost has the name of one that Volcano reads is most likely misspelt, or never was one.

Finds:    an annotation about cards that is not read, such as one that differs in a few letters from one that is
Why:      nothing reads it, so the pod gets any card in any mode.

Of names that nothing reads, those count that are almost one by which a pod chooses its cards, or are like volcano.sh/gpu… or
hami.io/use-…-uuid.
"""

import re
from collections.abc import Iterator
from difflib import get_close_matches
from itertools import islice

from webhook.rules.api import Context, Finding, Findings, ReviewedPod, annotations, names, warn, wording
from webhook.rules.dialects import DIALECT, dialect_names

DETAIL = "the annotation {key} is read by nothing; {remedy}"
REMOVE = f"remove it, or choose cards by {names.USE_GPUTYPE} or {names.VGPU_MODE}"
CHOSEN = "remove it: Volcano chooses the NPUs"

MAX_COMPARED = 4  # a pod may have very many annotations, and comparing is slow
MAX_KEY = 40  # characters
CLOSE = 0.9  # how similar two names are, from 0 to 1: two other letters among twenty
READ = names.CHOOSING_ANNOTATIONS
_KNOWN = READ | names.RESERVED_ANNOTATIONS | {names.GPU_UNHEALTHY_IDS}
_OF_CARDS = (f"{names.VOLCANO_DOMAIN}gpu", f"{names.VOLCANO_DOMAIN}vgpu")
# What Volcano's job controller writes. Source: volcano `pkg/controllers/job/job_controller_util.go` (createJobPod).
_OF_JOBS = tuple(f"{names.VOLCANO_DOMAIN}{of}-" for of in ("job", "queue", "task", "template"))
_UUIDS = re.compile(f"{names.HAMI_PREFIX}(no-)?use-.*-uuid")
_BEGINNINGS = tuple(sorted({names.HAMI_PREFIX, *(f"{key.partition('/')[0]}/" for key in READ)}))


@warn(needs=annotations(*(f"{start}*" for start in _BEGINNINGS)), reads=(DIALECT,))
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Find names that are close to one that is read, or begin like Volcano's."""
    for key in islice(_unknown(pod), MAX_COMPARED):
        meant = get_close_matches(key.lower(), sorted(READ), n=1, cutoff=CLOSE)
        of_npus = _UUIDS.fullmatch(key) is not None
        about_cards = meant or of_npus or key.lower().startswith(_OF_CARDS)
        if not about_cards or f"annotation {key}" in dialect_names(pod, context):
            continue  # foreign-dialect reports what is of a dialect
        remedy = f"did you mean {meant[0]}?" if meant else CHOSEN if of_npus else REMOVE
        yield Finding(wording.annotation_path(key), DETAIL.format(key=wording.quoted(key), remedy=remedy))


def _unknown(pod: ReviewedPod) -> Iterator[str]:
    resources = pod.config.resources.exact  # which resource-as-annotation reports
    short = (key for key in pod.view.annotations if key.lower().startswith(_BEGINNINGS) and len(key) <= MAX_KEY)
    return (key for key in short if not (key in _KNOWN or key in resources or key.startswith(_OF_JOBS)))
