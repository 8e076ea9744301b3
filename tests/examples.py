"""The number of examples of a property test."""

from hypothesis import settings


def examples(share: int) -> settings:
    """Settings with this share, in percent, of the examples that other properties get."""
    return settings(max_examples=max(1, share * settings.default.max_examples // 100))
