"""Builds of model folders that earlier versions identified differently keep answering."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest

from rag_assets.billing.embedders import Embedders
from rag_assets.billing.spending import Meter
from rag_assets.common.errors import IndexInconsistent
from rag_assets.models.config import EmbedderConfig
from rag_assets.models.embedding.local import OnnxEmbedder
from rag_assets.models.embedding.model_folder import describe_folder
from rag_assets.models.factory import get_embedder_id
from rag_assets.search.tenant_models import CachingQuestionEmbedder, Vector
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.tenants.model import Tenant
from tests.sentence_encoders import WIDTH, sentence_encoder, write_dense

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
