"""Exponential backoff: delays double up to a limit, have jitter, and are reset."""

import pytest

from webhook.cluster.pace import PACE
from webhook.cluster.reflector import RESET_SECONDS, Backoff

FIRST_DELAY, MAX_DELAY = PACE.first_delay, PACE.max_delay


def delays(count: int, apart: float = 1.0) -> list[float]:
    backoff = Backoff()
    return [backoff.after(1e6 + apart * number, failed=True) for number in range(count)]


def test_delays_double_up_to_a_limit():
    for number, delay in enumerate(delays(12)):
        expected = min(MAX_DELAY, FIRST_DELAY * 2**number)
        assert expected / 2 <= delay <= expected


def test_delays_are_jittered():
    assert len({delays(6)[-1] for _ in range(20)}) > 10


def test_a_watch_that_ends_normally_does_not_increase_the_delay():
    backoff = Backoff()
    assert all(backoff.after(1e6 + number, failed=False) <= FIRST_DELAY for number in range(10))


def test_the_delay_is_reset_after_a_time_without_failures():
    backoff = Backoff()
    for number in range(6):
        backoff.after(1e6 + number, failed=True)
    assert backoff.after(1e6 + 100, failed=False) > FIRST_DELAY
    assert backoff.after(1e6 + 6 + RESET_SECONDS, failed=True) <= FIRST_DELAY


@pytest.mark.parametrize("wanted", [0.0, 7.0])
def test_a_requested_delay_is_kept(wanted: float):
    delay = Backoff().after(1e6, failed=True, wanted=wanted)
    assert max(wanted, FIRST_DELAY / 2) <= delay <= max(1.2 * wanted, FIRST_DELAY)
