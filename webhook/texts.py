"""Foreign text in places of limited size."""

import orjson


def shorten(text: str, most: int) -> str:
    """The text, or as much of its beginning as makes `most` characters with the `…` behind it."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def cut(text: str, most: int) -> str:
    """The text, or as much of its beginning as takes `most` bytes in JSON with the `…` behind it."""
    if len(text) <= most and len(orjson.dumps(text)) <= most:
        return text
    text = text[:most]
    while len(orjson.dumps(text)) + 3 > most:
        text = text[: len(text) * 3 // 4]
    return f"{text}…"
