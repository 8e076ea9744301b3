"""A container requests more or less than the policy allows in its namespace, or may get a card that it does not allow.

Refuses:  more or less memory, cores or devices than the policy's `limits` allow a container of the namespace
Why:      a namespace gets a share of the cards, and Volcano's queues limit all pods together, but not one of them.

Memory is in MiB of one card or NPU, and cores are per cent of it. So the memory of gpushare, whose unit depends on its device
plugin, and AI cores are not compared. A container without memory gets all of a device: an NPU, or the largest card that the
pod may get; while the nodes are unknown, that is a doubt. A container without cores reserves none, and may use all.

Every card that has the memory and that the pod's annotations leave has to be allowed, since the scheduler takes any of them;
but not those of nodes with too few of them. The cards of gpushare have no type. While the nodes are unknown, so are the types
of vGPU cards, and that is a doubt, too.
"""

from collections.abc import Iterable, Iterator

from webhook.devices.model import CARD_CORES
from webhook.devices.requests import MAX_QUANTITY, MAX_STATUS_UNITS, Amount
from webhook.pod.view import Container
from webhook.rules.api import ClusterFact, Context, Family, Finding, Findings, ReviewedPod, Role, deny, names, wording
from webhook.rules.policy_keys import CardLimits
from webhook.texts import and_more

DETAIL = "{who} requests {requested}, but the policy limits a container in namespace {namespace} to {bound}; {advice}"
WHOLE = "no device has so much, so remove {resource}: a whole device satisfies the limit"
NONE = "no smaller amount of {resource} is served, so ask an administrator for a higher limit"
FORBIDDEN = (
    "{who} requests {resource}, but the policy allows no devices in namespace {namespace}; remove it, or use a namespace that "
    "may have devices"
)
CARD = "{who} may get {card}, which the policy does not allow in namespace {namespace}; {advice}"
MAX_TYPES = 5  # of cards in a message
_TYPELESS = {Family.GPUSHARE: "a card of gpushare", Family.VGPU: "any vGPU card of a fleet that is unknown now"}


