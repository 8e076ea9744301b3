"""How many examples a property test tries."""

from hypothesis import settings


def examples(number: int) -> settings:
    """So many in the profile `ci`, ten times as many in `nightly`."""
    return settings(max_examples=number * settings.default.max_examples // 100)
