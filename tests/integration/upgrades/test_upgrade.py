"""Data of each release since 0.2.0: taken elsewhere and upgraded, it answers as it did."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.driving import Driver
from tests.installation import Installation
from tests.integration.api.conftest import serving
from tests.integration.upgrades.kept import DATA, restore

RELEASES = sorted(DATA.glob("*.tar.xz"))


@pytest.mark.parametrize("release", RELEASES, ids=lambda file: file.name.removesuffix(".tar.xz"))
def test_data_of_a_release_answers_as_it_did_and_nothing_is_embedded(
    installation: Installation, release: Path
) -> None:
    questions = restore(release, installation)
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
    assert set(embedded.values()) == {0}, embedded

    with serving(installation, Driver(installation)) as api:
        for question in questions:
            assert contained(question.answer, question.ask(api)) == question.answer, question


def contained(answer: object, present: object) -> object:
    """Return a present answer without the fields that a release's answer does not have."""
    if isinstance(answer, dict) and isinstance(present, dict):
        return {name: contained(answer.get(name), present.get(name)) for name in answer}
    if isinstance(answer, list) and isinstance(present, list):
        if len(answer) != len(present):
            return present
        return [contained(*both) for both in zip(answer, present, strict=True)]
    if isinstance(answer, float) and isinstance(present, float):
        return answer if present == pytest.approx(answer, abs=1e-4) else present
    return present
