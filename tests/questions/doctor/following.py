"""Follows what the doctor advises, mechanically, on the objects of a cluster; what is advised to people is left to them."""

import copy
import re

import yaml

from webhook import names

SCHEDULER = "ConfigMap/volcano-system/volcano-scheduler-configmap"
POLICY = "ConfigMap/vgpu-webhook/vgpu-webhook-policy"
CONF, CONFIG, TEXT = "volcano-scheduler.conf", "device-config.yaml", "policy.yaml"


def followed(objects, result):
    """The objects once a piece of advice is followed; None if no program can."""
    objects = copy.deepcopy(objects)
    for pattern, follow in PATTERNS:
        if match := re.search(pattern, result.remedy):
            follow(objects, match, result.message)
            return objects
    return None


def edited(objects, place, key, change):
    found = yaml.safe_load(objects[place]["data"][key]) or {}
    change(found)
    objects[place]["data"][key] = yaml.safe_dump(found)


def policy(change):
    return lambda objects, match, _: edited(objects, POLICY, TEXT, lambda found: change(found, match))


def arguments(change):
    def follow(objects, match, message):
        def edit(conf):
            for plugin in [plugin for tier in conf["tiers"] for plugin in tier["plugins"]]:
                if plugin["name"] == "deviceshare":
                    change(plugin.setdefault("arguments", {}), match, message)

        edited(objects, SCHEDULER, CONF, edit)

    return follow


def set_argument(objects, match, message):
    arguments(lambda found, *_: found.update({match[1]: yaml.safe_load(match[2])}))(objects, match, message)
    if "remove the other" in match.string:
        (other,) = [place for place in configs(objects) if place.split("/")[1] != match[2]]
        del objects[other]


def rename_argument(found, match, message):
    found[match[1]] = found.pop(re.search(rf"reads {KEY}", message)[1])


def write_booleans(found, *_):
    meant = {"true": True, "false": False, "1": True, "0": False}
    found.update({key: meant[str(value).lower()] for key, value in found.items() if str(value).lower() in meant})


def add_plugin(objects, match, _):
    plugin = {"name": match[1]} | ({"arguments": {match[2]: True}} if match[2] else {})
    edited(objects, SCHEDULER, CONF, lambda conf: conf["tiers"][-1]["plugins"].append(plugin))


def add_action(objects, match, _):
    def edit(conf):
        actions = [action.strip() for action in conf["actions"].split(",")]
        place = actions.index("backfill") if "backfill" in actions else len(actions)
        conf["actions"] = ", ".join([*actions[:place], match[1], *actions[place:]])

    edited(objects, SCHEDULER, CONF, edit)


def configs(objects):
    return [place for place, raw in objects.items() if raw["kind"] == "ConfigMap" and CONFIG in raw.get("data", {})]


def set_config(objects, match, _):
    """Set keys of the device config; the device plugin then registers memory in the units that it has."""
    for place in configs(objects):
        edited(objects, place, CONFIG, lambda found: write_keys(objects, found.setdefault("nvidia", {}), match[1]))


def write_keys(objects, found, written):
    for key, value in re.findall(r"(\w+): ([^\s,]+)", written):
        before = found.get("gpuMemoryFactor", 1)
        found[key] = yaml.safe_load(value)
        if key == "gpuMemoryFactor":
            for node in [raw for raw in objects.values() if raw["kind"] == "Node"]:
                register_anew(node["metadata"].get("annotations", {}), before, found[key])


