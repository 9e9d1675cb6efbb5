"""A changing repository: after any history a tenant equals a fresh one with the same files.

RAG_ASSETS_TEST_HISTORIES is the number of random histories. RAG_ASSETS_TEST_REPOSITORY names a Git
repository of which RAG_ASSETS_TEST_COMMITS commits are followed one by one, instead of the
project's own repository.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.code_index import differences, index_of, left_over
from tests.driving import Driver
from tests.histories import History, State, put
from tests.installation import FAST, Installation
from tests.integration.systems.code_memory.test_relations import FILES as OTHERS
from tests.integration.systems.code_memory.test_searches import FILES as PHP
from tests.real_history import DELETED, MERGED, RENAMED, RealHistory, root_of
from tests.repositories import MadeRepository
from tests.unit.systems.code_memory.derived.test_documents import LARAVEL

pytestmark = pytest.mark.long

SEEDS = int(os.environ.get("RAG_ASSETS_TEST_HISTORIES", "3"))
STEPS = 6
LOOKS = 3
"""A fresh tenant is made after each of so many steps."""

GIVEN = os.environ.get("RAG_ASSETS_TEST_REPOSITORY")
COMMITS = int(os.environ.get("RAG_ASSETS_TEST_COMMITS", "30"))
COMPARED = int(os.environ.get("RAG_ASSETS_TEST_COMPARED", "15"))
"""After each of so many commits all is compared with a fresh tenant."""

OWN = root_of(Path(__file__))
FOLLOWED = (
    "rag_assets/code/languages/",
    "rag_assets/systems/code_memory/languages/",
    "docs/code-memory.md",
)
"""What is followed of the project itself: the readers of languages, where they were and are."""

EXAMPLE = Path(__file__).parents[4] / "examples" / "laravel"
FILES: State = {path: text.encode() for path, text in {**PHP, **OTHERS, **LARAVEL}.items()}
REFS = ("HEAD", "worktree", None)
"""What a source reads: commits, a worktree with what is not committed, or a plain folder."""


def add(
    installation: Installation,
    tenant: str,
    root: Path,
    ref: str | None,
    include: Sequence[str] = (),
) -> None:
    source = {"name": "repo", "type": "git", "root": str(root), "ref": ref, "include": include}
    if ref is None:
        every = ["**/*.*"]
        source = {"name": "repo", "type": "files", "root": str(root), "include": every}
    installation.add_tenant(
        tenant,
        **FAST,
        profile="code-memory",
        organization="acme",
        project=tenant,
        sources=[source],
    )


def assert_as_fresh(
    installation: Installation,
    driver: Driver,
    tenant: str,
    root: Path,
    ref: str | None,
    description: str,
    include: Sequence[str] = (),
) -> None:
    """Fail unless a tenant equals a fresh one with the same files."""
    number = len(driver.session.catalog.tenants.all())
    fresh = f"{tenant}-fresh-{number}"
    add(installation, fresh, root, ref, include)
    driver.sync(fresh)
    with driver.locked(tenant) as ctx:
        lived = index_of(ctx)
        assert left_over(ctx) == [], description
    with driver.locked(fresh) as ctx:
        anew = index_of(ctx)
    assert sum(lived.values()) > 100
    differing = "\n".join(differences(lived, anew))
    assert not differing, f"{description}\n{differing}"
    again = driver.sync(tenant)
    assert [again[done] for done in ("embedded", "upserted", "derived")] == [0, 0, 0], description


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(1, SEEDS))]
)
def test_any_history_leaves_what_a_fresh_index_has(
    shared_installation: Installation, driver: Driver, seed: int
) -> None:
    tenant = f"living-{seed}"
    ref = REFS[seed % len(REFS)]
    made = MadeRepository(shared_installation.home.parent / "sources" / tenant)
    made.commit(FILES)
    add(shared_installation, tenant, made.root, ref)
    driver.sync(tenant)
    # For a file that became unreadable, a folder source keeps the last good version, and Git leaves
    # it out.
    history = History(FILES, seed, unreadable=ref is not None)
    for number, state in enumerate(history.states(STEPS), 1):
        put(made.root, state)
        if ref == "HEAD" or number % 2:
            made.commit()
        driver.sync(tenant, allow_deletes=True)
        if number % LOOKS == 0:
            description = f"seed {seed}, step {number}: {history.did}"
            assert_as_fresh(shared_installation, driver, tenant, made.root, ref, description)


@pytest.mark.nightly
@pytest.mark.no_cover
@pytest.mark.timeout(7200 if GIVEN else 300)
@pytest.mark.skipif(not GIVEN and OWN is None, reason="no clone of Git with the whole history")
def test_real_commits_one_by_one_leave_what_a_fresh_index_has(
    shared_installation: Installation, driver: Driver
) -> None:
    tenant, ref = "followed", "followed"
    folder = shared_installation.home.parent / "sources" / tenant
    history = RealHistory(Path(GIVEN or OWN or ""), folder, ("",) if GIVEN else FOLLOWED)
    include = () if GIVEN else tuple(f"{one}**" if one[-1] == "/" else one for one in FOLLOWED)
    steps = history.steps(COMMITS + 1)
    assert len(steps) == COMMITS + 1
    assert GIVEN or {kind for one in steps for kind in one.kinds} == {RENAMED, DELETED, MERGED}
    for number, step in enumerate(steps):
        history.follow(step)
        if not number:
            add(shared_installation, tenant, folder, ref, include)
        driver.sync(tenant, allow_deletes=True)
        moved = not GIVEN and not step.kinds.isdisjoint({RENAMED, DELETED})
        if number and (number % COMPARED == 0 or moved):
            description = f"{step.commit} {step.subject}"
            assert_as_fresh(shared_installation, driver, tenant, folder, ref, description, include)


@pytest.mark.nightly
def test_made_commits_one_by_one_leave_what_a_fresh_index_has(
    shared_installation: Installation, driver: Driver
) -> None:
    tenant, ref = "made", "HEAD"
    made = MadeRepository(shared_installation.home.parent / "sources" / tenant)
    files = {
        str(path.relative_to(EXAMPLE)): path.read_bytes()
        for part in ("routes", "bootstrap", "database", "app/Models", "app/Http/Controllers")
        for path in (EXAMPLE / part).rglob("*")
        if path.is_file()
    }
    made.commit(files)
    add(shared_installation, tenant, made.root, ref)
    driver.sync(tenant)
    history = History(files, COMMITS // 2)
    for number, state in enumerate(history.states(COMMITS // 2), 1):
        put(made.root, state)
        made.commit()
        driver.sync(tenant, allow_deletes=True)
        if number % COMPARED == 0:
            description = str(history.did)
            assert_as_fresh(shared_installation, driver, tenant, made.root, ref, description)


SHOP = {
    "shop/app.py": "from flask import Flask\nfrom shop.carts import bp\napp = Flask(__name__)\n"
    "app.register_blueprint(bp, url_prefix='/v1')\n",
    "shop/carts.py": "from flask import Blueprint\nbp = Blueprint('carts', __name__)\n\n"
    "@bp.get('/carts')\ndef show_carts(): ...\n",
    "shop/model.py": "class Cart:\n    def total(self): ...\n",
    "tests/test_carts.py": "def test_all(client):\n    client.get('/v1/carts')\n",
    "src/Till.php": "<?php\nnamespace Shop;\nclass Till extends Drawer { function open() {} }\n",
    "src/Drawer.php": "<?php\nnamespace Shop;\nclass Drawer { function lock() {} }\n",
    "web/till.ts": "import { lock } from './lock'\nexport function open() { lock() }\n",
    "web/lock.ts": "export function lock() {}\n",
    "composer.json": '{"name": "acme/shop", "require": {"php": "^8.2"}}\n',
    "docs/shop.md": "# Shop\n\n`Cart` adds up, `src/Till.php` takes money.\n" * 3,
}
EDITS: tuple[tuple[str, dict[str, str | None]], ...] = (
    ("a comment in a file that nothing is derived from", {"src/Till.php": "// a\n"}),
    ("a definition moves", {"shop/model.py": "", "shop/cart.py": SHOP["shop/model.py"]}),
    ("a name becomes ambiguous", {"web/other.ts": SHOP["web/lock.ts"]}),
    ("the name is unique again", {"web/other.ts": None}),
    ("a file is gone that others refer to", {"src/Drawer.php": None}),
    ("it is back under another name", {"src/Box.php": SHOP["src/Drawer.php"]}),
    ("the prefix of routes changes", {"shop/app.py": SHOP["shop/app.py"].replace("v1", "v2")}),
    ("a page states a route by its path", {"web/pages/till.tsx": "export default () => null\n"}),
    ("it moves away", {"web/pages/till.tsx": None, "web/x/till.tsx": "export default () => 1\n"}),
    ("a manifest names Laravel", {"composer.json": '{"require": {"laravel/framework": "^11"}}\n'}),
    ("a controller by its folder alone", {"app/Http/Controllers/Pay.php": "<?php class Pay {}\n"}),
    ("the manifest no longer does", {"composer.json": SHOP["composer.json"]}),
    ("no framework is left", {"shop/app.py": "", "shop/carts.py": "def show_carts(): ...\n"}),
)


def test_each_kind_of_edit_leaves_what_a_fresh_index_has(
    shared_installation: Installation, driver: Driver
) -> None:
    tenant = "edited"
    made = MadeRepository(shared_installation.home.parent / "sources" / tenant)
    made.commit(SHOP)
    add(shared_installation, tenant, made.root, "HEAD")
    driver.sync(tenant)
    for what, edits in EDITS:
        for path, text in edits.items():
            if text is None:
                (made.root / path).unlink()
            else:
                added = SHOP.get(path, "") if text.startswith("//") else ""
                made.write({path: added + text})
        made.commit()
        driver.sync(tenant, allow_deletes=True)
        assert_as_fresh(shared_installation, driver, tenant, made.root, "HEAD", what)
