"""DeviceClasses: resources that Kubernetes serves by Dynamic Resource Allocation, beside or in place of a device plugin."""

from webhook.questions.doctor.check import need
from webhook.questions.doctor.facts import ObjectKind
from webhook.questions.doctor.setup import Setup
from webhook.results import Results, listed, warning
from webhook.settings.table import DEVICE_CLASSES


def device_classes(setup: Setup) -> Results:
    """Every DeviceClass can be read, and none serves a resource that Volcano assigns."""
    need(setup.facts.gap(ObjectKind.DEVICE_CLASS))
    kept = DEVICE_CLASSES.kept(setup.facts.all(ObjectKind.DEVICE_CLASS))
    if complaint := next(filter(None, map(DEVICE_CLASSES.complaint, kept)), None):
        yield warning(
            f"{complaint}, so any resource may be served, and unknown-resource only warns",
            "write the name of a resource, or remove the field",
        )
    need(setup.settings_gap)
    classes = setup.cluster.collections.served
    both = [f"{resource} ({name})" for resource, name in classes.items() if resource in setup.config.roles]
    if both:
        yield warning(
            f"DeviceClasses serve resources that Volcano assigns: {listed(both)}; of rules about pods that request one, only "
            "those that keep tenants apart refuse",
            "give the DeviceClass another spec.extendedResourceName",
        )
    served = [f"{resource} ({name})" for resource, name in classes.items()]
    return f"DeviceClasses serve {listed(served)}" if served else "no DeviceClass serves a resource"
