import time
from threading import Thread

from rag_assets.runtime.sync_lanes import Marks


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def taken(marks: Marks) -> list[str]:
    """Take all tenants that can be taken now; they stay in progress."""
    found = []
    while (tenant := marks.take(0)) is not None:
        found.append(tenant)
    return found


def test_marked_tenants_are_handed_out_once_in_their_order() -> None:
    marks = Marks()
    marks.mark(["b", "a"])
    marks.mark(["a", "c"])
    assert taken(marks) == ["b", "a", "c"]
    assert taken(marks) == []


def test_a_tenant_marked_during_its_sync_is_handed_out_afterwards() -> None:
    marks = Marks()
    marks.mark(["a"])
    assert taken(marks) == ["a"]
    marks.mark(["a"])
    assert taken(marks) == [], "one sync of a tenant at a time"
    assert marks.list_waiting() == {"a"}
    marks.finish("a")
    assert taken(marks) == ["a"]
    marks.finish("a")
    assert taken(marks) == []
    assert marks.list_waiting() == set()


def test_a_tenant_rests_after_its_sync_and_others_do_not() -> None:
    clock = Clock()
    marks = Marks(clock)
    marks.mark(["a"])
    assert taken(marks) == ["a"]
    marks.finish("a", rest=5)
    marks.mark(["a", "b"])
    clock.now += 4.9
    assert taken(marks) == ["b"]
    clock.now += 0.1
    assert taken(marks) == ["a"]


def test_the_earliest_of_several_marks_counts() -> None:
    clock = Clock()
    marks = Marks(clock)
    marks.mark(["a"], after=10)
    clock.now += 9
    assert taken(marks) == []
    marks.mark(["a"], after=5)
    clock.now += 1
    assert taken(marks) == ["a"]


def test_a_series_of_changes_is_awaited_and_no_longer_than_a_second() -> None:
    clock = Clock()
    marks = Marks(clock)
    for _ in range(4):
        marks.mark_changed(["a"], quiet=0.1, latest=1)
        clock.now += 0.09
        assert taken(marks) == [], "more may come"
    clock.now += 0.02
    assert taken(marks) == ["a"]
    marks.finish("a")
    for _ in range(12):
        marks.mark_changed(["a"], quiet=0.1, latest=1)
        clock.now += 0.09
    assert taken(marks) == ["a"], "something writes all the time"


def test_a_file_that_is_written_is_awaited_until_it_is_closed() -> None:
    clock = Clock()
    marks = Marks(clock)
    marks.mark_changed(["a"], quiet=3, latest=5)
    clock.now += 1
    assert taken(marks) == []
    marks.mark_changed(["a"], quiet=0.1, latest=1)
    clock.now += 0.1
    assert taken(marks) == ["a"]


def test_a_change_delays_no_tenant_that_waits_already() -> None:
    clock = Clock()
    marks = Marks(clock)
    marks.mark(["a"])
    marks.mark_changed(["a"], quiet=3, latest=5)
    assert taken(marks) == ["a"]
    marks.finish("a")
    marks.mark(["a"], after=60)
    marks.mark_changed(["a"], quiet=0.1, latest=1)
    clock.now += 0.1
    assert taken(marks) == ["a"], "what is retried late is not late for a new change"


def test_the_delay_is_that_of_whoever_waits_longest() -> None:
    clock = Clock()
    marks = Marks(clock)
    assert marks.get_delay() == 0
    marks.mark(["a"], after=2)
    assert marks.get_delay() == 0
    clock.now += 5
    assert marks.get_delay() == 3


def test_whoever_waits_is_woken_by_a_mark_and_by_the_end() -> None:
    marks = Marks()
    thread = Thread(target=lambda: (time.sleep(0.05), marks.mark(["a"])))
    started = time.monotonic()
    thread.start()
    assert marks.take(30) == "a"
    thread.join()
    thread = Thread(target=lambda: (time.sleep(0.05), marks.stop()))
    thread.start()
    assert marks.take(30) is None
    thread.join()
    assert time.monotonic() - started < 15


def test_a_mark_of_later_is_handed_out_when_its_time_has_come() -> None:
    marks = Marks()
    marks.mark(["a"], after=0.05)
    started = time.monotonic()
    assert marks.take(30) == "a"
    assert 0.05 <= time.monotonic() - started < 15


def test_a_tenant_that_changes_while_it_is_synced_is_named_until_it_is_taken_again() -> None:
    marks = Marks()
    marks.mark(["acme", "other"])
    assert marks.list_changed_since_start() == set()
    assert marks.take(1.0) == "acme"
    assert marks.list_changed_since_start() == set()
    marks.mark_changed(["acme"])
    assert marks.list_changed_since_start() == {"acme"}
    assert not marks.is_changed("acme")
    marks.mark(["acme"])
    marks.finish("acme")
    assert marks.list_changed_since_start() == set()
    assert [marks.take(1.0), marks.take(1.0)] == ["other", "acme"]
    assert marks.is_changed("acme"), "a later mark without a change does not hide it"
    assert not marks.is_changed("other")
