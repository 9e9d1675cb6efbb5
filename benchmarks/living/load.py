"""Send questions at a steady rate to the service, from a separate process, until stdin closes.

    RAG_ASSETS_TOKEN=… python -m benchmarks.living.load URL QUESTIONS ANSWERS --rate 20

Each question is sent at its due time, whether or not earlier questions were answered, and its
latency counts from then: a slow answer delays no other question.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

import httpx2 as httpx

from benchmarks.measure import PROJECT, create_parser

EDITION = re.compile(r"edition (\d+) of ([\w.-]+)")
"""Matches the edition in the text of an edited document."""
MODES = ("hybrid", "knn", "text")
TOP_K = 5
_TIMEOUT_SECONDS = 60.0
_OK = 200


@dataclass(frozen=True, slots=True)
class HitPassage:
    """A hit.

    Attributes:
        start, end: its range in the document.
        edition: edition of the document, if it is an edited document.
    """

    uri: str
    start: int
    end: int
    edition: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A question and its answer.

    Attributes:
        due_at: due time of the question, in seconds since the epoch.
        seconds: time until it was answered.
        failure: status and beginning of the body of a failed request.
        generation: the build that answered.
    """

    due_at: float
    seconds: float
    mode: str
    failure: str | None = None
    generation: int | None = None
    passages: tuple[HitPassage, ...] = ()

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Answer:
        """Parse a row of the answers file."""
        return cls(**{**row, "passages": tuple(HitPassage(**one) for one in row["passages"])})


@contextmanager
def run_load(
    url: str, token: str, questions: Sequence[str], answers: Path, *, rate: float
) -> Iterator[None]:
    """Run a process that asks questions in all modes until the block ends; see read_answers."""
    questions_file = answers.with_suffix(".questions.json")
    questions_file.write_text(json.dumps(list(questions)))
    command = [
        sys.executable,
        "-m",
        "benchmarks.living.load",
        url,
        str(questions_file),
        str(answers),
    ]
    process = subprocess.Popen(
        [*command, "--rate", str(rate)],
        cwd=PROJECT,
        env={**os.environ, "RAG_ASSETS_TOKEN": token},
        stdin=subprocess.PIPE,
    )
    try:
        yield
    finally:
        process.communicate()
    if process.returncode:
        raise RuntimeError(f"the load process failed with exit code {process.returncode}")


def read_answers(path: Path) -> list[Answer]:
    """Return all answers in a file."""
    return [Answer.from_json(json.loads(line)) for line in path.read_text().splitlines()]


async def ask_until(
    ended: asyncio.Event, client: httpx.AsyncClient, questions: Sequence[str], rate: float
) -> list[Answer]:
    """Ask at this rate until the event is set; return every answer."""
    started, epoch = time.perf_counter(), time.time()
    tasks: list[asyncio.Task[Answer]] = []
    for number in itertools.count():
        await asyncio.sleep(max(0.0, started + number / rate - time.perf_counter()))
        if ended.is_set():
            return await asyncio.gather(*tasks)
        due = started + number / rate
        body = {
            "query": questions[number // len(MODES) % len(questions)],
            "mode": MODES[number % len(MODES)],
            "top_k": TOP_K,
        }
        tasks.append(asyncio.create_task(_ask(client, body, due, epoch + due - started)))
    raise AssertionError


async def _ask(
    client: httpx.AsyncClient, body: Mapping[str, Any], due: float, due_at: float
) -> Answer:
    mode = str(body["mode"])
    try:
        response = await client.post("/rag/query", json=dict(body))
    except httpx.HTTPError as error:
        return Answer(due_at, time.perf_counter() - due, mode, failure=repr(error))
    seconds = time.perf_counter() - due
    if response.status_code != _OK:
        failure = f"{response.status_code} {response.text[:300]}"
        return Answer(due_at, seconds, mode, failure=failure)
    answer = response.json()
    passages = tuple(passage for hit in answer["hits"] for passage in _read_passages(hit))
    return Answer(due_at, seconds, mode, generation=answer["generation"], passages=passages)


def _read_passages(hit: Mapping[str, Any]) -> Iterator[HitPassage]:
    for text_range in hit["ranges"]:
        text = hit["text"][text_range["start"] - hit["start"] : text_range["end"] - hit["start"]]
        match = EDITION.search(text)
        edition = None if match is None else int(match[1])
        yield HitPassage(hit["uri"], text_range["start"], text_range["end"], edition)


async def _run_until_closed(options: argparse.Namespace, stream: TextIO) -> list[Answer]:
    headers = {"Authorization": f"Bearer {os.environ['RAG_ASSETS_TOKEN']}"}
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    closed = loop.run_in_executor(None, stream.read)
    closed.add_done_callback(lambda _: ended.set())
    questions = json.loads(options.questions.read_text())
    async with httpx.AsyncClient(
        base_url=options.url, headers=headers, timeout=_TIMEOUT_SECONDS
    ) as client:
        return await ask_until(ended, client, questions, options.rate)


def main() -> None:
    """Ask, and write every answer as a line of JSON."""
    parser = create_parser(__doc__)
    parser.add_argument("url")
    parser.add_argument("questions", type=Path)
    parser.add_argument("answers", type=Path)
    parser.add_argument("--rate", type=float, default=20.0)
    options = parser.parse_args()
    answers = asyncio.run(_run_until_closed(options, sys.stdin))
    options.answers.write_text("".join(json.dumps(asdict(answer)) + "\n" for answer in answers))


if __name__ == "__main__":
    main()
