"""Data of each release since 0.2.0: moved to other servers and upgraded, it answers as before."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.driving import Driver
from tests.installation import Installation
from tests.integration.api.conftest import serving
from tests.integration.upgrades.answers import require_equal
from tests.integration.upgrades.archive import DATA, restore

CHANGELOG = Path(__file__).resolve().parents[3] / "CHANGELOG.md"
RELEASES = sorted(file.name.removesuffix(".tar.xz") for file in DATA.iterdir())


def test_every_release_before_the_newest_has_kept_data() -> None:
    released = re.findall(r"^## \[(\d+\.\d+\.\d+)\]", CHANGELOG.read_text(), re.M)
    assert {"0.2.0", *released[1:]} <= set(RELEASES) <= set(released)


@pytest.mark.parametrize("release", RELEASES)
def test_data_of_a_release_answers_as_it_did_and_nothing_is_embedded(
    installation: Installation, release: str
) -> None:
    questions = restore(DATA / f"{release}.tar.xz", installation)
    refused = installation.command("sync", "--all")
    assert refused.code == 1
    assert "installation move" in refused.err
    moved = installation.command("installation", "move", "--yes")
    assert moved.code == 0, moved.err

    synced = installation.command("sync", "--all", "--repair", "--json")
    assert synced.code == 0, (synced.out, synced.err)
    embedded = {
        tenant["tenant"]: tenant["stages"]["embeddings"]["embedded"]
        for tenant in synced.json["tenants"]
    }
    assert embedded == dict.fromkeys((question.tenant for question in questions), 0)

    with serving(installation, Driver(installation)) as api:
        for question in questions:
            require_equal(question.answer, question.ask(api))
