"""Django applications compared with Django's own view: each difference has a cause."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from benchmarks.code_truth.compare import UNEXPLAINED
from benchmarks.django_truth.__main__ import HERE, compare_application
from benchmarks.measure import RESULTS

KNOWN: dict[str, Any] = YAML(typ="safe").load(HERE / "applications.yaml")
OF = ("routes", "columns")


@pytest.mark.slow
def test_application_matches_the_stored_comparison_with_django() -> None:
    found = compare_application("rdmo", KNOWN["rdmo"], Path(sys.executable))
    kept = json.loads((RESULTS / "code-truth-django.json").read_text("utf-8"))
    assert [found[of]["recall"] for of in OF] == [1, 1]
    assert [found[of]["precision"] for of in OF[1:]] == [1]
    told = kept["applications"]["rdmo"]
    assert [found[of]["true"] for of in OF] == [told[of]["true"] for of in OF]
    assert found["routes"]["wrong"] == told["routes"]["wrong"]


def test_every_stored_difference_has_a_cause() -> None:
    kept = json.loads((RESULTS / "code-truth-django.json").read_text("utf-8"))
    assert set(kept["applications"]) == set(KNOWN)
    for found in kept["applications"].values():
        for of in OF:
            differing = {**found[of]["missed"], **found[of]["wrong"]}
            assert UNEXPLAINED not in differing
            missed, wrong = (sum(found[of][side].values()) for side in ("missed", "wrong"))
            assert found[of]["true"] - missed == found[of]["derived"] - wrong
