"""What to follow in a cluster. Light: only who has a cluster imports its client."""

from dataclasses import dataclass
from pathlib import Path

from webhook import names

DEVICE_CONFIG_NAMESPACES = ("kube-system", "volcano-system")  # where the device plugin looks, in its order


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """Where the settings stand, and how to get at the API server.

    Attributes:
        kubeconfig, context: as in webhook.cluster.credentials.
        device_config_map: the name of the device config's ConfigMap.
        device_config_namespaces: where it may be; the first that has it wins.
        policy_map: namespace and name of the policy's; an empty namespace is the webhook's own.
    """

    kubeconfig: Path | None = None
    context: str | None = None
    device_config_map: str = names.DEVICE_CONFIG_MAP
    device_config_namespaces: tuple[str, ...] = DEVICE_CONFIG_NAMESPACES
    policy_map: tuple[str, str] = ("", names.POLICY_MAP)
