"""The pictures in docs/images: `make screenshots` takes them anew."""

import signal
import sys
import tempfile
from base64 import b64decode
from math import ceil
from pathlib import Path
from typing import NamedTuple

from tests.browser.audit_lines import append, history
from tests.browser.chromium import chromium, missing
from tests.browser.user import User
from tests.console.running import running
from tests.server.program import Authority, until

PICTURES = Path(__file__).parents[2] / "docs" / "images"
WIDTH = 1200  # pixels
QUALITY = 75  # percent
MARGIN = 6  # pixels around what is shown
# Relative to the repository, so that the pages show the same paths on every machine.
SAMPLES = Path("webhook/samples")
GIVEN = {"fleet": "fleet.yaml", "device-config": "device-config.yaml", "pods": "pods.yaml", "doctor-from": "cluster"}
OPTIONS = tuple(word for name, file in GIVEN.items() for word in (f"--{name}", str(SAMPLES / file)))
BOX = """
const [first, last] = [...arguments].map((css) => document.querySelector(css).getBoundingClientRect());
return [first.top + scrollY, last.bottom + scrollY];
"""


class Picture(NamedTuple):
    """A part of a page in its whole width: from its first element to its last one, after a click."""

    path: str
    first: str
    last: str
    click: str = ""
    scheme: str = "light"


NODE = ".shapes .shape"
SHOWN = {
    "playground": Picture("/", ".playground", NODE),
    "playground-refused": Picture("/?example=pod-refused", ".playground", ".listing"),
    "playground-dark": Picture("/", ".document > details + h3", NODE, scheme="dark"),
    "fleet": Picture("/usage", "body", ".nodes details:last-child", "#node-1-vgpu summary"),
    "why": Picture("/why?namespace=team-c&pod=finetune-0", "#result", "#result article .drawing"),
    "decisions": Picture("/decisions", "body", "[data-rows] tr:nth-child(10)"),
    "health": Picture("/health?wait=20", "body", "details.group"),
}


def take(user: User, picture: Picture) -> bytes:
    """One picture, as WebP."""
    user.size(WIDTH, 1000)
    user.prefers(picture.scheme)
    user.open(picture.path)
    user.until(lambda: user.all(picture.last))
    if picture.click:
        user.click(picture.click)
    first, last = user.js(BOX, picture.first, picture.last)
    top = max(first - MARGIN, 0)
    user.size(WIDTH, ceil(last + MARGIN - top))
    user.js("scrollTo(0, arguments[0])", top)
    return b64decode(user.cdp("Page.captureScreenshot", format="webp", quality=QUALITY)["data"])


def main() -> int:
    if lacking := missing():
        sys.stderr.write(f"{lacking}\n")
        return 1
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        audit = home / "audit.jsonl"
        append(audit, *history(days=3, a_day=150))
        read = ["--audit-log", str(audit), "--tls-cert", str(Authority(home).certificate)]
        with running(*read, usual=OPTIONS, last=signal.SIGQUIT) as console, chromium(home / "chromium") as driver:
            until(lambda: b'"caughtUp":true' in console.get("/api/v1/decisions?limit=1"))
            for name, picture in SHOWN.items():
                data = take(User(driver, console.address), picture)
                (PICTURES / f"{name}.webp").write_bytes(data)
                sys.stdout.write(f"{name}.webp: {len(data) / 1000:.0f} kB\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
