"""Prints the tags of Volcano that docs/proof.md does not list yet, as JSON; reads what `git ls-remote --tags --refs` prints.

Those of supported versions; an alpha counts until its release has a tag.
"""

import json
import re
import sys
from collections.abc import Iterable

from tests.docs.markdown import shown, tables
from tests.releases.__main__ import PAGE, PART
from webhook.volcano.target import OLDEST_VOLCANO, parse_version

_TAG = re.compile(r"refs/tags/v(\d+\.\d+\.\d+)(-\S+)?$")


def new_tags(lines: Iterable[str], listed: Iterable[str]) -> list[str]:
    """The tags in the lines of `git ls-remote` that are to be compared; `listed` were before, like `1.15.1`."""
    found = [(match[1], match[2] or "") for line in lines if (match := _TAG.search(line.strip()))]
    done, released = set(listed), {release for release, suffix in found if not suffix}
    return [
        f"v{release}{suffix}"
        for release, suffix in found
        if parse_version(release) >= OLDEST_VOLCANO
        and release + suffix not in done
        and not (suffix and release in released)
    ]


if __name__ == "__main__":
    rows = tables(shown(PAGE.read_text())[PART])[0]
    print(json.dumps(new_tags(sys.stdin, [row[0] for row in rows])))
