"""A guard for speed: reviewing the recorded requests executes about as many instructions of bytecode as is recorded.

Unlike a time, the number is the same on every machine. It differs between versions of Python, and leaves out C code.
"""

import gc
import json
import sys
from collections.abc import Iterable
from typing import Any

import pytest

from tests.golden.cases import recorded
from tests.reviewing import DATA
from webhook.review.endpoints import mutate, validate
from webhook.snapshot import Snapshot
from webhook.wire.codec import decode, encode

FILE = DATA / "instructions.json"  # by the version of Python
TOLERANCE = 0.03
TOOL = 3  # of sys.monitoring: neither a debugger nor a profiler


class Counter:
    """Counts the instructions that are executed within the context."""

    def __init__(self):
        self.count = 0

    def __enter__(self):
        if sys.version_info < (3, 12):
            self.before = sys.gettrace()
            sys.settrace(self.trace)
        else:  # where settrace misses some
            sys.monitoring.use_tool_id(TOOL, "instructions")
            sys.monitoring.register_callback(TOOL, sys.monitoring.events.INSTRUCTION, self.add)
            sys.monitoring.set_events(TOOL, sys.monitoring.events.INSTRUCTION)
        return self

    def __exit__(self, *_error: object):
        if sys.version_info < (3, 12):
            sys.settrace(self.before)
        else:
            sys.monitoring.set_events(TOOL, 0)
            sys.monitoring.free_tool_id(TOOL)

    def trace(self, frame: Any, event: str, _arg: Any) -> Any:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        self.count += event == "opcode"
        return self.trace

    def add(self, _code: Any, _offset: int):
        self.count += 1


def review_each(cases: Iterable[tuple[bytes, Snapshot]]):
    for body, snapshot in cases:
        for endpoint in (mutate, validate):
            request = decode(body)
            encode(request, endpoint(request, snapshot).answer())


def test_reviews_take_as_many_instructions_as_recorded():
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    expected = json.loads(FILE.read_text()).get(version)
    if expected is None:
        pytest.skip(f"{FILE.name} has no figure for Python {version}")
    cases = [(case.review.read_bytes(), case.snapshot) for case in recorded()]
    review_each(cases)  # fills caches
    with Counter() as counter:
        review_each(cases)
    more = counter.count / expected - 1
    assert abs(more) <= TOLERANCE, (
        f"the recorded reviews take {counter.count:,} instructions, {more:+.1%} of what {FILE.name} has for Python {version}; "
        f"take less, or write {counter.count} there and say why in the commit"
    )


def test_reviews_leave_no_garbage_to_the_collector():
    cases = [(case.review.read_bytes(), case.snapshot) for case in recorded()]
    review_each(cases)  # fills caches
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        review_each(cases)
        gc.collect()
        assert not {type(one) for one in gc.garbage if type(one).__module__.startswith("webhook")}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
