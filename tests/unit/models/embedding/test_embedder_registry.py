from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from rag_assets.common.errors import ConfigurationError
from rag_assets.models.embedding.deterministic import DeterministicEmbedder
from rag_assets.models.embedding.local import OnnxEmbedder
from rag_assets.models.embedding.model_folder import DEFAULT_MODEL
from rag_assets.models.embedding.registry import EmbedderConfig, build_embedder, embedder_id_of


def test_the_shipped_model_is_the_default():
    embedder = build_embedder(EmbedderConfig())
    assert isinstance(embedder, OnnxEmbedder)
    assert embedder.dimensions == 384
    assert EmbedderConfig(model=DEFAULT_MODEL) != EmbedderConfig()
    assert embedder_id_of(EmbedderConfig(model=DEFAULT_MODEL)) == embedder.embedder_id


def test_the_cheap_id_is_the_embedders_id(tiny_model):
    folder = tiny_model()
    for config in (
        EmbedderConfig(),
        EmbedderConfig(path=folder),
        EmbedderConfig(path=folder, pooling="cls", dimensions=3, threads=1),
        EmbedderConfig(provider="deterministic"),
        EmbedderConfig(provider="deterministic", dimensions=1536, seconds_per_text=0.01),
    ):
        assert embedder_id_of(config) == build_embedder(config).embedder_id


def test_speed_is_no_part_of_the_id():
    slow = EmbedderConfig(provider="deterministic", seconds_per_text=1)
    assert embedder_id_of(slow) == "deterministic/hash@384"
    assert embedder_id_of(EmbedderConfig(threads=1)) == embedder_id_of(EmbedderConfig())
    assert isinstance(build_embedder(slow), DeterministicEmbedder)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"provider": "openia"}, "'local', 'openai', .* or 'deterministic'"),
        ({"dimension": 3}, "Extra inputs"),
        ({"dimensions": 0}, "greater than or equal to 1"),
        ({"dimensions": 4097}, "less than or equal to 4096"),
        ({"threads": 0}, "greater than or equal to 1"),
        ({"seconds_per_text": 1}, "'local' takes no seconds_per_text"),
        ({"provider": "deterministic", "model": "x", "threads": 1}, "takes no model, threads"),
        ({"provider": "deterministic", "seconds_per_text": -1}, "greater than or equal to 0"),
        ({"model": "bge"}, "no model 'bge' is shipped .*all-MiniLM-L6-v2"),
        ({"path": "models/bge"}, "path must be absolute"),
        ({"path": "/models/bge", "model": DEFAULT_MODEL}, "not both"),
        ({"pooling": "max"}, "'mean' or 'cls'"),
    ],
)
def test_a_wrong_configuration_says_what_is_wrong(options, message):
    with pytest.raises(ValidationError, match=message):
        EmbedderConfig(**options)


def test_a_configuration_cannot_change():
    with pytest.raises(ValidationError, match="frozen"):
        EmbedderConfig().threads = 2


def test_a_missing_folder_is_told_when_the_embedder_is_needed(tmp_path: Path):
    config = EmbedderConfig(path=tmp_path / "gone")
    for use in (embedder_id_of, build_embedder):
        with pytest.raises(ConfigurationError, match="no such folder"):
            use(config)


def test_asking_for_an_id_loads_no_heavy_library():
    code = (
        "import sys\n"
        "from rag_assets.models.embedding.registry import *\n"
        "for config in (EmbedderConfig(), EmbedderConfig(provider='openai'),\n"
        "               EmbedderConfig(provider='gemini')):\n"
        "    build_embedder(config); embedder_id_of(config)\n"
        "heavy = {'onnxruntime', 'tokenizers', 'polars', 'dagster'}\n"
        "heavy |= {'openai', 'google.genai', 'httpx2'}\n"
        "print(*sorted(heavy & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
