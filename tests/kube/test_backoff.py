"""Delays between attempts: they grow, end growing, scatter, and are forgotten."""

import pytest

from webhook.kube.reflector import FIRST_DELAY, MAX_DELAY, RESET_SECONDS, Backoff


def failures(count: int, apart: float = 1.0) -> list[float]:
    backoff = Backoff()
    return [backoff.after(1e6 + apart * number, failed=True) for number in range(count)]


def test_delays_double_up_to_a_limit():
    for number, delay in enumerate(failures(12)):
        expected = min(MAX_DELAY, FIRST_DELAY * 2**number)
        assert expected / 2 <= delay <= expected


def test_no_two_wait_alike():
    assert len({failures(6)[-1] for _ in range(20)}) > 10


def test_an_end_in_good_order_makes_them_no_longer():
    backoff = Backoff()
    assert all(backoff.after(1e6 + number, failed=False) <= FIRST_DELAY for number in range(10))


def test_failures_stay_in_mind_for_a_while():
    backoff = Backoff()
    for number in range(6):
        backoff.after(1e6 + number, failed=True)
    assert backoff.after(1e6 + 100, failed=False) > FIRST_DELAY
    assert backoff.after(1e6 + 6 + RESET_SECONDS, failed=True) <= FIRST_DELAY


@pytest.mark.parametrize("wanted", [0.0, 7.0])
def test_a_requested_delay_is_kept(wanted: float):
    delay = Backoff().after(1e6, failed=True, wanted=wanted)
    assert max(wanted, FIRST_DELAY / 2) <= delay <= max(1.2 * wanted, FIRST_DELAY)