@deny(knows={ClusterFact.LIMITS}, reads=("nodes",))
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Compare each amount with the limits; where no device is allowed, name one of each container."""
    if context.effective.limits.get(Role.NUMBER, (0, MAX_QUANTITY))[1] == 0:
        first = {amount.container.where: amount for amount in reversed(pod.amounts) if amount.value != 0}
        for amount in reversed(first.values()):
            yield Finding.of_resource(FORBIDDEN, amount.container, amount.resource, namespace=context.request.namespace)
        return
    if context.effective.cards is not None:
        yield from _cards(pod, context.effective.cards, context)
    for amount in (*_written(pod), *_left_out(pod, context)):
        least, most = context.effective.limits.get(amount.role, (0, MAX_QUANTITY))
        factor = _factor(amount, context)
        value = None if amount.value is None else amount.value * factor
        if most < MAX_QUANTITY and (value is None or value > most):
            served = _served(amount, most, pod) // factor
            advice = f"write {amount.resource} {served} or less" if served else NONE.format(resource=amount.resource)
            yield _finding(amount, context, f"at most {most}", advice)
        elif (value or 0) < least if amount.raw is not None else amount.role is Role.CORES and least:
            wanted = -(-least // factor)
            advice = WHOLE if _has_none(amount, wanted, pod) else f"write {{resource}} {wanted} or more"
            yield _finding(amount, context, f"at least {least}", advice.format(resource=amount.resource))


def _cards(pod: ReviewedPod, limits: CardLimits, context: Context) -> Findings:
    """Find the containers that may get a card that is not allowed."""
    for container, family, types, number in _choices(pod, context):
        refused = [each for each in types if not limits.allows(family, each, number)]
        if refused:
            card = wording.quoted(refused[0]) if refused[0] else _TYPELESS.get(family, f"a device of {family}")
            detail = CARD.format(
                who=wording.container(container),
                card=f"{number} × {card}" if number > 1 else card,
                namespace=context.request.namespace,
                advice=_instead(limits, family, number, context),
            )
            unknown = family == Family.VGPU and not context.cluster.knows_nodes
            yield Finding(f"{container.where}.resources", detail, doubtful=unknown)


def _choices(pod: ReviewedPod, context: Context) -> Iterator[tuple[Container, Family, Iterable[str], int]]:
    """What each container may get: the family, the types of cards, and how many; an unknown type is empty."""
    for request in pod.slices:
        fitting = pod.eligible.giving(request.number or 1, request.memory or 0)
        types = dict.fromkeys([card.type for card in fitting]) if context.cluster.knows_nodes else [""]
        yield request.container, Family.VGPU, types, request.number or 1
    for npu in pod.npus:
        yield npu.container, Family.ASCEND, [npu.chip.word], npu.number
    for family in (Family.GPUSHARE, Family.MINDCLUSTER):
        for container in pod.requested.get(family, ()):
            numbers = [one.value or 1 for one in pod.amounts if (one.container, one.role) == (container, Role.NUMBER)]
            yield container, family, [""], max(numbers, default=1)


def _instead(limits: CardLimits, family: Family, number: int, context: Context) -> str:
    """Which cards are allowed, and how to choose them."""
    fleet = context.cluster.known_fleet
    kinds = [card for shape in (fleet.by_family[family] if fleet is not None else ()) for card, _ in shape.kinds]
    for most in dict.fromkeys((number, 1)):
        types = sorted({card.type for card in kinds if card.type and limits.allows(family, card.type, most)})
        if types:
            allowed = f"allowed are {and_more(types, MAX_TYPES)}{', one card of them' if most < number else ''}"
            chosen = f'; choose with the annotation {names.USE_GPUTYPE}: "{",".join(types[:MAX_TYPES])}"'
            return allowed + (chosen if family == Family.VGPU else "")
    words = [str(each.type or each.family) for each in limits.allow or ()]
    return f"allowed are {and_more(words, MAX_TYPES)}" if words else "request another kind of device"


def _served(amount: Amount, most: int, pod: ReviewedPod) -> int:
    """The most within a limit: of an NPU that is cut by templates the largest template, of a card what the status takes."""
    same = [npu for npu in pod.npus if npu.container is amount.container and npu.chip.memory_name == amount.resource]
    npu = same[0] if same else None
    if npu is None or npu.hami_core:
        sliced = [each for each in pod.slices if amount.family == Family.VGPU and each.container is amount.container]
        if amount.role is not Role.MEMORY or not sliced:
            return most
        factor, largest = pod.config.vgpu.memory_factor, pod.eligible.capacity
        # Cards and status are judged with fewer cards if the number is refused, too.
        number, allowed = sliced[0].number or 1, pod.context.effective.limits.get(Role.NUMBER, (0, MAX_QUANTITY))[1]
        few = number > allowed or pod.eligible.largest(number) is None
        units = min(most // factor, largest) if few and largest else most // factor
        full = (few and pod.memory.writing) or not pod.memory.status_takes(dict.fromkeys(sliced, units))
        return min(units, MAX_STATUS_UNITS if full else units) * factor
    parts = npu.chip.templates if npu.number == 1 else ()  # several NPUs are given whole only
    return max([size for size in (*parts, npu.chip.allocatable) if size <= most], default=0)


def _has_none(amount: Amount, memory: int, pod: ReviewedPod) -> bool:
    """Whether no device that a container may get has so much memory."""
    if amount.role is not Role.MEMORY:
        return False
    chips = [npu.chip.allocatable for npu in pod.npus if npu.chip.memory_name == amount.resource]
    slices = [one for one in pod.slices if amount.family == Family.VGPU and one.container is amount.container]
    return any([size < memory for size in chips]) or any(
        [pod.eligible.has_less(one.number or 1, memory) for one in slices]
    )


def _written(pod: ReviewedPod) -> Iterator[Amount]:
    """The amounts in comparable units; other rules report what is 0 or not usable, and memory that a percentage replaces."""
    shared = any(npu.hami_core for npu in pod.npus)
    for amount in pod.amounts:
        _, _, family, role, _, value = amount
        if pod.memory.is_replaced(amount):
            continue
        comparable = role is Role.NUMBER or family == Family.VGPU
        if value and (comparable or (family == Family.ASCEND and (role is Role.MEMORY or shared))):
            yield amount


def _left_out(pod: ReviewedPod, context: Context) -> Iterator[Amount]:
    """What containers may get of a device without an amount, with None in the place of the text."""
    vgpu, knows_nodes = context.cluster.config.vgpu, context.cluster.knows_nodes
    largest = pod.eligible.capacity if knows_nodes else None
    for request in pod.slices:
        if request.usable and (request.number or request.memory is not None):
            sized = request.memory or request.percentage is not None
            if not sized and (largest is not None or not knows_nodes):
                yield Amount(request.container, vgpu.memory_name, Family.VGPU, Role.MEMORY, None, largest)
            if not request.cores:
                yield Amount(request.container, vgpu.cores_name, Family.VGPU, Role.CORES, None, CARD_CORES)
    for npu in pod.npus:
        if npu.usable and npu.memory is None:
            whole = npu.chip.allocatable
            yield Amount(npu.container, npu.chip.memory_name, Family.ASCEND, Role.MEMORY, None, whole)
        if npu.usable and npu.hami_core and not npu.cores:
            yield Amount(npu.container, npu.chip.cores_name, Family.ASCEND, Role.CORES, None, CARD_CORES)


def _factor(amount: Amount, context: Context) -> int:
    """MiB in a unit of memory; 1 for other roles."""
    is_memory = (amount.family, amount.role) == (Family.VGPU, Role.MEMORY)
    return context.cluster.config.vgpu.memory_factor if is_memory else 1


def _finding(amount: Amount, context: Context, bound: str, advice: str) -> Finding:
    container, resource, _, role, raw, value = amount
    unit, factor = " MiB" if role is Role.MEMORY else "", _factor(amount, context)
    requested = f"{resource} {value}{f' ({value * factor} MiB)' if value and factor > 1 else ''}"
    if raw is None and role is Role.CORES:
        requested = f"no {resource} and so may use all of a device"
    elif raw is None:
        size = "whose size is unknown now" if value is None else f"of {value * factor} MiB"
        requested = f"no {resource} and so gets a whole device {size}"
    detail = DETAIL.format(
        who=wording.container(container),
        requested=requested,
        namespace=context.request.namespace,
        bound=f"{bound}{unit}",
        advice=advice,
    )
    return Finding(wording.resource_path(container, resource), detail, doubtful=value is None)
