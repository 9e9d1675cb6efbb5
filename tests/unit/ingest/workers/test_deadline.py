import threading
import time

import pytest

from rag_assets.ingest.workers.process import Watchdog

_SOON = 0.05
_NEVER = 600.0
_PATIENCE = 30.0


@pytest.fixture
def given_up() -> threading.Event:
    return threading.Event()


@pytest.fixture
def watchdog(given_up: threading.Event):
    watchdog = Watchdog(given_up.set)
    yield watchdog
    watchdog.close()


def test_a_deadline_that_passes_gives_up(watchdog: Watchdog, given_up: threading.Event) -> None:
    with watchdog.create_deadline(_SOON) as deadline:
        assert given_up.wait(_PATIENCE)
        assert deadline.has_passed


def test_a_deadline_after_a_longer_is_kept(watchdog: Watchdog, given_up: threading.Event) -> None:
    with watchdog.create_deadline(_NEVER):
        pass
    with watchdog.create_deadline(_SOON) as deadline:
        assert given_up.wait(_PATIENCE)
        assert deadline.has_passed


def test_a_block_that_ends_in_time_is_kept(watchdog: Watchdog, given_up: threading.Event) -> None:
    with watchdog.create_deadline(1.0) as in_time:
        watchdog.release()
    with watchdog.create_deadline(_NEVER) as long:
        time.sleep(1.2)
    assert not given_up.is_set()
    assert not in_time.has_passed
    assert not long.has_passed


def test_an_extended_deadline_is_kept(watchdog: Watchdog, given_up: threading.Event) -> None:
    with watchdog.create_deadline(1.0) as deadline:
        deadline.extend(_NEVER)
        time.sleep(1.2)
        assert deadline.seconds == _NEVER + 1.0
    assert not given_up.is_set()


def test_many_deadlines_share_one_thread(watchdog: Watchdog) -> None:
    with watchdog.create_deadline(_NEVER):
        threads = threading.active_count()
    for _ in range(100):
        with watchdog.create_deadline(_NEVER):
            assert threading.active_count() == threads


def test_its_thread_ends_when_it_is_closed() -> None:
    watchdog = Watchdog(lambda: None)
    others = set(threading.enumerate())
    with watchdog.create_deadline(_NEVER):
        (thread,) = [t for t in threading.enumerate() if t.name == "watchdog" and t not in others]
    watchdog.close()
    thread.join(_PATIENCE)
    assert not thread.is_alive()