def register_anew(annotations, before, after):
    register = annotations.get(names.NODE_VGPU_REGISTER)
    if register:
        entries = [entry.split(",") for entry in register.split(":") if entry]
        again = [",".join([*one[:2], str(int(one[2]) * before // after), *one[3:]]) for one in entries]
        annotations[names.NODE_VGPU_REGISTER] = "".join(f"{entry}:" for entry in again)


def flags(change):
    """A change of the arguments of the device plugin: how those that go begin, and new ones."""

    def follow(objects, match, message):
        (container, *_) = objects["DaemonSet/kube-system/volcano-device-plugin"]["spec"]["template"]["spec"][
            "containers"
        ]
        gone, new = change(match, message)
        container["args"] = [*(arg for arg in container.get("args", []) if not arg.startswith(gone)), *new]

    return follow


def remove_variable(objects, match, _):
    for raw in [raw for raw in objects.values() if raw["kind"] == "DaemonSet"]:
        for one in raw["spec"]["template"]["spec"]["containers"]:
            one["env"] = [variable for variable in one.get("env", []) if variable["name"] != match[1]]


def delete_pod(objects, _, message):
    del objects[f"Pod/{re.search(r'[a-z-]+/[a-z-]+', message)[0]}"]


def set_parent(objects, match, message):
    child = re.search(r"(?:cycle, so their pods never start|of any queue): (\w+)", message)[1]
    objects[f"Queue/{child}"]["spec"]["parent"] = match[1]


def create_parent(objects, _, message):
    for name in re.findall(r"\((\w+)\)", message):
        spec = {"parent": "root"}
        objects[f"Queue/{name}"] = {
            "kind": "Queue",
            "metadata": {"name": name},
            "spec": spec,
            "status": {"state": "Open"},
        }


def label_nodes(objects, match, message):
    """Label nodes, so that the GPU Operator takes NVIDIA's device plugin off them."""
    for name in message.split(":")[0].split(", "):
        node = objects[f"Node/{name}"]
        node["metadata"].setdefault("labels", {})[match[1]] = match[2]
        for part in ("allocatable", "capacity"):
            node["status"].get(part, {}).pop(names.NVIDIA_GPU, None)


def upgrade(objects, match, message):
    for raw in objects.values():
        if raw["kind"] == "Deployment" and "scheduler" in raw["metadata"]["name"]:
            for one in raw["spec"]["template"]["spec"]["containers"]:
                one["image"] = f"{one['image'].partition('@')[0].rpartition(':')[0]}:v{match[1]}"
    policy(lambda found, _: found.setdefault("target", {}).update(volcano=match[1]))(objects, match, message)


def set_key(found, match):
    section, key = match[1].split(".")
    found.setdefault(section, {})[key] = yaml.safe_load(match[2])


KEY = r"(deviceshare\.\w+)"
PATTERNS = (
    (rf"set {KEY}: ([\w-]+)", set_argument),
    (rf"write {KEY}, then", arguments(rename_argument)),
    (r"write true or false without quotes", arguments(write_booleans)),
    (rf"add `- name: (\w+)`(?: with `{KEY}: true`)? to a tier", add_plugin),
    (r"add (allocate) before backfill", add_action),
    (r"set (gpuMemoryFactor: \d+) in the device config", set_config),
    (r"write (\w+: \S+(?:, \w+: \S+)*), then restart", set_config),
    (r"set (--[a-z-]+)=(\S+), or", flags(lambda match, _: (match[1], [f"{match[1]}={match[2]}"]))),
    (r"^remove the flag|^remove it; names come", flags(lambda _, message: (re.search(r"--[a-z-]+", message)[0], []))),
    (r"^remove (\w+) from its environment", remove_variable),
    (r"set (target\.\w+): (\S+) in the policy", policy(set_key)),
    (
        r"write in the policy `(\w+): (\[.*?\]|\{.*?\})`",
        policy(lambda found, match: found.update({match[1]: yaml.safe_load(match[2])})),
    ),
    (r"^create the parent", create_parent),
    (r"set spec.parent of one of them to (\w+)", set_parent),
    (r"delete the pod", delete_pod),
    (r"label them (\S+)=(\S+)", label_nodes),
    (r"upgrade (?:the scheduler|it|Volcano) to (?:\d+\.\d+\.\d+, )?(\d+\.\d+\.\d+) or newer", upgrade),
    (
        r"upgrade the scheduler, or remove it",
        arguments(lambda found, _, message: found.pop(re.search(KEY, message)[1])),
    ),
)
