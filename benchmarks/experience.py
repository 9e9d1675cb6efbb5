"""Measure recall of the experience of past projects, with the shipped model.

    python -m benchmarks.experience

The entries of examples/experience are captured, embedded at a checkpoint and searched as the
service searches them, without a threshold. Each threshold is chosen on one half of the questions
and reported on the other: the highest that loses no answer.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from benchmarks.measure import CLI, PROJECT, describe_machine, report_result
from benchmarks.servers import Servers, benchmark_servers, make_home
from rag_assets.api.experience_responses import Answer
from rag_assets.cli.session import Session
from rag_assets.privacy.masker import get_masker
from rag_assets.search import AsyncRetriever
from rag_assets.search.model import Caller
from rag_assets.systems.experience.model import (
    CheckpointDraft,
    EntryDraft,
    FailureQuestion,
    ProjectDraft,
    TaskQuestion,
)
from rag_assets.systems.experience.questions import Questions
from rag_assets.systems.experience.service import Experience

WORK = PROJECT / ".local" / "benchmark-experience"
DATA = PROJECT / "examples" / "experience"
TENANT = "lessons"
KINDS = ("failure", "task")
SHOWN = 3
THRESHOLDS = [round(0.20 + 0.02 * step, 2) for step in range(20)]


@dataclass(frozen=True)
class AnsweredQuestion:
    """The answer to one question.

    Attributes:
        relevant: grades of the entries that answer it, by external id.
        scores: cosine of each returned pattern, by external id of its entry, best first.
    """

    kind: str
    relevant: dict[str, int]
    scores: dict[str, float]

    @property
    def recall(self) -> float:
        """Return the share of the relevant entries among the first ones."""
        first = set(list(self.scores)[:SHOWN])
        return len(first & set(self.relevant)) / min(SHOWN, len(self.relevant))

    @property
    def reciprocal_rank(self) -> float:
        """Return the reciprocal rank of the first relevant entry."""
        ranks = (at for at, name in enumerate(self.scores, 1) if name in self.relevant)
        return 1 / next(ranks, float("inf"))

    @property
    def best(self) -> float:
        """Return the highest cosine of a relevant entry, or of any entry if none is relevant."""
        names = self.relevant or self.scores
        return max((score for name, score in self.scores.items() if name in names), default=-1.0)


def main() -> None:
    """Measure and save the result."""
    before = describe_machine()
    with benchmark_servers(WORK) as servers:
        make_installation(servers, WORK / "home")
        with Session() as session:
            names = capture_entries(session)
            subprocess.run([*CLI, "sync", TENANT], check=True)
            answers = asyncio.run(ask_questions(session, names))
    figures = {
        "entries": len(names),
        "kinds": {
            kind: compute_quality([one for one in answers if one.kind == kind]) for kind in KINDS
        },
    }
    report_result("experience", "experience", before, figures)


def make_installation(servers: Servers, home: Path) -> None:
    """Make an installation with one tenant, which has no threshold."""
    tenant = {
        "id": TENANT,
        "profile": "experience",
        "embedder": {"provider": "local"},
        "retrieval": {"min_score": None},
    }
    make_home(home, [tenant])
    servers.use_home(home, "experience")


def capture_entries(session: Session) -> dict[UUID, str]:
    """Capture all entries and request a checkpoint; return external ids by entry id."""
    experience = Experience(session.catalog, get_masker(session.settings.local))
    for project in read_rows("projects"):
        draft = ProjectDraft(name=project["name"], state=project["state"])
        experience.put_project(TENANT, UUID(project["id"]), draft)
    names = {}
    for entry in read_rows("entries"):
        captured = experience.capture(TENANT, EntryDraft(**entry), by=None)
        names[captured.entry.id] = entry["external_id"]
    experience.request_checkpoint(TENANT, CheckpointDraft(checkpoint_type="manual"), by=None)
    return names


async def ask_questions(session: Session, names: dict[UUID, str]) -> list[AnsweredQuestion]:
    """Ask every question."""
    retriever = AsyncRetriever(session.catalog, session.store, session.embedders)
    record = session.catalog.tenants.get(TENANT)
    questions = Questions(session.catalog, retriever)
    answers = []
    try:
        for row in read_rows("questions"):
            fields = {name: row[name] for name in row if name not in ("id", "kind", "relevant")}
            answer: Answer
            if row["kind"] == "failure":
                question = FailureQuestion(**fields)
                answer = await questions.answer_failure(record, question, Caller())
            else:
                answer = await questions.answer_task(record, TaskQuestion(**fields), Caller())
            scores = {names[pattern.id]: pattern.score or 0.0 for pattern in answer.patterns}
            answers.append(AnsweredQuestion(row["kind"], row["relevant"], scores))
    finally:
        await retriever.close()
    return answers


def compute_quality(answers: Sequence[AnsweredQuestion]) -> dict[str, Any]:
    """Return recall for the questions of one kind, and the effect of a threshold."""
    answered = [one for one in answers if one.relevant]
    chosen = choose_threshold(answers[0::2])
    return {
        "questions": len(answered),
        "unanswerable": len(answers) - len(answered),
        "recall": compute_mean([one.recall for one in answered]),
        "mrr": compute_mean([one.reciprocal_rank for one in answered]),
        "threshold": chosen,
        "held_out": compute_rates(answers[1::2], chosen),
    }


def choose_threshold(answers: Sequence[AnsweredQuestion]) -> float:
    """Return the highest threshold that loses no answer."""
    return max(
        t for t in THRESHOLDS if compute_rates(answers, t)["kept"] == 1.0 or t == THRESHOLDS[0]
    )


def compute_rates(answers: Sequence[AnsweredQuestion], min_score: float) -> dict[str, float]:
    """Return the share of answers that a threshold keeps, and of non-answers that it rejects."""
    reached = [one for one in answers if one.relevant and one.best >= 0]
    rest = [one for one in answers if not one.relevant]
    return {
        "kept": compute_mean([float(one.best >= min_score) for one in reached]),
        "rejected": compute_mean([float(one.best < min_score) for one in rest]),
    }


def compute_mean(values: Sequence[float]) -> float:
    """Return the mean; 0 for no values."""
    return round(sum(values) / len(values), 4) if values else 0.0


def read_rows(name: str) -> list[dict[str, Any]]:
    """Return the rows of one of the example's files."""
    return [json.loads(line) for line in (DATA / f"{name}.jsonl").read_text().splitlines()]


if __name__ == "__main__":
    main()
