"""An annotation that almost has the name of one that Volcano reads is most likely misspelt.

Finds:    a name that differs in a few letters from an annotation by which a pod chooses its cards
Why:      nothing reads it, so the pod gets any card in any mode.
"""

from collections.abc import Iterator
from difflib import get_close_matches
from itertools import islice

from webhook import names
from webhook.pod.fields import annotations
from webhook.rules.api import Context, Finding, Findings, ReviewedPod, warn, wording
from webhook.rules.dialects import DIALECT, dialect_names

DETAIL = "the annotation {key} is read by nothing; did you mean {meant}?"

MAX_COMPARED = 4  # a pod may have very many annotations, and comparing is slow
MAX_KEY = 40  # characters
CLOSE = 0.9  # how similar two names are, from 0 to 1: two other letters among twenty
READ = names.CHOOSING_ANNOTATIONS
_KNOWN = READ | names.RESERVED_ANNOTATIONS
_BEGINNINGS = tuple(sorted({f"{key.partition('/')[0]}/" for key in READ}))


@warn(
    "an annotation whose name differs in a few letters from one that is read",
    needs=annotations(*(f"{start}*" for start in _BEGINNINGS)),
    reads=(DIALECT,),
)
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Find names that are close to one that is read."""
    for key in islice(_unknown(pod), MAX_COMPARED):
        meant = get_close_matches(key, sorted(READ), n=1, cutoff=CLOSE)
        if meant and f"annotation {key}" not in dialect_names(pod, context):  # which foreign-dialect reports
            yield Finding(wording.annotation_path(key), DETAIL.format(key=wording.quoted(key), meant=meant[0]))


def _unknown(pod: ReviewedPod) -> Iterator[str]:
    for key in pod.view.annotations:
        if key not in _KNOWN and len(key) <= MAX_KEY and key.lower().startswith(_BEGINNINGS):
            yield key
