"""Explainers of one pod, made as a review makes them."""

from webhook.devices.explanation import PlacementRequest
from webhook.devices.nearest import ChangeSearch
from webhook.devices.requests import DevicePod
from webhook.devices.target import Target


def placement_request(view, family, config, part, *, target=None, allowed=()):
    """A pod, judged while all rules but the allowed ones refuse."""
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


def explain_all(make, request, requested, part):
    """The verdict and the explanation of each shape."""
    search = ChangeSearch(len(request.pod.amounts))
    explainers = [make(request, requested, part, shape) for shape in part.shapes]
    return [(one.verdict(), one.explain(search)) for one in explainers]


def is_cut_short(told):
    """Whether the search for a change ended early."""
    return "cut short" in told.sentences[-1].text


def spelled(change):
    """A change in short."""
    if change is None:
        return None
    return change.remove if hasattr(change, "remove") else f"{change.container.name} {change.resource} {change.most}"


def written(raw, change):
    """The pod with a change written into it."""
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
