from __future__ import annotations

import pytest

from rag_assets.pipeline.context import config_key
from rag_assets.tenants.model import Tenant


def test_another_password_lets_failed_documents_be_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tenant = Tenant.from_config({"id": "a", "parser": {"passwords": ["$NAME"]}})
    keys = set()
    for value in ("one", "two", "one"):
        monkeypatch.setenv("NAME", value)
        keys.add(config_key(tenant, "embedder"))
    assert len(keys) == 2
