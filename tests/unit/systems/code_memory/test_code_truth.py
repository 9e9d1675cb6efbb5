"""The benchmarks that compare relations with their truth."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from benchmarks.code_truth import compare as comparing
from benchmarks.code_truth.compare import UNEXPLAINED, compare_names, format_routes, group_by_cause
from benchmarks.code_truth.laravel import SCRIPTS
from benchmarks.django_truth.__main__ import HERE, compare_application
from benchmarks.measure import RESULTS

ROUTE = {
    "methods": ["GET", "HEAD"],
    "domain": "",
    "uri": "/a/{b}",
    "name": "",
    "action": "C@a",
    "middleware": ["web", "auth:api"],
}


def test_compare_names_counts_duplicates_and_nothing_is_perfect() -> None:
    found = compare_names(["a", "a", "b", "c"], ["a", "b", "b"])
    assert (found.recall, found.precision) == (0.5, 2 / 3)
    assert (found.missed, found.wrong) == (("a", "c"), ("b",))
    nothing = compare_names([], [])
    assert (nothing.recall, nothing.precision) == (1.0, 1.0)


def test_format_routes_includes_all_parts_of_a_route() -> None:
    assert format_routes([ROUTE]) == ["GET|HEAD /a/{b} - C@a"]
    assert format_routes([ROUTE], middleware=True) == ["GET|HEAD /a/{b} - C@a web+auth:api"]
    other = {**ROUTE, "domain": "x.test", "name": "a"}
    assert format_routes([other]) == ["GET|HEAD x.test/a/{b} a C@a"]


def test_differences_without_a_cause_are_grouped_as_unexplained() -> None:
    causes = {"media*": "made elsewhere", "*.id": "a key"}
    assert group_by_cause(["media.id", "a.id", "a.b"], causes) == {
        "made elsewhere": ["media.id"],
        "a key": ["a.id"],
        UNEXPLAINED: ["a.b"],
    }


def test_columns_are_named_with_their_table() -> None:
    assert comparing.list_columns({"a": [{"name": "id"}, {"name": "b"}]}) == ["a.id", "a.b"]


@pytest.mark.slow
def test_missing_names_get_stand_ins_of_the_right_kind(tmp_path: Path) -> None:
    php = shutil.which("php")
    if php is None:
        pytest.skip("no PHP is installed: `make php`")
    own = tmp_path / "app"
    own.mkdir()
    (own / "Model.php").write_text(
        """<?php
namespace App;
use Away\\Contracts\\Auditable as Contract;
use Away\\{Auditable, Base};
use Away\\Tokens;
class Model extends Base implements Contract
{
    use Auditable, Tokens {
        Tokens::make as private _make;
    }
    const string NAME = 'a';
    public function kind() { return Other::class; }
    public function own() { return $this->_make() === $this; }
}
"""
    )
    script = tmp_path / "try.php"
    script.write_text(
        f"""<?php
require '{SCRIPTS}/later_php.php';
require '{SCRIPTS}/stand_ins.php';
$loader = new CodeTruth\\Loader('{tmp_path}', ['App\\\\' => 'app/'], '{tmp_path}');
spl_autoload_register([$loader, 'load']);
$one = new App\\Model;
echo json_encode([
    $one->own(), $one->kind(), App\\Model::NAME, $one->anything()->more() === $one,
    trait_exists('Away\\Auditable'), interface_exists('Away\\Contracts\\Auditable'),
    (new App\\Controllers\\Shown)() instanceof App\\Controllers\\Shown,
    $loader->isOwn('App\\Model'),
]);
"""
    )
    done = subprocess.run([php, script], capture_output=True, text=True, check=False)
    assert json.loads(done.stdout) == [True, "App\\Other", "a", True, True, True, True, True]


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
