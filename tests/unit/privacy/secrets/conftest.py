from pathlib import Path

import pytest

from rag_assets.privacy.secrets.scanner import SecretScanner
from tests.rules import with_rules


@pytest.fixture(scope="session")
def rules_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return with_rules(tmp_path_factory.mktemp("rules"))


@pytest.fixture(scope="session")
def scanner(rules_dir: Path) -> SecretScanner:
    return SecretScanner(rules_dir)
