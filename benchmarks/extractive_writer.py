"""A chat model that answers with one sentence of its passages, and writes nothing of its own.

    with extractive_writer(OnnxEmbedder()) as writer:
        writer.url                                            a tenant's base_url
        writer.required_words["Who approves it?"] = "duty"    takes the sentence with these words

It is served behind OpenAI's API, so that answers pass every stage: prompt, claims, citations.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_assets.models.embedding.local import OnnxEmbedder
from rag_assets.search.answerer import NOT_ANSWERED
from rag_assets.search.sentences import split_answer

_PASSAGE = re.compile(r"^--- Passage \[(\d+)\] \S+ \(source: .*\) ---$", re.MULTILINE)
_QUESTION = "\n\nQuestion: "
_END = "\n[END CONTEXT "
_LEAST = 12
"""Least length of an answer, in characters: shorter sentences are headings and numbers."""

_Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a passage, with the passage's citation number."""

    number: int
    text: str


@dataclass
class Writer:
    """Chooses the sentence that answers a prompt.

    Attributes:
        required_words: words of the answer, by question; such a question is answered with the
            first sentence that contains them, or not at all. Others get the nearest sentence.
    """

    embedder: OnnxEmbedder
    required_words: dict[str, str] = field(default_factory=dict)
    url: str = ""
    _vectors: dict[str, _Vectors] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, prompt: str) -> str:
        """Return the answer to a prompt of the project."""
        context, _, question = prompt.rpartition(_QUESTION)
        sentences = [*_split_sentences(context.partition(_END)[0])]
        with self._lock:
            words = self.required_words.get(question)
            chosen = (
                self._find_nearest(question, sentences)
                if words is None
                else _find_sentence_with(words, sentences)
            )
        return NOT_ANSWERED if chosen is None else f"{chosen.text} [{chosen.number}]"

    def _find_nearest(self, question: str, sentences: Sequence[Sentence]) -> Sentence | None:
        if not sentences:
            return None
        texts = [question, *(sentence.text for sentence in sentences)]
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if new:
            new_vectors = asyncio.run(self.embedder.embed(new)).vectors
            self._vectors |= {t: np.asarray(v) for t, v in zip(new, new_vectors, strict=True)}
        question_vector = self._vectors[question]
        return max(sentences, key=lambda one: float(self._vectors[one.text] @ question_vector))


def _split_sentences(context: str) -> Iterator[Sentence]:
    parts = _PASSAGE.split(context)[1:]
    for number, passage in zip(parts[::2], parts[1::2], strict=True):
        for piece in split_answer(passage):
            text = " ".join(passage[piece.start : piece.end].split())
            if len(text) >= _LEAST and not text.startswith("#"):
                yield Sentence(int(number), text)


def _find_sentence_with(words: str, sentences: Sequence[Sentence]) -> Sentence | None:
    return next((sentence for sentence in sentences if words in sentence.text), None)


@contextmanager
def extractive_writer(embedder: OnnxEmbedder) -> Iterator[Writer]:
    """Serve the model on this machine until the block ends."""
    writer = Writer(embedder)
    handler = type("Handler", (_Handler,), {"writer": writer})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        writer.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield writer
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    writer: Writer

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        text = self.writer.answer(request["messages"][-1]["content"])
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        self._send(
            {
                "id": "1",
                "object": "chat.completion",
                "created": 0,
                "choices": [choice],
                "model": request["model"],
                "usage": usage,
            }
        )

    def _send(self, answer: dict[str, Any]) -> None:
        raw = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *arguments: object) -> None:
        """Log nothing."""
