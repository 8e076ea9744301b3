"""Judge and explain one pod on the nodes of one family, as a review does."""

from webhook.devices.config_file import parse_device_config
from webhook.devices.explanation import PlacementRequest
from webhook.devices.families import Family
from webhook.devices.fleet import build_fleet
from webhook.devices.requests import DevicePod
from webhook.devices.verdict import Fits
from webhook.pod.view import PodView
from webhook.settings.snapshot import read_nodes
from webhook.volcano.target import Target


def config_with_chips(*words, hami_core=False, **fields):
    """A device config with these kinds of NPUs, all with these fields."""
    chips = [
        {"commonWord": word, "resourceName": f"huawei.com/{word}", "resourceMemoryName": f"huawei.com/{word}-memory"}
        for word in words
    ]
    section = {"hamiVnpuCore": hami_core, "configs": [chip | fields for chip in chips]}
    return parse_device_config({"vnpus": section}, "test")


EMPTY = parse_device_config({}, "test")


def fleet_of(*items, config=EMPTY, target=None, declared=None):
    """The fleet of nodes as the API server returns them."""
    return build_fleet(read_nodes(items, config), config, target or Target(), declared or {})


class Explaining:
    """The nodes of one family.

    Attributes:
        fleet: all nodes.
        family: the family.
        part: its nodes.
        denies: whether a rule refuses pods; all do by default.
    """

    def __init__(self, family, nodes, config, *, target=None, allowed=()):
        usual = (
            Target(volcano=(1, 16, 0)) if family == Family.ASCEND else Target()
        )  # before, NPUs are not shared in software
        self.fleet = build_fleet(nodes, config, target or usual)
        self.family = self.fleet.families[family]
        self.part = self.fleet.parts[family]
        self.denies = lambda rule: rule not in allowed

    def verdicts(self, raw, selector=None):
        """The verdict on each request of a pod."""
        view = PodView(raw)
        selector = selector or view.selector
        members = None if selector is None else self.fleet.index.selected(selector)
        requests = self.family.requests(DevicePod(view, self.family.config), members, self.denies)
        return [self.family.judge(request, self.part, members) for request in requests]

    def verdict(self, raw, selector=None):
        """The verdict on the only request."""
        (found,) = self.verdicts(raw, selector)
        return found

    def fits(self, raw):
        """Whether all requests of a pod fit."""
        return all(isinstance(verdict, Fits) for verdict in self.verdicts(raw))

    def explain(self, raw, search=None):
        """The explanations of a pod, one for each kind of device."""
        pod = DevicePod(PodView(raw), self.family.config)
        return list(PlacementRequest(pod, self.family, True, self.denies, search=search).explain(self.part))

    def shapes(self, raw):
        """The explanation of each shape for a pod with one kind of device."""
        (explanation,) = self.explain(raw)
        return explanation.shapes


def is_cut_short(explanation):
    """Whether the explanation reports that the search for a change ended early."""
    return "cut short" in explanation.sentences[-1].text


def format_change(change):
    """A change as a short text."""
    if change is None:
        return None
    return change.remove if hasattr(change, "remove") else f"{change.container.name} {change.resource} {change.most}"


def requesting(resources, *containers, init=(), labels=None, annotations=None, **spec):
    """A pod whose containers request amounts of these resources; None is omitted."""
    listed = [
        [
            {
                "name": f"{kind}{at}",
                "resources": {"limits": {n: v for n, v in zip(resources, amounts, strict=False) if v is not None}},
            }
            for at, amounts in enumerate(some)
        ]
        for kind, some in (("c", containers), ("i", init))
    ]
    metadata = {"labels": labels or {}, "annotations": annotations or {}}
    return {"metadata": metadata, "spec": {"containers": listed[0], "initContainers": listed[1], **spec}}
