"""Reviews what the webhook and Volcano read as settings, at the moment that it is written.

A policy that cannot be used is refused, with the messages of `vgpu-webhook policy check`. All else is a warning, with the words
of the doctor's checks: another component reads the object, too, and may want what looks wrong here.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

from webhook import names
from webhook.devices import config_checks
from webhook.devices.config import DeviceConfig, VgpuConfig
from webhook.errors import ConfigError, Mistakes
from webhook.lenient import obj, text
from webhook.outcome import MAX_FINDINGS, Outcome, Violation
from webhook.policy.levels import Effective
from webhook.policy.warnings import warnings_of
from webhook.results import CheckResult, Status
from webhook.review.violations import decision_id, not_reviewed
from webhook.rules import limits
from webhook.rules.choices import DENY, Level
from webhook.rules.context import KnownCluster
from webhook.rules.validate import quota_memory
from webhook.settings.table import DEVICE_CONFIG, DEVICE_CONFIG_NAMESPACES, POLICY, SCHEDULER, DocumentSetting
from webhook.snapshot import Snapshot
from webhook.texts import shorten
from webhook.volcano import scheduler_checks
from webhook.volcano.scheduler import DEVICESHARE
from webhook.wire.models import Request

Found = Iterator[Violation]

# In the place of a rule's id.
BAD_POLICY = "policy"
DOUBTFUL_CONFIG = "device-config"
DOUBTFUL_SCHEDULER = "scheduler-config"
DOUBTFUL_QUOTA = "quota-limits"
DOUBTFUL_QUEUE = "queue-limits"

MAX_TEXT = 64 << 10  # characters of a setting; the review of a longer one would take seconds, and anyone can request it
MAX_LINE = 230  # of a finding with its remedy in one; a longer one has two lines, as the API server cuts warnings
MAX_SENTENCE = 1000  # characters of a line: the texts in it may be long
_CONFIG_MAP = "", "ConfigMap"
_QUEUE = names.QUEUE_API.partition("/")[0], "Queue"
_QUOTA = "", "ResourceQuota"


def review_setting(request: Request, snapshot: Snapshot) -> Outcome:
    """Review a policy, a device config, a configuration of the scheduler, a ResourceQuota or a Queue; nothing else."""
    find = _reviewer(request)
    if find is None or request.sub_resource or request.operation not in ("CREATE", "UPDATE") or request.object is None:
        return not_reviewed(request, "validate")
    found = find(request, snapshot)
    if found is None:
        return not_reviewed(request, "validate")
    kept = tuple(islice(found, MAX_FINDINGS))
    return Outcome(
        id=decision_id(request, "validate"),
        allowed=all(violation.level is not DENY for violation in kept),
        violations=kept,
        object=request.object,
    )


def _reviewer(request: Request) -> Callable[[Request, Snapshot], Found | None] | None:
    """What reviews an object; it returns None if the object does not concern the webhook, or did not change."""
    return {_CONFIG_MAP: _config_map, _QUOTA: _quota, _QUEUE: _queue}.get((request.group, request.kind))


# --- ConfigMaps -----------------------------------------------------------------------------------------------------


class _Written(NamedTuple):
    """A setting that is written: its place, its text and the one before."""

    place: str
    now: object
    before: object
    request: Request
    snapshot: Snapshot


def _config_map(request: Request, snapshot: Snapshot) -> Found | None:
    found = next((each for each in _CONFIG_MAPS if _is_read(each[0], request, snapshot)), None)
    if found is None:
        return None
    setting, check, find, command = found
    now, before = (setting.text_in(obj(raw, "data")) for raw in (request.object, request.old_object))
    if request.old_object is not None and now == before:
        return None
    path, place = f"data[{setting.key}]", "/".join(filter(None, (request.namespace, _name(request))))
    if isinstance(now, str) and len(now) > MAX_TEXT:
        why = f"{len(now):,} characters are more than the {MAX_TEXT:,} that are checked when they are written; run `{command}`"
        return iter([Violation(check, Level.WARN, path, why)])
    if isinstance(before, str) and len(before) > MAX_TEXT:
        before = None
    return find(path, _Written(place, now, before, request, snapshot))


def _name(request: Request) -> str:
    return request.name or text(request.object, "metadata", "name")


def _is_read(setting: DocumentSetting[Any], request: Request, snapshot: Snapshot) -> bool:
    """Whether a setting is read from a ConfigMap of this name and namespace; only files leave the namespace open."""
    name, namespace = _name(request), request.namespace
    places = snapshot.places.get(setting.part, setting.places)
    return any(name == named and (not namespace or where in (namespace, "")) for where, named in places)


def _policy(path: str, written: _Written) -> Found:
    try:
        policy = POLICY.read_text(written.now, written.place)
    except ConfigError as error:
        mistakes = error.each if isinstance(error, Mistakes) else (str(error),)
        yield from [Violation(BAD_POLICY, DENY, path, mistake) for mistake in mistakes]
        return
    for doubt in warnings_of(policy, written.request.day):
        yield Violation(BAD_POLICY, Level.WARN, path, f"{doubt.path}: {doubt.detail}")


def _device_config(path: str, written: _Written) -> Found:
    return _warned(DOUBTFUL_CONFIG, ((path, result) for result in _of_device_config(written)))


def _of_device_config(written: _Written) -> Iterator[CheckResult]:
    place, target = written.place, written.snapshot.target
    if target.scheduler is not None:
        yield from config_checks.place(place, target.scheduler)
    try:
        document = DEVICE_CONFIG.document_of(written.now, place)
        config: DeviceConfig = DEVICE_CONFIG.parse(document, f"{place}: {DEVICE_CONFIG.key}")
    except ConfigError as error:
        yield from config_checks.unreadable(str(error))
        return
    for check in config_checks.CHECKS.values():
        yield from check(place, document, target)
    former = _former(written.before, place)
    yield from config_checks.plugin_names(config.vgpu, former[0] if former else VgpuConfig(), target)
    if former is not None:
        yield from config_checks.changes(former[1], document)


def _former(before: object, place: str) -> tuple[VgpuConfig, object] | None:
    """The device config so far, and its document; None without one that can be read."""
    try:
        document = DEVICE_CONFIG.document_of(before, place)
        return DEVICE_CONFIG.parse(document, place).vgpu, document
    except ConfigError:
        return None


def _scheduler(path: str, written: _Written) -> Found:
    found = _of_scheduler(written.place, written.now, written.snapshot)
    return _warned(DOUBTFUL_SCHEDULER, ((path, result) for result in found))


def _of_scheduler(place: str, now: object, snapshot: Snapshot) -> Iterator[CheckResult]:
    try:
        conf = SCHEDULER.read_text(now, place)
    except ConfigError as error:
        yield from scheduler_checks.unreadable(str(error))
        return
    if conf is None:
        return
    if conf.plugin(DEVICESHARE) is None:
        yield from scheduler_checks.scheduler_config(place, conf, snapshot.target)
        return
    for check in scheduler_checks.CHECKS.values():
        yield from check(place, conf, snapshot.target)
    yield from scheduler_checks.families(place, conf, snapshot.target, _registered(snapshot))
    yield from scheduler_checks.config_place(place, conf, DEVICE_CONFIG_NAMESPACES)


def _registered(snapshot: Snapshot) -> Mapping[tuple[str, ...], list[str]]:
    """The nodes with devices, by the switches that make the scheduler use them."""
    fleet, found = snapshot.fleet, dict[tuple[str, ...], list[str]]()
    if fleet is None or not fleet.complete:
        return found
    for family in fleet.families.values():
        members = [shape.members for shape in fleet.by_family[family.id]]
        nodes = [name for number, name in enumerate(fleet.index.names) if any(each >> number & 1 for each in members)]
        found |= {family.switches: nodes} if nodes and family.switches else {}
    return found


def _lines(check: str, path: str, result: CheckResult) -> Found:
    """A warning with what to do, in one or two lines."""
    if result.status in (Status.OK, Status.UNCHECKED):
        return
    together = f"{result.message}; {result.remedy}"
    both = [together] if len(together) <= MAX_LINE else [result.message, f"do: {result.remedy}"]
    yield from [Violation(check, Level.WARN, path, shorten(sentence, MAX_SENTENCE)) for sentence in both]


# The setting, what stands in the place of a rule's id, the review, and what checks a longer text.
_CONFIG_MAPS: tuple[tuple[DocumentSetting[Any], str, Callable[[str, _Written], Found], str], ...] = (
    (POLICY, BAD_POLICY, _policy, "vgpu-webhook policy check FILE"),
    (DEVICE_CONFIG, DOUBTFUL_CONFIG, _device_config, "vgpu-webhook doctor"),
    (SCHEDULER, DOUBTFUL_SCHEDULER, _scheduler, "vgpu-webhook doctor"),
)

# --- limits ---------------------------------------------------------------------------------------------------------


def _quota(request: Request, snapshot: Snapshot) -> Found | None:
    effective, raw = snapshot.policy.of(request.namespace), request.object or {}
    if effective.exempt or _unchanged(request) or not limits.names_devices(obj(raw, "spec", "hard"), snapshot):
        return None
    return _warned(DOUBTFUL_QUOTA, limits_of_quota(raw, effective, snapshot))


def limits_of_quota(raw: Mapping[str, Any], effective: Effective, cluster: KnownCluster) -> limits.Found:
    """What a ResourceQuota does not limit, under the policy of its namespace; nothing in an exempt one."""
    compared = effective.levels[quota_memory.check.id] in (DENY, Level.WARN)
    return iter(()) if effective.exempt else limits.of_quota(raw, cluster, compared=compared)


def _queue(request: Request, snapshot: Snapshot) -> Found | None:
    spec = obj(request.object, "spec")
    amounts = obj(spec, "capability") | obj(spec, "deserved") | obj(spec, "guarantee", "resource")
    if _unchanged(request) or not limits.names_devices(amounts, snapshot):
        return None
    return _warned(DOUBTFUL_QUEUE, limits.of_queue(request.object or {}, snapshot))


def _warned(check: str, found: limits.Found) -> Found:
    for path, result in found:
        yield from _lines(check, path, result)


def _unchanged(request: Request) -> bool:
    return request.old_object is not None and obj(request.object, "spec") == obj(request.old_object, "spec")
