"""After any sequence of operations, the counts of experience equal those of a simple recount."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.integration.systems.experience.conftest import Learning

TEXTS = [f"cosine 0.9{number} of {number}" for number in range(3)]
STEPS = st.tuples(
    st.sampled_from(
        ["capture"] * 5
        + ["checkpoint"] * 4
        + ["ask", "merge", "merge", "split", "split", "feedback", "feedback", "retract", "delete"]
    ),
    st.integers(0, 7),
    st.integers(0, 7),
)


@dataclass
class Told:
    """An entry of the recount."""

    id: str
    project: str
    text: str
    checkpoint: str | None = None
    home: str | None = None


@dataclass
class Recount:
    """Counts everything again from the list of operations, in the simplest way."""

    entries: list[Told] = field(default_factory=list)
    parents: dict[str, str] = field(default_factory=dict)
    """Of patterns that were merged by hand."""
    said: dict[tuple[str, str], tuple[int, str]] = field(default_factory=dict)
    """The outcome by question and pattern, and when it was said."""

    def root(self, home: str) -> str:
        while home in self.parents:
            home = self.parents[home]
        return home

    def found(self) -> list[Told]:
        return [entry for entry in self.entries if entry.home is not None]

    def members(self, root: str) -> list[Told]:
        return [one for one in self.found() if self.root(one.home or "") == root]

    def roots(self) -> list[str]:
        return sorted({self.root(one.home or "") for one in self.found()})

    def sync(self) -> None:
        for entry in self.entries:
            if entry.checkpoint is None or entry.home is not None:
                continue
            same = [other for other in self.found() if other.text == entry.text]
            entry.home = same[0].home if same else entry.id

    def forget(self) -> None:
        """Drop the data of patterns without entries."""
        living = set(self.roots())
        self.said = {key: what for key, what in self.said.items() if self.root(key[1]) in living}
        self.parents = {child: of for child, of in self.parents.items() if self.root(of) in living}

    def counts(self) -> dict[str, tuple[int, int, int]]:
        found = {}
        for root in self.roots():
            members = self.members(root)
            contributions = {(member.project, member.checkpoint) for member in members}
            words: dict[str, tuple[int, str]] = {}
            for (query, pattern), what in self.said.items():
                if self.root(pattern) == root:
                    words[query] = max(words.get(query, (0, "")), what)
            outcomes = Counter(outcome for _, outcome in words.values())
            successes = len(contributions) + outcomes["helped"]
            found[root] = (successes, outcomes["did_not_help"], len(members))
        return found


@dataclass
class History:
    """Applies the same operations to the system and to the recount."""

    learning: Learning
    projects: list[str]
    recount: Recount = field(default_factory=Recount)
    answered: list[tuple[str, str]] = field(default_factory=list)
    moment: int = 0

    def step(self, kind: str, first: int, second: int) -> None:
        self.moment += 1
        getattr(self, kind)(first, second)
        assert self.shown() == self.recount.counts()

    def shown(self) -> dict[str, tuple[int, int, int]]:
        found = self.learning.ok("GET", "/patterns?limit=100", role="admin")["patterns"]
        return {
            one["id"]: (
                one["success_count"],
                one["failure_count"],
                len(self.learning.ok("GET", f"/patterns/{one['id']}", role="admin")["entries"]),
            )
            for one in found
        }

    def capture(self, project: int, text: int) -> None:
        of, said = self.projects[project % 2], TEXTS[text % len(TEXTS)]
        self.recount.entries.append(Told(self.learning.failure(of, said, "Steps."), of, said))

    def checkpoint(self, project: int, _: int) -> None:
        of = self.projects[project % 2]
        made = self.learning.checkpoint(of)
        self.learning.driver.sync(self.learning.tenant)
        for entry in self.recount.entries:
            if entry.project == of and entry.checkpoint is None:
                entry.checkpoint = made
        self.recount.sync()

    def ask(self, *_: int) -> None:
        answer = self.learning.ok("POST", "/failure", {"failure_description": "x"})
        self.answered += [(answer["query_id"], one["id"]) for one in answer["patterns"]]
        assert {one["id"] for one in answer["patterns"]} <= set(self.recount.roots())

    def feedback(self, which: int, outcome: int) -> None:
        self.ask()
        if not self.answered:
            return
        query, pattern = self.answered[-1 - which % len(self.answered)]
        word = "helped" if outcome % 2 else "did_not_help"
        body = {"query_id": query, "pattern_id": pattern, "outcome": word}
        answer = self.learning.send("POST", "/feedback", body)
        known = self.recount.root(pattern) in self.recount.roots()
        assert answer.status_code == (200 if known else 404)
        if known:
            self.recount.said[query, pattern] = (self.moment, word)

    def merge(self, first: int, second: int) -> None:
        roots = self.recount.roots()
        if len(roots) < 2:
            return
        one, other = roots[first % len(roots)], roots[second % len(roots)]
        body = {"into": other, "confirm": True}
        answer = self.learning.send("POST", f"/patterns/{one}/merge", body, role="admin")
        assert answer.status_code == (422 if one == other else 200)
        if one != other:
            self.recount.parents[one] = other

    def split(self, which: int, _: int) -> None:
        found = self.recount.found()
        if not found:
            return
        entry = found[which % len(found)]
        root = self.recount.root(entry.home or "")
        body = {"entry_id": entry.id}
        answer = self.learning.send("POST", f"/patterns/{root}/split", body, role="admin")
        if len(self.recount.members(root)) == 1:
            assert answer.status_code == 422
            return
        assert answer.status_code == 200, answer.text
        made = answer.json()["id"]
        if entry.home == root:
            assert made not in self.recount.roots()
            entry.home = made
            return
        child = entry.home or ""
        while self.recount.parents[child] != root:
            child = self.recount.parents[child]
        assert made == child
        del self.recount.parents[child]

    def retract(self, project: int, _: int) -> None:
        of = self.projects[project % 2]
        self.learning.ok("POST", "/retract", {"project_id": of}, role="admin")
        self.recount.entries = [entry for entry in self.recount.entries if entry.project != of]
        self.recount.forget()

    def delete(self, which: int, _: int) -> None:
        if not self.recount.entries:
            return
        gone = self.recount.entries[which % len(self.recount.entries)]
        self.learning.ok("DELETE", f"/entries/{gone.id}", role="admin")
        self.recount.entries.remove(gone)
        self.recount.forget()


@settings(
    max_examples=8,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)
@given(steps=st.lists(STEPS, min_size=12, max_size=25))
@pytest.mark.long
def test_counts_are_those_of_a_plain_recount(
    learning: Learning, steps: list[tuple[str, int, int]]
) -> None:
    history = History(learning, [learning.project(), learning.project()])
    for step in [("capture", 0, 0), ("capture", 1, 0), ("capture", 1, 1), *steps]:
        history.step(*step)
    history.retract(0, 0)
    history.retract(1, 0)
    assert history.shown() == {}


def test_parts_of_parts_go_back_as_they_came(learning: Learning) -> None:
    history = History(learning, [learning.project(), learning.project()])
    captured: list[tuple[str, Any, Any]] = [("capture", 0, text) for text in range(3)]
    for step in [*captured, ("checkpoint", 0, 0), ("feedback", 0, 1), ("feedback", 1, 0)]:
        history.step(*step)
    first, second, third = (entry.id for entry in history.recount.entries)
    order = history.recount.roots()
    for one, into in ((first, second), (second, third)):
        roots = history.recount.roots()
        history.step("merge", roots.index(one), roots.index(into))
    # An entry equal to a merged one is split off with it.
    for step in [("capture", 1, 0), ("checkpoint", 1, 0), ("feedback", 2, 1)]:
        history.step(*step)
    history.step("split", 0, 0)
    assert len(history.recount.roots()) == 2
    history.step("split", 0, 0)
    assert history.recount.roots() == order
    assert len(history.recount.members(first)) == 2
