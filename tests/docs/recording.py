"""What `make run` shows, as a moving picture: docs/images/demo.svg. `python -m tests.docs` records it anew.

The picture is a terminal of some lines that scrolls; without animation it shows the end. It has no script and loads nothing.
"""

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from html import escape
from itertools import accumulate, groupby

from tests.docs.commands import BIN, ROOT
from tests.server.program import free_port

FILE = ROOT / "docs" / "images" / "demo.svg"
COLUMNS, ROWS = 100, 26  # of the terminal
LETTER, LINE, MARGIN, FONT = 7.85, 17, 14, 13  # pixels
QUICK, READ, LAST = 0.12, 3.0, 8.0  # seconds until the next line: of most lines, of a pause, and of the last one
# What differs from run to run.
VARYING = {
    r"https://localhost:\d+, ready after [\d.]+ s": "https://localhost:8443",
    r"\(decision [0-9a-f]{12}\)": "(decision 0064bbed1ed3)",
}
CLASSES = {"0": "", "1": "b", "2": "d", "31": "r", "1;31": "r", "32": "g", "33": "y"}  # of the terminal's codes
STYLE = """
text { font: %dpx ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #d8dee9; white-space: pre; }
.b { font-weight: 700; } .d { fill: #8b95a7; } .r { fill: #ff8b8b; } .g { fill: #7ddc9a; } .y { fill: #f0b95c; }
.all { transform: translateY(%dpx); } .cover { transform: translateY(%dpx); }
@media (prefers-reduced-motion: no-preference) {
.all { animation: all %.2fs step-end infinite; } .cover { animation: cover %.2fs step-end infinite; }
}
@keyframes all { %s }
@keyframes cover { %s }
"""
Cells = list[tuple[str, str]]  # a line: each letter with its class


def recorded() -> str:
    """What the program prints in colour; what differs from run to run is replaced."""
    command = [BIN / "vgpu-webhook", "demo", "--once", "--port", str(free_port()), "--console-port", str(free_port())]
    environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"} | {"FORCE_COLOR": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    text = done.stdout
    for pattern, constant in VARYING.items():
        text = re.sub(pattern, constant, text)
    return text


def picture(text: str) -> str:
    """The lines of a terminal as SVG."""
    lines = [row for line in ["\x1b[1m$ make run\x1b[0m", *text.splitlines()] for row in _folded(_cells(line))]
    waits = [QUICK if row else READ for row in lines]
    waits[-1] = LAST
    begins = [at * 100 / sum(waits) for at in accumulate(waits, initial=0.0)][:-1]
    scrolled = [min(ROWS - 1 - place, 0) * LINE for place in range(len(lines))]
    covered = [(place + 1) * LINE for place in range(len(lines))]
    frames = [_frames(begins, places) for places in (scrolled, covered)]
    style = STYLE % (FONT, scrolled[-1], covered[-1], sum(waits), sum(waits), *frames)
    width, height = round(COLUMNS * LETTER), ROWS * LINE
    outer = f'width="{width + 2 * MARGIN}" height="{height + 2 * MARGIN}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {outer} role="img">',
            "<title>make run: the webhook repairs one pod, warns of one and refuses one</title>",
            f"<style>{style}</style>",
            f'<rect {outer} rx="8" fill="#161b22"/>',
            f'<svg x="{MARGIN}" y="{MARGIN}" width="{width}" height="{height}"><g class="all">',
            *[f'<text y="{at * LINE + FONT}">{"".join(_spans(row))}</text>' for at, row in enumerate(lines) if row],
            f'<rect class="cover" width="{width}" height="{len(lines) * LINE}" fill="#161b22"/>',
            "</g></svg></svg>\n",
        ]
    )


def _cells(line: str) -> Cells:
    found: Cells = []
    style = ""
    for code, text in re.findall(r"(?:\x1b\[([\d;]*)m)?([^\x1b]*)", line):
        style = CLASSES[code] if code else style
        found += [(letter, style) for letter in text]
    return found


def _folded(cells: Cells) -> Iterator[Cells]:
    """The rows of a line, broken at spaces; those after the first are indented by two more."""
    indent = next((at for at, (letter, _) in enumerate(cells) if letter != " "), 0) + 2
    while len(cells) > COLUMNS:
        end = max(at for at, (letter, _) in enumerate(cells[: COLUMNS + 1]) if letter == " ")
        yield cells[:end]
        cells = [(" ", "")] * indent + cells[end + 1 :]
    yield cells


def _spans(cells: Cells) -> Iterator[str]:
    for style, run in groupby(cells, key=lambda cell: cell[1]):
        text = escape("".join([letter for letter, _ in run]), quote=False)
        yield f'<tspan class="{style}">{text}</tspan>' if style else text


def _frames(begins: Sequence[float], places: Sequence[int]) -> str:
    """The keyframes of a movement to some places, each at a time in percent; without those that move nothing."""
    kept = [at for at, place in enumerate(places) if at == 0 or place != places[at - 1]]
    return " ".join([f"{begins[at]:.2f}% {{ transform: translateY({places[at]}px); }}" for at in kept])
