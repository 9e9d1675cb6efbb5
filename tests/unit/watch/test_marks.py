"""Marks: what is handed out, when, and when again."""

from __future__ import annotations

import time
from threading import Thread

from rag_assets.watch.marks import Marks


def test_marked_tenants_are_handed_out_once_in_their_order() -> None:
    marks = Marks()
    marks.mark(["b", "a"])
    marks.mark(["a", "c"])
    assert marks.take(2, now=0) == ["b", "a"]
    assert marks.take(2, now=0) == ["c"]
    assert marks.take(2, now=0) == []


def test_a_tenant_marked_during_its_sync_is_handed_out_afterwards() -> None:
    marks = Marks()
    marks.mark(["a"])
    assert marks.take(8, now=0) == ["a"]
    marks.mark(["a"])
    assert marks.take(8, now=0) == [], "one sync of a tenant at a time"
    marks.finish(["a"])
    assert marks.take(8, now=0) == ["a"]
    marks.finish(["a"])
    assert marks.take(8, now=0) == []


def test_a_tenant_rests_after_its_sync_and_others_do_not() -> None:
    marks = Marks()
    marks.mark(["a"])
    marks.take(8, now=0)
    marks.finish(["a"], rest_until=5)
    marks.mark(["a", "b"])
    assert marks.take(8, now=4.9) == ["b"]
    assert marks.take(8, now=5) == ["a"]


def test_the_earliest_of_several_marks_counts() -> None:
    marks = Marks()
    marks.mark(["a"], after=10)
    assert marks.take(8, now=9) == []
    marks.mark(["a"])
    assert marks.take(8, now=9) == ["a"]


def test_a_mark_ends_a_wait() -> None:
    marks = Marks()
    thread = Thread(target=lambda: (time.sleep(0.05), marks.mark(["a"])))
    started = time.monotonic()
    thread.start()
    marks.wait(timeout=30)
    thread.join()
    assert time.monotonic() - started < 15
    assert marks.take(1, now=0) == ["a"]
