"""The stand-in for a cross-encoder computes late interaction with the shipped model."""

import asyncio
from pathlib import Path

import numpy as np
import pytest

from benchmarks.late_interaction import build_reranker, compute_rarity
from rag_assets.models.embedding.model_folder import describe_folder
from rag_assets.models.onnx import build_inputs, load_session, load_tokenizer, plan_inputs
from rag_assets.models.reranking.cross_encoder import CrossEncoder

QUESTION = "How long can I send something back?"
PASSAGES = (
    "Returns are accepted within thirty days of delivery.",
    "The museum opens at nine, and closes when the last visitor has left the building.",
)


@pytest.mark.slow
def test_reranker_scores_a_pair_by_its_nearest_word_pieces(tmp_path: Path) -> None:
    build_reranker(tmp_path)
    scores = asyncio.run(CrossEncoder(tmp_path).score_passages(QUESTION, PASSAGES, seconds=60))
    shipped = describe_folder()
    session, tokenizer = load_session(shipped.weights), load_tokenizer(shipped.tokenizer)
    tokenizer.no_padding()
    inputs = plan_inputs(session, shipped.weights)

    def pieces(text: str) -> tuple[list[int], np.ndarray]:
        encoded = tokenizer.encode(text)
        vectors = session.run(None, build_inputs(inputs, [encoded]))[0][0][1:-1]
        return encoded.ids[1:-1], vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    ids, asked = pieces(QUESTION)
    weights = compute_rarity(30_522)[ids]
    expected = [
        float(weights @ (asked @ pieces(passage)[1].T).max(axis=1) / weights.sum())
        for passage in PASSAGES
    ]
    # int8: how onnxruntime fuses a graph decides about roundings of the third digit.
    assert scores == pytest.approx(expected, abs=0.03)
    assert scores[0] > scores[1]
