"""Only the code of a release's tag writes the archive of the release, and only once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.upgrades.keep import choose_file
from tests.repositories import MadeRepository

RELEASE = "1.2.0"


@pytest.fixture
def checkout(tmp_path: Path) -> MadeRepository:
    made = MadeRepository(tmp_path / "checkout")
    made.commit({"code.py": "released = True\n"})
    made.git.references.create(f"refs/tags/v{RELEASE}", made.git.head.target)
    return made


def test_choose_file_at_the_tag_returns_the_file(checkout: MadeRepository, tmp_path: Path) -> None:
    (checkout.root / "notes.txt").write_text("not of the repository")
    assert choose_file(RELEASE, checkout.root, tmp_path) == tmp_path / f"{RELEASE}.tar.xz"


def test_choose_file_existing_archive_is_refused(checkout: MadeRepository, tmp_path: Path) -> None:
    (tmp_path / f"{RELEASE}.tar.xz").touch()
    with pytest.raises(SystemExit, match="never changed"):
        choose_file(RELEASE, checkout.root, tmp_path)


def test_choose_file_other_code_is_refused(checkout: MadeRepository, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"not the code of v1\.3\.0"):
        choose_file("1.3.0", checkout.root, tmp_path)
    checkout.write({"code.py": "released = False\n"})
    with pytest.raises(SystemExit, match=r"not the code of v1\.2\.0"):
        choose_file(RELEASE, checkout.root, tmp_path)
    checkout.commit(message="later")
    with pytest.raises(SystemExit, match=r"not the code of v1\.2\.0"):
        choose_file(RELEASE, checkout.root, tmp_path)
