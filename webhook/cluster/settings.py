"""The settings of a cluster as they are now, read once. The serving process follows them instead (webhook.cluster.live)."""

from webhook.cluster.client import NOT_FOUND, Client
from webhook.cluster.credentials import Credentials
from webhook.cluster.files import Files, parse_document
from webhook.cluster.kinds import DEVICE_CONFIG, POLICY, Kind, Setting
from webhook.cluster.live_nodes import NODES
from webhook.cluster.options import ClusterOptions
from webhook.cluster.snapshot import build_snapshot
from webhook.devices.nodes import read_node
from webhook.errors import ClusterError, ConfigError
from webhook.review import Snapshot


def read_snapshot(client: Client, options: ClusterOptions, files: Files) -> Snapshot:
    """Put a snapshot together from the cluster, but for what files say.

    Raises:
        ClusterError: something could not be asked for.
        ConfigError: something cannot be used.
    """
    places = [(namespace, options.device_config_map) for namespace in options.device_config_namespaces]
    config = files.config or read_setting(client, DEVICE_CONFIG, places)
    policy = files.policy
    if policy is None:
        namespace, name = options.policy_map
        own = namespace or Credentials(options.kubeconfig, options.context).namespace
        policy = read_setting(client, POLICY, [(own, name)])
    nodes = files.nodes(config)
    if nodes is None:
        nodes = [node for raw in client.list(NODES) if (node := read_node(raw, config)) is not None]
    return build_snapshot(config, policy, nodes)


def read_setting(client: Client, kind: Kind[Setting], places: list[tuple[str, str]]) -> Setting:
    """Read a setting from the first ConfigMap that is there, else the default.

    Raises:
        ClusterError: a ConfigMap could not be asked for.
        ConfigError: it cannot be used.
    """
    for namespace, name in places:
        try:
            found = client.get(f"/api/v1/namespaces/{namespace}/configmaps/{name}")
        except ClusterError as error:
            if error.status == NOT_FOUND:
                continue
            raise
        place = f"ConfigMap {namespace}/{name}"
        data = found.get("data")
        text = data.get(kind.key) if isinstance(data, dict) else None
        if not isinstance(text, str):
            raise ConfigError(f"{place} has no key {kind.key}")
        return kind.parse(parse_document(text.encode(), f"{place}: {kind.key}"), f"{place}: {kind.key}")
    return kind.default()
