"""Processes and their memory."""

import os
import re
from contextlib import suppress
from pathlib import Path


def family(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(descendant for child in children for descendant in family(int(child)))]


def proportional(pid: int) -> float:
    """The proportional set size of a process and its descendants, in MiB."""
    kilobytes = 0
    for one in family(pid):
        with suppress(OSError):  # it has ended
            text = Path(f"/proc/{one}/smaps_rollup").read_text()
            kilobytes += int(re.search(r"^Pss:\s+(\d+) kB", text, re.MULTILINE)[1])
    return kilobytes / 1024


def cpu_seconds(pid: int) -> float:
    """The CPU time of a process and its descendants."""
    ticks = 0
    for one in family(pid):
        fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")
