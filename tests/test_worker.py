"""Threads that work in turns, and results that are computed in the background."""

import threading

import pytest

from tests.clock import Clock
from tests.server.program import until
from webhook.console.background import Background
from webhook.worker import Worker

NEVER = 3600.0


class Turns:
    """A worker, how often it worked, and what it does in a turn."""

    def __init__(self, seconds: float = NEVER) -> None:
        self.count, self.seconds, self.ended = 0, seconds, threading.Event()
        self.worker = Worker("turns", self.turn, self.ended.set)

    def turn(self) -> float:
        self.count += 1
        return self.seconds


def test_it_works_until_it_is_stopped():
    turns = Turns(seconds=0.0)
    assert not turns.worker.running
    turns.worker.start()
    until(lambda: turns.count > 3)
    turns.worker.stop()
    turns.worker.join()
    assert turns.ended.is_set()
    assert turns.worker.stopped
    before = turns.count
    turns.worker.start()
    assert (turns.worker.running, turns.count) == (False, before), "it starts once"


def test_the_next_turn_begins_after_a_pause_or_a_call():
    turns = Turns()
    turns.worker.start()
    until(lambda: turns.count == 1)
    turns.worker.wake()
    until(lambda: turns.count == 2)
    turns.worker.stop()
    turns.worker.join()
    assert turns.count == 2


def test_it_can_be_stopped_before_it_starts_and_while_it_rests():
    idle = Turns()
    idle.worker.stop()
    idle.worker.start()
    assert not idle.worker.running
    idle.worker.join()
    resting = Worker("resting", lambda: resting.rest(NEVER) or 0.0)
    resting.start()
    resting.stop()
    resting.join()
    assert not resting.running


def test_a_bug_is_logged_and_does_not_end_it(caplog: pytest.LogCaptureFixture):
    worker = Worker("turns", lambda: 1 / 0)
    worker.start()
    for times in (1, 2):
        until(lambda times=times: caplog.text.count("turns: a bug; it goes on in 10 s") >= times)
        worker.wake()
    assert worker.running
    worker.stop()
    worker.join()


def test_a_result_is_computed_once_at_a_time():
    clock, release, results = Clock(), threading.Event(), iter([1, 2])
    work = Background("slow", lambda: release.wait() and next(results), clock)
    for _ in range(3):
        work.begin(lambda: True)
    assert (work.last, work.began) == (None, clock.now)
    work.wait(0.0)
    clock.now += 5
    release.set()
    work.wait(NEVER)
    assert (work.last, work.began, work.ended) == (1, None, clock.now)
    work.begin(lambda: False)
    assert work.began is None
    work.begin(lambda: True)
    work.wait(NEVER)
    assert work.last == 2


def test_the_last_result_stays_after_a_bug(caplog: pytest.LogCaptureFixture):
    results = iter([1])
    work = Background("slow", lambda: next(results))
    for _ in range(2):
        work.begin(lambda: True)
        work.wait(NEVER)
    assert (work.last, work.began) == (1, None)
    assert "slow: a bug; the last result stays" in caplog.text
