from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.runtime.watch_report import NO_WATCHER, WatchReport
from rag_assets.sensors.turns import (
    HANDED_SECONDS,
    ROUND_SECONDS,
    Cursor,
    advance_cursor,
    choose_action,
    plan_tick,
    rotate_after,
)

IDS = [f"t{number:03d}" for number in range(100)]
WATCHER = WatchReport("7 born", frozenset(IDS))
BEGUN = Cursor(at=1_000.0, watcher="7 born")


def test_without_a_watcher_all_tenants_are_looked_at_as_far_as_the_time_goes() -> None:
    planned = plan_tick(IDS, Cursor(stopped="t097"), NO_WATCHER, {"t001"}, now=1_005)
    assert planned.first == ()
    assert planned.rest[:4] == ("t098", "t099", "t000", "t001")
    assert sorted(planned.rest) == IDS


def test_a_new_watcher_has_all_tenants_listed_once() -> None:
    cursor = replace(BEGUN, watcher="6 gone")
    planned = plan_tick(IDS, cursor, WATCHER, set(), now=1_005)
    assert list(planned.rest) == IDS
    interrupted = advance_cursor(cursor, planned, {}, stopped="t050", now=1_005)
    planned = plan_tick(IDS, interrupted, WATCHER, set(), now=1_035)
    assert planned.rest[0] == "t051"
    done = advance_cursor(interrupted, planned, {}, stopped=None, now=1_035)
    assert len(plan_tick(IDS, done, WATCHER, set(), now=1_040).rest) == 0


@pytest.mark.parametrize("pause", [5.0, 7.0, 30.0])
def test_a_watched_tenant_has_its_turn_within_a_minute(pause: float) -> None:
    cursor, last = BEGUN, dict.fromkeys(IDS, 1_000.0)
    now = 1_000.0
    while now < 1_300:
        now += pause
        planned = plan_tick(IDS, cursor, WATCHER, set(), now=now)
        for id_ in planned.first:
            assert now - last[id_] <= 60 + pause
            last[id_] = now
        cursor = advance_cursor(
            cursor, planned, dict.fromkeys(planned.first), stopped=None, now=now
        )
        assert all(now - seen <= 60 for seen in last.values())


def test_a_tenant_handed_to_the_watcher_while_the_clock_was_ahead_gets_a_run() -> None:
    cursor = replace(BEGUN, handed={"t001": 1_000 + 400 * 86_400.0})
    assert plan_tick(IDS, cursor, WATCHER, set(), now=1_005).first[0] == "t001"
    assert choose_action("t001", cursor, WATCHER, now=1_005) == "request"


def test_a_tick_over_idle_tenants_looks_at_their_share() -> None:
    planned = plan_tick(IDS, BEGUN, WATCHER, set(), now=1_000 + ROUND_SECONDS / 10)
    assert (planned.first, planned.rest) == (tuple(IDS[:10]), ())
    late = plan_tick(IDS, BEGUN, WATCHER, set(), now=9_999)
    assert sorted(late.first) == IDS, "nobody has two turns in a tick"


def test_unwatched_tenants_and_those_with_a_reason_are_looked_at_each_time() -> None:
    report = replace(WATCHER, watched=frozenset(IDS[2:]))
    handed = {"t060": 1_000.0, "t061": 1_000.0 - HANDED_SECONDS}
    cursor = replace(BEGUN, handed=handed, turn="t010")
    planned = plan_tick(IDS, cursor, report, {"t050", "gone"}, now=1_001)
    assert planned.rest == ("t000", "t001")
    assert planned.first == ("t050", "t061", "t011", "t012", "t013")


def test_the_watcher_has_the_first_try_and_the_sensor_the_second() -> None:
    report = replace(WATCHER, watched=frozenset(["a", "b"]), marked=frozenset(["b"]))
    assert choose_action("unwatched", BEGUN, report, now=1_000) == "request"
    assert choose_action("a", BEGUN, NO_WATCHER, now=1_000) == "request"
    assert choose_action("b", BEGUN, report, now=1_000) == "wait", "it knows"
    assert choose_action("a", BEGUN, report, now=1_000) == "tell"
    planned = plan_tick(["a", "b"], BEGUN, report, set(), now=1_000)
    told = advance_cursor(BEGUN, planned, {"a": "tell", "b": "wait"}, stopped=None, now=1_000)
    assert dict(told.handed) == {"a": 1_000}
    assert choose_action("a", told, report, now=1_000 + HANDED_SECONDS - 1) == "wait"
    assert choose_action("a", told, report, now=1_000 + HANDED_SECONDS) == "request"
    behind = 1_000 - 86_400
    assert choose_action("a", told, report, now=behind) == "request", "the clock was ahead"
    assert plan_tick(["a", "b"], told, report, set(), now=behind).first == ("a",)
    for seen, left in (({}, {"a": 1_000}), ({"a": None}, {}), ({"a": "request"}, {})):
        after = advance_cursor(told, planned, seen, stopped=None, now=1_030)
        assert dict(after.handed) == left


def test_a_cursor_is_kept_as_text_and_one_of_before_is_forgotten() -> None:
    cursor = Cursor(5.0, "7 born", "a", "b", {"c": 1.0})
    assert Cursor.read(cursor.text()) == cursor
    for text in (None, "", "team-0001", "[]", '"team"', '{"other": 1}', "7"):
        assert Cursor.read(text) == Cursor()


@pytest.mark.slow
@given(ids=st.lists(st.sampled_from("abcdef"), unique=True).map(sorted), data=st.data())
def test_every_tenant_has_its_turn(ids: list[str], data: st.DataObject) -> None:
    cursor = data.draw(st.none() | st.sampled_from("abcdefg"))
    turn = rotate_after(ids, cursor)
    assert sorted(turn) == ids
    if cursor is not None and ids and max(ids) > cursor:
        assert turn[0] == min(id_ for id_ in ids if id_ > cursor)
