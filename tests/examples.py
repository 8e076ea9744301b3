"""The number of examples of a property test."""

from hypothesis import settings


def examples(number: int) -> settings:
    """Settings with this number of examples in the profile `ci`, and ten times the number in `nightly`."""
    return settings(max_examples=number * settings.default.max_examples // 100)
