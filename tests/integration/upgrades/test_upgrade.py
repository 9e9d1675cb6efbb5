"""Data of each release since 0.2.0: moved to other servers and upgraded, it answers as before."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.driving import Driver
from tests.installation import Installation
from tests.integration.api.conftest import serving
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
            answer = without_ranking(question.answer)
            assert contained(answer, without_ranking(question.ask(api))) == answer, question


def without_ranking(answer: Any) -> Any:
    """Return an answer with its hits in a fixed order, without scores and numbers.

    A release may rank passages by other rules, but it finds the same ones.
    """
    if not isinstance(answer, dict) or not isinstance(answer.get("hits"), list):
        return answer
    by_rank = {"number", "score"}
    hits = [{name: one[name] for name in one if name not in by_rank} for one in answer["hits"]]
    return answer | {"hits": sorted(hits, key=lambda hit: (hit["uri"], hit["text"]))}


def contained(answer: object, present: object) -> object:
    """Return a present answer without the fields that the release's answer lacks."""
    if isinstance(answer, dict) and isinstance(present, dict):
        return {name: contained(answer.get(name), present.get(name)) for name in answer}
    if isinstance(answer, list) and isinstance(present, list):
        if len(answer) != len(present):
            return present
        return [contained(*both) for both in zip(answer, present, strict=True)]
    if isinstance(answer, float) and isinstance(present, float):
        # The local model's vectors of a question differ by up to 0.01 between processors.
        return answer if present == pytest.approx(answer, abs=0.02) else present
    return present
