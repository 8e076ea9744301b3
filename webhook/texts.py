"""Foreign text in places of limited size."""


def shorten(text: str, most: int) -> str:
    """The text, or as much of its beginning as makes `most` characters with the `…` behind it."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
