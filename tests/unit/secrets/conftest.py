from __future__ import annotations

import pytest

from rag_assets.secrets.scanner import SecretScanner


@pytest.fixture(scope="session")
def scanner(tmp_path_factory: pytest.TempPathFactory) -> SecretScanner:
    return SecretScanner(tmp_path_factory.mktemp("rules"))
