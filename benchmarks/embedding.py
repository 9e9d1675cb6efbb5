"""Compare the local model through embed_all with onnxruntime called directly, in chunks per second.

    python benchmarks/embedding.py --texts 200 --rounds 5

Both sides use the same number of threads and take turns, so that a busy machine slows both; the
medians are compared. The difference is the cost of tokenizing, batching, checking and storing.
"""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

from benchmarks.measure import create_parser
from rag_assets.models.embedding.batches import EmbedItem
from rag_assets.models.embedding.bulk import embed_all
from rag_assets.models.embedding.local import OnnxEmbedder
from rag_assets.models.embedding.model_folder import describe_folder
from rag_assets.models.onnx import count_cores

SENTENCE = "the river ran past an old mill while engineers measured voltage and pressure"


def make_texts(count: int, words: int) -> list[str]:
    """Return texts of half to the full number of words, with lengths that vary as chunks' do."""
    chance = random.Random(count)
    vocabulary = SENTENCE.split(" ")
    return [
        " ".join(chance.choices(vocabulary, k=chance.randint(words // 2, words)))
        for _ in range(count)
    ]


class DirectRunner:
    """Calls onnxruntime directly: token ids in, arrays out."""

    def __init__(self, texts: Sequence[str], threads: int) -> None:
        model = describe_folder()
        tokenizer = Tokenizer.from_file(str(model.tokenizer))
        tokenizer.enable_truncation(model.window)
        tokenizer.no_padding()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(model.weights, options)
        self._feeds = [self._build_feed(tokenizer.encode(text).ids) for text in texts]
        self._pool = ThreadPoolExecutor(threads)

    @staticmethod
    def _build_feed(ids: list[int]) -> dict[str, np.ndarray]:
        row = np.array([ids])
        return {
            "input_ids": row,
            "attention_mask": np.ones_like(row),
            "token_type_ids": np.zeros_like(row),
        }

    def run(self) -> float:
        """Embed all texts, which are already tokenized; return the seconds."""
        started = time.perf_counter()
        for _ in self._pool.map(self._embed, self._feeds):
            pass
        return time.perf_counter() - started

    def _embed(self, feed: dict[str, np.ndarray]) -> None:
        self._session.run(None, feed)


class EmbedAllRunner:
    """Calls embed_all as the pipeline does, and drops the vectors."""

    def __init__(self, texts: Sequence[str], threads: int) -> None:
        self._embedder = OnnxEmbedder(threads=threads)
        self._items = [EmbedItem(str(number), text) for number, text in enumerate(texts)]

    def run(self) -> float:
        """Embed all texts; return the seconds."""
        started = time.perf_counter()
        asyncio.run(embed_all(self._embedder, self._items, keep=lambda keys, vectors: None))
        return time.perf_counter() - started


def compare_speeds(texts: Sequence[str], threads: int, rounds: int) -> dict[str, float]:
    """Return the medians of both sides, in texts per second, and their ratio."""
    direct, driven = DirectRunner(texts, threads), EmbedAllRunner(texts, threads)
    direct.run(), driven.run()  # load the model and fill the allocator
    pairs = [(direct.run(), driven.run()) for _ in range(rounds)]
    direct_seconds, project_seconds = (statistics.median(side) for side in zip(*pairs, strict=True))
    return {
        "direct_per_second": round(len(texts) / direct_seconds, 1),
        "embed_all_per_second": round(len(texts) / project_seconds, 1),
        "ratio": round(direct_seconds / project_seconds, 3),
    }


def main() -> None:
    """Print one JSON line per length of text."""
    parser = create_parser(__doc__)
    parser.add_argument("--texts", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=count_cores())
    parser.add_argument("--words", type=int, nargs="+", default=[16, 220])
    arguments = parser.parse_args()
    for words in arguments.words:
        texts = make_texts(arguments.texts, words)
        result = compare_speeds(texts, arguments.threads, arguments.rounds)
        print(json.dumps({"words": words, "threads": arguments.threads, **result}))


if __name__ == "__main__":
    main()
