import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from rag_assets.common.errors import ConfigurationError
from rag_assets.models.config import EmbedderConfig
from rag_assets.models.embedding.local import OnnxEmbedder
from rag_assets.models.embedding.model_folder import DEFAULT_MODEL
from rag_assets.models.factory import build_embedder, get_embedder_id, have_same_vectors
from rag_assets.models.providers.local import DeterministicEmbedder


def test_the_shipped_model_is_the_default():
    embedder = build_embedder(EmbedderConfig())
    assert isinstance(embedder, OnnxEmbedder)
    assert embedder.dimensions == 384
    assert EmbedderConfig(model=DEFAULT_MODEL) != EmbedderConfig()
    assert get_embedder_id(EmbedderConfig(model=DEFAULT_MODEL)) == embedder.embedder_id


def test_the_cheap_id_is_the_embedders_id(tiny_model):
    folder = tiny_model()
    for config in (
        EmbedderConfig(),
        EmbedderConfig(path=folder),
        EmbedderConfig(path=folder, pooling="cls", dimensions=3, threads=1),
        EmbedderConfig(provider="deterministic"),
        EmbedderConfig(provider="deterministic", dimensions=1536, seconds_per_text=0.01),
    ):
        assert get_embedder_id(config) == build_embedder(config).embedder_id


def test_speed_is_no_part_of_the_id():
    slow = EmbedderConfig(provider="deterministic", seconds_per_text=1)
    assert get_embedder_id(slow) == "deterministic/hash@384"
    assert get_embedder_id(EmbedderConfig(threads=1)) == get_embedder_id(EmbedderConfig())
    assert isinstance(build_embedder(slow), DeterministicEmbedder)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"provider": "openia"}, "'local', 'openai', .* or 'auto'"),
        ({"dimension": 3}, "Extra inputs"),
        ({"dimensions": 0}, "greater than or equal to 1"),
        ({"dimensions": 4097}, "less than or equal to 4096"),
        ({"threads": 0}, "greater than or equal to 1"),
        ({"seconds_per_text": 1}, "'local' does not support seconds_per_text"),
        ({"provider": "deterministic", "model": "x", "threads": 1},
         "does not support model, threads"),
        ({"provider": "deterministic", "seconds_per_text": -1}, "greater than or equal to 0"),
        ({"model": "bge"}, "the model 'bge' is not shipped .*all-MiniLM-L6-v2"),
        ({"path": "models/bge"}, "path must be absolute"),
        ({"path": "/models/bge", "model": DEFAULT_MODEL}, "cannot be combined"),
        ({"pooling": "max"}, "'mean', 'cls' or 'last'"),
    ],
)  # fmt: skip
def test_a_wrong_configuration_is_refused_with_the_reason(options, message):
    with pytest.raises(ValidationError, match=message):
        EmbedderConfig(**options)


def test_a_configuration_cannot_change():
    with pytest.raises(ValidationError, match="frozen"):
        EmbedderConfig().threads = 2


def test_a_missing_folder_is_reported_when_the_embedder_is_needed(tmp_path: Path):
    config = EmbedderConfig(path=tmp_path / "gone")
    for use in (get_embedder_id, build_embedder):
        with pytest.raises(ConfigurationError, match="folder does not exist"):
            use(config)


@pytest.mark.slow
def test_asking_for_an_id_loads_no_heavy_library():
    code = (
        "import sys\n"
        "from rag_assets.models.config import EmbedderConfig\n"
        "from rag_assets.models.factory import build_embedder, get_embedder_id, have_same_vectors\n"
        "for config in (EmbedderConfig(), EmbedderConfig(provider='openai'),\n"
        "               EmbedderConfig(provider='gemini')):\n"
        "    build_embedder(config); get_embedder_id(config)\n"
        "heavy = {'onnxruntime', 'tokenizers', 'polars', 'dagster'}\n"
        "heavy |= {'openai', 'google.genai', 'httpx2'}\n"
        "print(*sorted(heavy & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


SERVER = "https://models.example.org/v1"


@pytest.mark.parametrize(
    ("options", "embedder_id"),
    [
        ({}, "local/all-MiniLM-L6-v2@384+cbed747c6b64"),
        ({"revision": "2026-11"}, "local/all-MiniLM-L6-v2@384+cbed747c6b64~2026-11"),
        ({"provider": "openai"}, "openai/text-embedding-3-small@1536"),
        ({"provider": "openai", "base_url": SERVER},
         "openai/text-embedding-3-small@1536+02e1e41e9a45"),
        ({"provider": "openai", "query_prefix": "q: ", "document_prefix": "p: "},
         "openai/text-embedding-3-small@1536+bda2106630ba"),
        ({"provider": "gemini"}, "gemini/gemini-embedding-001@1536+b0e96883af6d"),
        ({"provider": "gemini", "model": "gemini-embedding-2", "dimensions": 3072},
         "gemini/gemini-embedding-2@3072+f7c202ed72b9"),
        ({"provider": "gemini", "model": "text-embedding-004", "dimensions": 1536},
         "gemini/text-embedding-004@1536+2d4b14e53b43"),
        ({"provider": "gemini", "model": "gemini-embedding-exp", "dimensions": 1536},
         "gemini/gemini-embedding-exp@1536+b0e96883af6d"),
        ({"provider": "openai-compatible", "model": "e5", "dimensions": 384, "base_url": SERVER},
         "openai-compatible/e5@384+02e1e41e9a45"),
        (
            {
                "provider": "openai-compatible",
                "model": "text-embedding-3-small",
                "base_url": SERVER,
                "query_prefix": "query: ",
            },
            "openai-compatible/text-embedding-3-small@1536+a4995fe7b9d1",
        ),
    ],
)  # fmt: skip
def test_ids_of_earlier_releases_are_kept(options: dict[str, object], embedder_id: str) -> None:
    assert get_embedder_id(EmbedderConfig.model_validate(options)) == embedder_id


def test_embedders_make_the_same_vectors_whatever_they_cost() -> None:
    large = {"provider": "openai", "model": "text-embedding-3-large"}
    for other, same in (
        ({"price": {"per_million": 0.2}, "requests_per_minute": 9}, True),
        ({"dimensions": 3072}, True),
        ({"dimensions": 256}, False),
        ({"model": "text-embedding-3-small"}, False),
        ({"revision": "2026-11"}, False),
    ):
        two = (EmbedderConfig.model_validate(one) for one in (large, {**large, **other}))
        assert have_same_vectors(*two) is same, other
    chosen = EmbedderConfig(provider="auto")
    assert have_same_vectors(chosen, EmbedderConfig(provider="auto", concurrency=2))
    assert not have_same_vectors(chosen, EmbedderConfig(provider="auto", only="openai"))
    gone = EmbedderConfig(path=Path("/nowhere"), dimensions=8)
    assert have_same_vectors(gone, gone)
    assert not have_same_vectors(gone, EmbedderConfig())
