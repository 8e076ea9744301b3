"""Build explanations of one pod as a review does."""

from webhook.devices.explanation import PlacementRequest
from webhook.devices.nearest import ChangeSearch
from webhook.devices.requests import DevicePod
from webhook.volcano.target import Target


def placement_request(view, family, config, part, *, target=None, allowed=()):
    """The placement request of a pod, under a policy in which all rules deny except the allowed ones."""
    nodes = view.selector
    return PlacementRequest(
        path="",
        pod=DevicePod(view, config),
        family=family,
        config=config,
        target=target or Target(),
        node_index=part.index,
        written=nodes,
        nodes=nodes,
        denies=lambda rule: rule not in allowed,
    )


def selected(part, selector):
    """The nodes that a selector leaves, as bits; None for all."""
    return None if selector is None else part.index.selected(selector)


def explain_all(make, request, requested, part):
    """The verdict and the explanation of each shape."""
    search = ChangeSearch()
    explainers = [make(request, requested, part, shape) for shape in part.shapes]
    return [(explainer.verdict(), explainer.explain(search)) for explainer in explainers]


def is_cut_short(explanation):
    """Whether the explanation reports that the search for a change ended early."""
    return "cut short" in explanation.sentences[-1].text


def format_change(change):
    """A change as a short text."""
    if change is None:
        return None
    return change.remove if hasattr(change, "remove") else f"{change.container.name} {change.resource} {change.most}"


def apply_change(raw, change):
    """Apply a change to the pod, and return it."""
    if hasattr(change, "remove"):
        for part in (
            raw["spec"],
            raw.get("metadata", {}).get("annotations", {}),
            raw.get("metadata", {}).get("labels", {}),
        ):
            part.pop(change.remove, None)
    else:
        where = raw["spec"][change.container.kind][change.container.index]
        where["resources"]["limits"][change.resource] = change.most
    return raw
