"""Every rule, in order. Adding one is a file, a line here and a case file in tests/rules/cases."""

from webhook.rules.base import Mutation, Validation
from webhook.rules.mutate import (
    ascend_memory_template,
    default_cores,
    default_memory,
    default_number,
    hide_devices,
    limits_from_requests,
    percentage_to_memory,
    scheduler_name,
    toleration,
)
from webhook.rules.mutate import memory_above_card as lower_memory
from webhook.rules.validate import (
    ascend_core_invalid,
    ascend_memory_oversize,
    ascend_mode_unread,
    ascend_partial_several,
    card_count,
    cores_range,
    count_missing,
    family_mixed,
    fits_no_node,
    fits_tightly,
    foreign_scheduler,
    gpushare_annotation,
    gputype_malformed,
    gputype_shadowed,
    gputype_unknown,
    host_access,
    init_container_device,
    isolation_env,
    isolation_env_from,
    isolation_env_tuned,
    isolation_mount,
    limits_missing,
    memory_above_card,
    mode_invalid,
    no_eligible_card,
    node_name_set,
    node_selector_unmatched,
    number_zero,
    percentage_range,
    percentage_unresolved,
    privileged_device,
    quantity_invalid,
    reserved_annotation,
    several_device_containers,
    split_count,
    toleration_missing,
    unknown_resource,
    uuid_unsupported,
    visible_devices,
)

# The order matters: each sees what the ones before it wrote.
MUTATIONS: tuple[Mutation, ...] = (
    limits_from_requests.RULE,
    default_number.RULE,
    percentage_to_memory.RULE,
    default_memory.RULE,
    default_cores.RULE,
    lower_memory.RULE,
    ascend_memory_template.RULE,
    scheduler_name.RULE,
    toleration.RULE,
    hide_devices.RULE,
)

# The order is that of the messages: static rules first, then what the fleet says.
VALIDATIONS: tuple[Validation, ...] = (
    quantity_invalid.RULE,
    limits_missing.RULE,
    number_zero.RULE,
    count_missing.RULE,
    cores_range.RULE,
    percentage_range.RULE,
    percentage_unresolved.RULE,
    mode_invalid.RULE,
    gputype_malformed.RULE,
    gputype_shadowed.RULE,
    uuid_unsupported.RULE,
    family_mixed.RULE,
    init_container_device.RULE,
    several_device_containers.RULE,
    foreign_scheduler.RULE,
    node_name_set.RULE,
    toleration_missing.RULE,
    privileged_device.RULE,
    isolation_env.RULE,
    isolation_env_from.RULE,
    isolation_env_tuned.RULE,
    isolation_mount.RULE,
    host_access.RULE,
    visible_devices.RULE,
    reserved_annotation.RULE,
    gpushare_annotation.RULE,
    ascend_memory_oversize.RULE,
    ascend_partial_several.RULE,
    ascend_core_invalid.RULE,
    ascend_mode_unread.RULE,
    unknown_resource.RULE,
    card_count.RULE,
    no_eligible_card.RULE,
    memory_above_card.RULE,
    split_count.RULE,
    fits_no_node.RULE,
    fits_tightly.RULE,
    gputype_unknown.RULE,
    node_selector_unmatched.RULE,
)

UPDATE_RULES = frozenset({isolation_mount.RULE.id, reserved_annotation.RULE.id})
EPHEMERAL_RULES = frozenset(
    rule.RULE.id
    for rule in (
        privileged_device,
        isolation_env,
        isolation_env_from,
        isolation_env_tuned,
        isolation_mount,
        host_access,
        visible_devices,
    )
)

DEFAULT_LEVELS = {rule.id: rule.level for rule in VALIDATIONS}
