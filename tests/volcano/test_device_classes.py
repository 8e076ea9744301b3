"""A DeviceClass is read for the resource that it serves."""

import pytest

from webhook.volcano.device_classes import DeviceClass, DeviceClasses, complaint, read_device_class, unlisted

METADATA = {"name": "whole"}


def test_a_class_that_serves_a_resource_is_read():
    raw = {"metadata": METADATA, "spec": {"selectors": [], "extendedResourceName": "example.com/gpu"}}
    found = read_device_class(raw)
    assert found == DeviceClass("whole", "example.com/gpu")
    classes = DeviceClasses([found])
    assert classes.by_resource == {"example.com/gpu": "whole"}
    assert classes.complete
    assert complaint(found) == ""


@pytest.mark.parametrize(
    "raw", [{}, {"metadata": METADATA}, {"metadata": METADATA, "spec": {"extendedResourceName": ""}}]
)
def test_other_classes_are_left_out(raw: dict[str, object]):
    assert read_device_class(raw) is None


@pytest.mark.parametrize("resource", [5, ["example.com/gpu"], {}])
def test_a_class_that_cannot_be_read_leaves_all_others_in_doubt(resource: object):
    found = read_device_class({"metadata": METADATA, "spec": {"extendedResourceName": resource}})
    assert found == DeviceClass("whole", None)
    assert not DeviceClasses([found]).complete
    assert complaint(found) == "DeviceClass whole: spec.extendedResourceName is no text"


def test_the_digest_depends_on_what_reviews_read():
    one, other = DeviceClass("a", "example.com/a"), DeviceClass("b", "example.com/b")
    digests = {DeviceClasses(found).digest for found in ([one, other], [one], [])} | {unlisted().digest}
    assert len(digests) == 4
    assert DeviceClasses([other, one]).digest in digests
