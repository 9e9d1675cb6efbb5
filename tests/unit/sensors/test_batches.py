from types import SimpleNamespace
from typing import Any

import pytest

from rag_assets.sensors import batches


def test_a_tick_reports_open_batches_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "choose_due_batches", lambda *_: [])
    monkeypatch.setattr(batches, "Embedders", lambda *_: None)
    catalog = SimpleNamespace(batches=SimpleNamespace(list_open=lambda: [object()] * 3))
    postgres: Any = SimpleNamespace(
        installation=SimpleNamespace(settings=None), catalog=lambda: catalog
    )
    skipped = batches.embedding_batches_sensor.function(SimpleNamespace(), postgres)
    assert skipped.skip_message == "3 batches under way, 0 of them polled"
