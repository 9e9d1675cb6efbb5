"""Filters by language and date, from files to hits."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rag_assets.common.errors import InvalidRequest
from rag_assets.search.model import Hit
from tests.back_ends import EACH_BACK_END
from tests.driving import Driver
from tests.installation import FAST, Installation

pytestmark = EACH_BACK_END

GERMAN = "# Lager\n\nWer im Lager arbeitet, liest vor Beginn der Schicht die Hinweise.\n"
ENGLISH = "# Depot\n\nWhoever works in the depot reads the instructions before the shift.\n"
CODE = '"""Works in the depot."""\n\n\ndef shift() -> str:\n    return "Lager"\n'
MADE = {
    "lager.md": datetime(2024, 3, 1, 8, 30, 0, 123_000, UTC),
    "depot.md": datetime(2025, 6, 1, tzinfo=UTC),
    "depot.py": datetime(2026, 1, 1, tzinfo=UTC),
}


def date(path: Path, at: datetime) -> None:
    nanoseconds = round(at.timestamp() * 1_000) * 1_000_000
    os.utime(path, ns=(nanoseconds, nanoseconds))


@pytest.fixture(scope="module")
def folder(shared_installation: Installation, driver: Driver) -> Path:
    folder = shared_installation.add_tenant("narrowed", **FAST)
    source = {"name": "files", "type": "files", "root": str(folder), "include": ["*.md", "*.py"]}
    shared_installation.configure("narrowed", sources=[source])
    for (name, at), text in zip(MADE.items(), (GERMAN, ENGLISH, CODE), strict=True):
        (folder / name).write_text(text)
        date(folder / name, at)
    driver.sync("narrowed")
    return folder


def found(installation: Installation, **filters: object) -> dict[str, Hit]:
    """Return the hits, by file name, of a question that every file matches."""
    hits = installation.search("narrowed", "Lager depot", mode="knn", filters=filters)
    return {hit.uri.removeprefix("files/"): hit for hit in hits}


def test_every_hit_has_language_and_date(shared_installation: Installation, folder: Path) -> None:
    hits = found(shared_installation)
    assert {name: hit.modified_at for name, hit in hits.items()} == MADE
    languages = {"lager.md": "de", "depot.md": "en", "depot.py": "python"}
    assert {name: hit.language for name, hit in hits.items()} == languages


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ({"languages": ["DE"]}, {"lager.md"}),
        ({"languages": ["en", "python"]}, {"depot.md", "depot.py"}),
        ({"languages": ["fr"]}, set()),
        ({"modified_after": "2025-06-01"}, {"depot.md", "depot.py"}),
        ({"modified_before": "2025-06-01"}, {"lager.md"}),
        ({"modified_after": "2024-03-01T09:30:00.123+01:00"}, set(MADE)),
        ({"modified_after": "2024-03-01T08:30:00.1231Z"}, {"depot.md", "depot.py"}),
        ({"modified_after": "2025-01-01", "modified_before": "2026-01-01"}, {"depot.md"}),
        ({"modified_after": "2025-01-01", "languages": ["de"]}, set()),
    ],
)
def test_a_filter_leaves_what_it_names(
    shared_installation: Installation, folder: Path, filters: dict[str, object], names: set[str]
) -> None:
    assert found(shared_installation, **filters).keys() == names


def test_a_time_without_a_zone_is_refused(shared_installation: Installation, folder: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"filters\.modified_after: .* with its zone"):
        found(shared_installation, modified_after="2025-06-01T00:00:00")


def test_a_touch_changes_nothing_and_an_edit_moves_the_date(
    shared_installation: Installation, driver: Driver, folder: Path
) -> None:
    before = shared_installation.entries("narrowed")
    later = datetime(2026, 10, 1, tzinfo=UTC)
    for name in MADE:
        date(folder / name, later)
    (folder / "depot.py").write_text(CODE.replace("shift", "turn"))
    date(folder / "depot.py", later)
    driver.sync("narrowed")
    after = shared_installation.entries("narrowed")
    replaced = {uri for uri, _, _ in {**before, **after}.values()} - {
        uri for id_, (uri, _, _) in before.items() if id_ in after
    }
    assert replaced == {"files/depot.py"}
    dates = {name: hit.modified_at for name, hit in found(shared_installation).items()}
    assert dates == {**MADE, "depot.py": later}

    # The former content, written again, has the new time.
    (folder / "depot.py").write_text(CODE)
    date(folder / "depot.py", later + timedelta(days=1))
    driver.sync("narrowed")
    since = found(shared_installation, modified_after=later + timedelta(days=1))
    assert since.keys() == {"depot.py"}
