"""A repository as a tenant's source, from the listing to the catalog."""

from __future__ import annotations

from pathlib import Path

import pygit2

from tests.driving import Driver
from tests.installation import FAST, Installation
from tests.repositories import MadeRepository

TENANT = "code"


def test_commits_change_what_they_change_and_nothing_else(
    installation: Installation, tmp_path: Path
) -> None:
    made = MadeRepository(tmp_path / "shop")
    pages = {f"docs/{n}.md": f"# Page {n}\n\nWords of page {n}.\n" for n in range(4)}
    first = made.commit(pages)
    source = {"name": "code", "type": "git", "root": str(made.root)}
    installation.add_tenant(TENANT, **FAST, sources=[source])
    driver = Driver(installation)
    assert driver.sync(TENANT)["added"] == 4
    catalog = driver.session.catalog
    versions = {row.uri: row.facts.version for row in catalog.documents.all(TENANT)}
    assert versions["code/docs/0.md"] == str(made.git.revparse_single("HEAD:docs/0.md").id)
    digest = catalog.syncs.all(TENANT)["code"].listing_digest
    assert digest is not None
    assert digest.startswith("state-")
    assert driver.sync(TENANT)["upserted"] == 0

    # Uncommitted files are compared by their facts, committed ones by their blob; nothing is
    # embedded again.
    made.write({"docs/0.md": "# Page 0\n\nOther words.\n"})
    done = driver.sync(TENANT)
    assert (done["changed"], done["upserted"]) == (1, 1)
    before = {row.uri: row.document_key for row in catalog.documents.all(TENANT)}
    made.commit()
    done = driver.sync(TENANT)
    assert (done["changed"], done["embedded"], done["upserted"]) == (0, 0, 0)
    rows = catalog.documents.all(TENANT)
    assert {row.uri: row.document_key for row in rows} == before
    assert all(row.facts.version for row in rows)

    made.git.reset(first, pygit2.enums.ResetMode.HARD)
    (made.root / "docs/3.md").unlink()
    done = driver.sync(TENANT)
    assert (done["changed"], done["removed"]) == (1, 1)
