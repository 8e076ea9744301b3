"""Names of a pod that are almost those of a dialect, that the dialect reads at another place, or that nobody understands.

Without them the rest of the pod asks for something else, such as a whole card instead of a share.
"""

from collections.abc import Collection, Iterable, Iterator
from difflib import get_close_matches
from typing import NamedTuple

from webhook.devices import wording
from webhook.devices.dialects import KNOWN, Dialect, Place
from webhook.pod import quantity
from webhook.pod.view import PodView

MAX_COMPARED = 20  # names of a pod: comparing is slow, and a pod may have very many names
MAX_NAME = 60  # characters of a name that is compared
CLOSE = {Place.RESOURCE: 0.75, Place.ANNOTATION: 0.9, Place.LABEL: 0.9}  # how similar two names are, from 0 to 1

_READ_AT = {
    Place.RESOURCE: "under resources.limits of a container",
    Place.ANNOTATION: "as an annotation of the pod",
    Place.LABEL: "as a label of the pod",
}


class Misspelt(NamedTuple):
    """A name that is not the dialect's where it stands, and a sentence about it.

    Attributes:
        path: the field.
        name: as written.
        place: where it stands.
        who: the container; empty if it is the pod's.
        advice: what is wrong, and what to write; empty for a name of that system which is not understood.
    """

    path: str
    name: str
    place: Place
    who: str
    advice: str


def misspelt_names(dialect: Dialect, pod: PodView, served: Collection[str]) -> Iterator[Misspelt]:
    """Find such names, the same whatever the pod's order.

    Args:
        dialect: that the pod uses.
        pod: the pod.
        served: resources that mean something here, so that they are not misspelt.
    """
    left = iter(range(MAX_COMPARED))
    for container in pod.init_containers + pod.containers:
        asked = {**container.requests, **container.limits}
        names = [name for name in asked if name not in served and quantity.whole(asked[name]) != 0]
        who = wording.container(container)
        for name, why in _near(dialect, Place.RESOURCE, names, (), left):
            path = wording.resource_path(container, name)
            yield Misspelt(path, name, Place.RESOURCE, who, why and f"{who} requests {why}")
    containers = [container.name for container in pod.init_containers + pod.containers]
    for name, why in _near(dialect, Place.ANNOTATION, pod.annotations, containers, left):
        path = wording.annotation_path(name)
        yield Misspelt(path, name, Place.ANNOTATION, "", why and f"the pod has the annotation {why}")
    for name, why in _near(dialect, Place.LABEL, pod.labels, (), left):
        yield Misspelt(f"metadata.labels[{name}]", name, Place.LABEL, "", why and f"the pod has the label {why}")


def _near(
    dialect: Dialect, place: Place, names: Iterable[str], containers: Collection[str], left: Iterator[int]
) -> Iterator[tuple[str, str]]:
    """The names at a place that the dialect does not have there, each with the end of a sentence about it.

    The sentence is empty for a name that begins like the dialect's names, but resembles none of them. `left` bounds how many
    names are compared.
    """
    here = {word.name for word in dialect.words if word.place is place}
    if place is Place.ANNOTATION:
        here |= {dialect.chooser} if dialect.chooser else set()
        named = [word.name for word in dialect.words if word.place is Place.CONTAINER_ANNOTATION]
        here |= {name.format(container) for name in named for container in containers}
    elsewhere = {
        word.name: word.place
        for word in dialect.words
        if word.name not in here and (word.role is not None or word.here) and (word.sign or "/" in word.name)
    }
    spelt = {_spelling(name): name for name in sorted(here)}
    domains = {_domain(name) for name in (*here, *elsewhere)}
    others = (
        name for name in names if name not in here and (_domain(name) in domains or name.startswith(dialect.prefixes))
    )
    for name in others:
        compared = next(left, None) is not None
        shown = wording.unquoted(name)
        if name in elsewhere:
            yield name, f"{shown}, which {dialect.title} reads only {_READ_AT[elsewhere[name]]}; write it there"
        elif near := compared and len(name) <= MAX_NAME and get_close_matches(_spelling(name), spelt, 1, CLOSE[place]):
            yield name, f"{shown}, which {dialect.title} does not have; did you mean {spelt[near[0]]}?"
        elif name.startswith(dialect.prefixes) and name not in KNOWN:
            yield name, ""
            if not compared:
                return  # one is enough to end a translation


def _domain(name: str) -> str:
    return name.rpartition("/")[0]


def _spelling(name: str) -> str:
    """A resource without its domain, which is the same; an annotation as a whole."""
    return name.rpartition("/")[2].lower().replace("_", "-")
