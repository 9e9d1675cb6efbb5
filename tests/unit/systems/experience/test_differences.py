"""Differences that keep solutions and problems separate although their vectors are near."""

from __future__ import annotations

import pytest

from rag_assets.systems.experience.differences import (
    find_problem_difference,
    find_solution_difference,
)


@pytest.mark.parametrize(
    ("first", "second", "fact"),
    [
        ("Raise the timeout to 30 s.", "Raise the timeout to 300 s.", "a number or a version"),
        ("Raise the timeout to 30 s.", "Raise the timeout to 30 ms.", "a number or a version"),
        ("Wait for 5ms.", "Wait for 5 minutes.", "a number or a version"),
        ("Run it daily.", "Run it weekly.", "a number or a version"),
        ("Use Python 3.11.", "Use Python 3.12.", "a number or a version"),
        ("Retry twice.", "Retry.", "a number or a version"),
        ("Keep three copies.", "Keep four copies.", "a number or a version"),
        ("Pass --no-cache.", "Pass --pull.", "an identifier"),
        ("Set MAX_JOBS higher.", "Set MAX_MEMORY higher.", "an identifier"),
        ("Call flush() at the end.", "Call close() at the end.", "an identifier"),
        ("Edit config/app.yml.", "Edit config/db.yml.", "an identifier"),
        ("Keep sessions in Redis.", "Keep sessions in Postgres.", "an identifier"),
        ("Install the pre-push hook.", "Install the pre-commit hook.", "an identifier"),
        ("Cache the response.", "Do not cache the response.", "a negation"),
        ("Never delete without a condition.", "Delete without a condition.", "a negation"),
        ("Den Puffer vor dem Ende leeren.", "Den Puffer nicht vor dem Ende leeren.", "a negation"),
        ("Enable the cache.", "Disable the cache.", "a negation"),
        ("Migrate before the deployment.", "Migrate after the deployment.", "a negation"),
        ("Don't wait.", "Wait.", "a negation"),
        ("Don\u2019t wait.", "Wait.", "a negation"),
        ("Allow the origin.", "Deny the origin.", "a negation"),
        ("Increase the pool.", "Reduce the pool.", "a negation"),
        ("Turn it off on phones.", "Turn it on for phones.", "a negation"),
        ("Allow only our origin.", "Allow any but our origin.", "a negation"),
        ("Unlock the row first.", "Lock the row first.", "a negation"),
        ("Use immutable objects.", "Use mutable objects.", "a negation"),
        ("Add a row when one is deleted.", "Remove a row when one is deleted.", "a negation"),
        ("Use queues instead of topics.", "Use topics instead of queues.", "an order"),
        (
            "Use queues instead of topics: readers get their own.",
            "Use topics instead of queues: readers share their own.",
            "an order",
        ),
        (
            "/track no longer answers with a redirect; it returns 410.",
            "/track no longer returns 410; it answers with a redirect.",
            "an order",
        ),
        ("Validate before saving.", "Save before validating.", "an order"),
        ("Flush the buffer at the end.", "Rotate the buffer at the end.", "a word"),
        ("Pin the driver.", "Pin the compiler.", "a word"),
        ("Retry until it answers.", "Retry while it answers.", "a negation"),
        ("Cache all responses.", "Cache some responses.", "a negation"),
        (
            "Cache the response.",
            "Cache the response of the login for users who come back from another site.",
            "a word",
        ),
    ],
)
def test_a_relevant_difference_separates_solutions(first: str, second: str, fact: str) -> None:
    assert find_solution_difference(first, second) == fact
    assert find_solution_difference(second, first) == fact


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Pin the version of the driver.", "The driver's version must be pinned."),
        ("Don't wait, and don't retry.", "Do not wait, do not retry."),
        ("Wait for 2 minutes.", "Wait two minutes."),
        ("Do not cache it.", "Never cache it."),
        ("Pass --no-cache to the build.", "Build with --no-cache."),
        ("Fetch the rows in one request.", "Load the rows by one request."),
        ("Check it before each push.", "Before every push, check it."),
        ("Keep sessions in Redis.", "Redis keeps the sessions."),
        ("Write a log line and a metric.", "Write a metric and a log line."),
    ],
)
def test_other_words_for_the_same_solution_do_not_separate_it(first: str, second: str) -> None:
    assert find_solution_difference(first, second) is None
    assert find_solution_difference(second, first) is None


@pytest.mark.parametrize(
    ("first", "second", "fact"),
    [
        ("The API answers 502.", "The API answers 504.", "a number or a version"),
        ("The app crashes on iOS.", "The app crashes on Android.", "an identifier"),
        ("The upload of files fails.", "The download of files fails.", "a word"),
    ],
)
def test_a_contradicting_word_separates_problems(first: str, second: str, fact: str) -> None:
    assert find_problem_difference(first, second) == fact
    assert find_problem_difference(second, first) == fact


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("The build fails with exit code 137.", "The build is killed."),
        ("Nobody notices failed jobs.", "Failed jobs go unnoticed."),
        ("The login page shows an old logo.", "At sign-in Chrome shows the former logo."),
    ],
)
def test_more_detail_does_not_separate_problems(first: str, second: str) -> None:
    assert find_problem_difference(first, second) is None
    assert find_problem_difference(second, first) is None
