"""Amounts, times and sentences as pages show them."""

from markupsafe import Markup, escape

from webhook.texts import visible

MINUTE, HOUR, DAY = 60, 3600, 86_400  # seconds


def ago(seconds: float) -> str:
    """A length of time, roughly: `45 s`, `12 min`, `3 h`, `20 days`."""
    if seconds < 2 * MINUTE:
        return f"{int(seconds)} s"
    if seconds < 2 * HOUR:
        return f"{int(seconds // MINUTE)} min"
    return f"{int(seconds // HOUR)} h" if seconds < 2 * DAY else f"{int(seconds // DAY)} days"


def mebibytes(amount: int) -> str:
    """Memory in the unit in which it is a small number: `512 MiB`, `24.0 GiB`, `1.9 TiB`."""
    for unit, size in (("TiB", 1 << 20), ("GiB", 1 << 10)):
        if amount >= size:
            tenths = amount * 10 // size  # whole numbers: somebody's amount may be too large for a float
            return f"{tenths // 10:,}.{tenths % 10} {unit}"
    return f"{amount:,} MiB"


def prose(text: str) -> Markup:
    """A sentence, safe to show; what stands between backticks is code."""
    spans = [escape(visible(span)) for span in text.split("`")]
    if len(spans) % 2 == 0:  # one backtick is left over
        return escape(visible(text))
    code = Markup("<code>{}</code>")
    return Markup("").join([code.format(span) if at % 2 else span for at, span in enumerate(spans)])
