"""One writer of a corpus on a store; clocks may jump, fencing numbers decide."""

from __future__ import annotations

import json
import threading
import time
import uuid

import pytest

from pipeline import lease, objects
from pipeline.lease import LEASE_SECONDS, LeaseError


class Clock:
    """A clock that tests set."""

    def __init__(self, now: float = 1_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def url() -> str:
    return f"memory://{uuid.uuid4().hex}/corpus"


def test_one_holds_it_and_numbers_rise(url: str) -> None:
    clock = Clock()
    first = lease.acquire(url, clock)
    with pytest.raises(
        LeaseError, match=r"another assay process writes here \(process \d+ on .*60"
    ):
        lease.acquire(url, clock)
    lease.release(first)
    assert (first.number, lease.acquire(url, clock).number) == (1, 2)


def test_a_dead_holder_is_taken_over_when_its_time_is_up(url: str) -> None:
    clock = Clock()
    dead = lease.acquire(url, clock)
    clock.now += LEASE_SECONDS - 1
    lease.renew(dead, clock)
    clock.now += LEASE_SECONDS - 1
    with pytest.raises(LeaseError, match="in 1 seconds"):
        lease.acquire(url, clock)
    clock.now += 2
    assert lease.acquire(url, clock).number == 2
    with pytest.raises(LeaseError, match="lease 1 was taken over by another process"):
        lease.renew(dead, clock)


def test_a_clock_that_jumps_ahead_takes_over_early_and_the_first_is_fenced(url: str) -> None:
    first = lease.acquire(url, Clock())
    second = lease.acquire(url, Clock(1_000_000 + 86_400))
    assert second.number == 2
    with pytest.raises(LeaseError, match="taken over"):
        lease.check(url, first.number)
    lease.check(url, second.number)


def test_a_clock_that_was_ahead_blocks_nobody_for_a_day(url: str) -> None:
    lease.acquire(url, Clock(1_000_000 + 86_400))
    assert lease.acquire(url, Clock()).number == 2


def test_of_two_that_take_over_one_wins(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lease.acquire(url, Clock(0))
    latest = lease.latest

    def slow(of: str) -> int:
        number = latest(of)
        monkeypatch.setattr(lease, "latest", latest)
        lease.acquire(of, Clock())  # another one, between our look and our put
        return number

    monkeypatch.setattr(lease, "latest", slow)
    with pytest.raises(LeaseError, match="has just begun to write here"):
        lease.acquire(url, Clock())
    assert lease.latest(url) == 2


def test_a_block_that_loses_its_lease_is_interrupted(url: str) -> None:
    with pytest.raises(LeaseError, match="lease 1 was taken over"):
        with lease.held(url, every=0.05):
            assert objects.create(f"{url}/lease/00000002.json", b"{}")
            time.sleep(20)


def test_it_is_free_after_the_block(url: str) -> None:
    with lease.held(url, every=0.05):
        time.sleep(0.2)
    assert json.loads(objects.read(f"{url}/lease/00000001.json"))["expires"] == 0
    assert lease.acquire(url).number == 2


def test_the_first_is_fenced_also_where_later_leases_were_cleared_away(url: str) -> None:
    first = lease.acquire(url, Clock(0))
    for now in (1_000.0, 2_000.0):
        lease.acquire(url, Clock(now))
    objects.delete(f"{url}/lease/00000002.json")
    with pytest.raises(LeaseError, match="lease 1 was taken over"):
        lease.check(url, first.number)


def test_a_main_thread_that_waits_is_woken(url: str) -> None:
    """`_thread.interrupt_main` would leave it waiting."""
    began = time.monotonic()
    with pytest.raises(LeaseError, match="lease 1 was taken over"):
        with lease.held(url, every=0.05):
            assert objects.create(f"{url}/lease/00000002.json", b"{}")
            threading.Event().wait(20)
    assert time.monotonic() - began < 10


def test_a_store_that_ignores_put_if_absent_is_refused(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def put(url: str, data: bytes) -> bool:
        objects.write(url, data)
        return True

    monkeypatch.setattr(objects, "create", put)
    with pytest.raises(LeaseError, match="writes over what stands, though asked not to"):
        lease.acquire(url)
