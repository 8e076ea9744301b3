"""What runs Volcano's scheduler and the device plugins: images, versions, arguments."""

from dataclasses import dataclass

from webhook.devices.target import Version, parse_version
from webhook.doctor.facts import Facts, Kind, Unread
from webhook.doctor.reading import Object, place_of, tables, text, texts

SCHEDULER = "vc-scheduler"
VGPU_PLUGIN = "volcano-vgpu-device-plugin"


@dataclass(frozen=True, slots=True)
class Workload:
    """A Deployment or DaemonSet with the container that matters.

    Attributes:
        raw: the object.
        container: of its pods.
    """

    raw: Object
    container: Object

    @property
    def place(self) -> str:
        """Namespace and name."""
        return place_of(self.raw)

    @property
    def image(self) -> str:
        """Of the container."""
        return text(self.container, "image")

    @property
    def version(self) -> Version | None:
        """The tag of the image; None if it is no version."""
        tag = self.image.partition("@")[0].rpartition("/")[2].partition(":")[2]
        try:
            return parse_version(tag)
        except ValueError:
            return None

    @property
    def config_maps(self) -> list[str]:
        """The ConfigMaps that its pods mount."""
        volumes = tables(self.raw, "spec", "template", "spec", "volumes")
        return [name for volume in volumes if (name := text(volume, "configMap", "name"))]

    def flag(self, name: str) -> str | None:
        """The value of a flag, written as `--name=value` or `--name value`; None if it is not given."""
        words = [*texts(self.container, "command"), *texts(self.container, "args")]
        for index, word in enumerate(words):
            given, equals, value = word.partition("=")
            if given in (f"--{name}", f"-{name}"):
                return value if equals else (words[index + 1] if index + 1 < len(words) else "")
        return None


def workload_of(facts: Facts, kind: Kind, image: str) -> Workload | Unread:
    """The workload of a kind whose image has such a name, whatever the registry; of several the first by name."""
    found = [
        Workload(raw, container)
        for raw in sorted(facts.all(kind), key=place_of)
        for container in tables(raw, "spec", "template", "spec", "containers")
        if _name(text(container, "image")) == image
    ]
    if found:
        return found[0]
    gap = facts.gap(kind)
    what = f"{kind} of {image}"
    if gap is None:
        return Unread(what, f"no {kind} runs an image of that name", f"a {kind} whose image is called {image}")
    return Unread(what, gap.why, gap.needs)


def _name(image: str) -> str:
    return image.partition("@")[0].rpartition("/")[2].partition(":")[0]
