"""Reranking on this machine's CPU, with a cross-encoder from a folder."""

from __future__ import annotations

import asyncio
import contextlib
import math
import re
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from rag_assets.common.errors import ConfigurationError, RerankFailed
from rag_assets.models.onnx import (
    build_inputs,
    count_cores,
    cut_message,
    find_tokenizer,
    find_weights,
    hash_file,
    join_surrogates,
    load_session,
    load_tokenizer,
    plan_inputs,
    read_json,
    read_window,
)
from rag_assets.models.reranking.rerankers import MODELS

_OUTPUTS = ("logits", "scores", "score")
_TWO_CLASSES = 2
_MIN_SCORED_PASSAGES = 2
"""Minimum number of scored passages that are worth ordering."""


def require_cross_encoder(folder: Path) -> None:
    """Check that a folder's model can be loaded and scores a pair of question and passage."""
    CrossEncoder(folder, threads=1).check()


class CrossEncoder:
    """An ONNX cross-encoder, run by onnxruntime on the CPU and loaded at its first use.

    Each pair of question and passage is one call on one thread, and a pool of threads scores pairs
    in parallel. On a CPU that is as fast as padded batches, and a score does not depend on other
    passages. After its time limit, a search occupies a core no longer than one passage takes.
    Passages are scored in order, so that the first passages have scores when the time ends.

    A passage is cut if it exceeds the model's window. A question is cut only if it takes more than
    half of the window.
    """

    def __init__(self, folder: Path, threads: int | None = None) -> None:
        self._weights = find_weights(folder)
        self._tokenizer = find_tokenizer(folder)
        self._window = read_window(folder)
        self._threads = threads or count_cores()
        self.reranker_id = "local/" + re.sub(r"[^A-Za-z0-9._-]+", "-", folder.resolve().name)
        self._loading = threading.Lock()
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="rerank")
        self._scorer: _PairScorer | None = None

    def check(self) -> None:
        """Raise a ConfigurationError unless the model can be loaded and scores a passage."""
        self._get_scorer()

    async def score_passages(
        self, question: str, passages: Sequence[str], *, seconds: float
    ) -> Sequence[float | None]:
        """Return one score for each passage; see Reranker.score_passages."""
        deadline = time.monotonic() + seconds
        todo = deque(enumerate(passages))
        scores: list[float | None] = [None] * len(passages)
        loop = asyncio.get_running_loop()
        jobs = [
            loop.run_in_executor(
                self._pool, self._score_remaining, question, todo, scores, deadline
            )
            for _ in range(min(self._threads, len(passages)))
        ]
        with contextlib.suppress(TimeoutError):
            try:
                async with asyncio.timeout(seconds):
                    await asyncio.gather(*jobs)
            finally:
                todo.clear()  # after a failure or a cancellation, no thread starts another pair
        # Threads end in any order, so passages after the first one without a score do not count.
        count = scores.index(None) if None in scores else len(scores)
        if count < min(_MIN_SCORED_PASSAGES, len(passages)):
            raise RerankFailed(f"{self.reranker_id} was not ready in time", "late")
        return [*scores[:count], *[None] * (len(scores) - count)]

    async def close(self) -> None:
        """Keep the loaded model for the next call; no connections are open."""

    def _score_remaining(
        self,
        question: str,
        todo: deque[tuple[int, str]],
        scores: list[float | None],
        deadline: float,
    ) -> None:
        """Score passages from a queue that threads share, until it is empty or the time ends."""
        scorer = self._get_scorer()
        shortened = scorer.cut_question(question)
        while todo and time.monotonic() < deadline:
            try:
                index, passage = todo.popleft()
            except IndexError:
                return
            score = scorer.score_passage(shortened, passage)
            if not math.isfinite(score):
                raise RerankFailed(
                    f"{self.reranker_id} returned a score that is not a number", "malformed"
                )
            scores[index] = score

    def _get_scorer(self) -> _PairScorer:
        with self._loading:  # several threads start at once; one of them loads
            if self._scorer is None:
                _require_checksums(self._weights.parent)
                self._scorer = _PairScorer(self._weights, self._tokenizer, self._window)
            return self._scorer


def _require_checksums(folder: Path) -> None:
    """Check the files of a shipped model against its manifest; ignore other folders."""
    if folder.parent != MODELS:
        return
    for name, facts in read_json(folder / "manifest.json")["files"].items():
        if hash_file(folder / name) != facts["sha256"]:
            raise ConfigurationError(
                f"a file of the reranker does not match its checksum: {folder / name}",
                hint="reinstall rag-assets",
            )


class _PairScorer:
    """A loaded cross-encoder, which scores a pair of question and passage."""

    def __init__(self, weights: Path, tokenizer: Path, window: int) -> None:
        self._session = load_session(weights)
        self._inputs = plan_inputs(self._session, weights)
        names = [node.name for node in self._session.get_outputs()]
        self._output = next(name for name in (*_OUTPUTS, *names) if name in names)
        self._question_limit = window // 2
        self._plain = load_tokenizer(tokenizer)
        self._plain.no_truncation()
        self._plain.no_padding()
        self._both = load_tokenizer(tokenizer)
        self._both.no_padding()
        self._both.enable_truncation(window, strategy="only_second")
        self._require_one_score_per_pair(weights)

    def cut_question(self, question: str) -> str:
        """Return a question, cut to half of the model's window."""
        encoded = self._plain.encode(join_surrogates(question), add_special_tokens=False)
        if len(encoded.ids) <= self._question_limit:
            return join_surrogates(question)
        return join_surrogates(question)[: encoded.offsets[self._question_limit - 1][1]]

    def score_passage(self, question: str, passage: str) -> float:
        """Return the score of a passage; with two classes, the log-odds of the second."""
        values = self._run_model(question, passage).reshape(-1)
        return float(values[-1] - values[0]) if values.size == _TWO_CLASSES else float(values[0])

    def _run_model(self, question: str, passage: str) -> Any:
        pair = self._both.encode(question, join_surrogates(passage))
        answer = self._session.run([self._output], build_inputs(self._inputs, [pair]))[0]
        return np.asarray(answer, np.float64)

    def _require_one_score_per_pair(self, weights: Path) -> None:
        try:
            shape = self._run_model("what is it?", "It is a passage of some words.").shape
        except Exception as error:  # errors of onnxruntime and of the tokenizer
            raise ConfigurationError(
                f"the ONNX model cannot read a question with a passage: {weights}",
                hint=cut_message(error),
            ) from error
        if shape not in {(1,), (1, 1), (1, _TWO_CLASSES)}:
            raise ConfigurationError(
                f"the ONNX model's output {self._output} has the shape {shape}, which is not one"
                f" score per pair: {weights}",
                hint="set the folder of a cross-encoder; an embedding model cannot rerank",
            )
