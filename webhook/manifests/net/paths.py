"""A regular expression for the paths at and under some others, however many slashes and dots they are written with.

The API server has no function that cleans a path, and no loop. So the net refuses every path with a `..`, or through the
root directory of a process. Of all others, the patterns match what `webhook.pod.paths.clean` takes out: doubled slashes, `.`,
and the link /var/run.
"""

import re
from collections.abc import Iterable

from webhook.pod.paths import MAX_SLASHES

MAX_PATH = 1_000  # characters of a path that is read

UNCLEAN = rf"(?:^|/)\.\.(?:/|$)|(?:^|/)proc/(?:.*/)?root(?:/|$)|^(?:[^/]*/){{{MAX_SLASHES + 1}}}"

_SLASH = r"/+(?:\./+)*"
_START = r"^/*(?:\./+)*"


def under(paths: Iterable[str], exactly: Iterable[str] = ()) -> str:
    """The pattern of all paths that begin with one of `paths`, or equal one of `exactly`.

    Args:
        paths: cleaned; one without a slash at its end matches every name that begins like its last part.
        exactly: cleaned, with a slash at the end.
    """
    begins = [f"{_parts(path)}{r'(?:/|$)' if path.endswith('/') else ''}" for path in sorted(paths)]
    equals = [rf"{_parts(path)}(?:/+\.?)*$" if path != "/" else r"\.?$" for path in sorted(exactly)]
    return f"{_START}(?:{'|'.join(begins + equals)})"


def _parts(path: str) -> str:
    parts = [re.escape(part) for part in path.strip("/").split("/")]
    link = rf"(?:var{_SLASH})?" if parts[0] == "run" else ""  # /var/run leads to /run
    return link + _SLASH.join(parts)
