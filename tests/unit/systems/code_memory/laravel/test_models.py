"""Models and relations, compared with Eloquent's on the example."""

from __future__ import annotations

import pytest

from rag_assets.systems.code_memory.languages.php.source import PhpSource
from rag_assets.systems.code_memory.laravel.models import (
    EloquentModel,
    list_model_facts,
    resolve_models,
)
from rag_assets.systems.code_memory.reading import read_code
from rag_assets.systems.code_memory.symbols.model import FileFacts
from tests.unit.systems.code_memory.laravel.schema_truth import EXAMPLE, models_by_laravel

PREFIXES = {"App\\": "app/", "Modules\\Banking\\": "modules/Banking/src/"}


def read(path: str, text: str) -> FileFacts:
    return FileFacts(path, "php", list_model_facts(PhpSource(text)))


def models(**sources: str) -> dict[str, EloquentModel]:
    files = [read(f"app/{name}.php", f"<?php\n{text}") for name, text in sources.items()]
    return dict(resolve_models(files))


def example_models() -> dict[str, EloquentModel]:
    paths = [*(EXAMPLE / "app").rglob("*.php"), *(EXAMPLE / "modules").rglob("*.php")]
    return dict(
        resolve_models(
            read(path.relative_to(EXAMPLE).as_posix(), path.read_text(encoding="utf-8"))
            for path in paths
        )
    )


@pytest.mark.slow
def test_the_examples_models_are_eloquents() -> None:
    found = {name: model for name, model in example_models().items() if not model.abstract}
    plan = {name: [relation.name for relation in model.relations] for name, model in found.items()}
    truth = models_by_laravel(EXAMPLE, PREFIXES, plan)
    assert len(found) >= 30
    for name, model in found.items():
        assert model.table == truth[name]["table"], name
        for relation in model.relations:
            told = truth[name]["relations"][relation.name]
            kind = {"morphedByMany": "morphToMany"}.get(relation.kind, relation.kind)
            assert kind == told["kind"], (name, relation.name)
            if kind != "morphTo":
                assert relation.related == told["related"], (name, relation.name)
            assert relation.table == told.get("table", ""), (name, relation.name)


def test_a_parents_table_holds_and_the_convention_does_not_pass_on() -> None:
    found = models(
        Base="namespace A; abstract class Base extends \\Illuminate\\Database\\Eloquent\\Model {}",
        Plan="namespace A; class Plan extends Base { protected $table = 'subscriptions'; }",
        Yearly="namespace A; class Yearly extends Plan {}",
        Thing="namespace A; class Thing extends Base {}",
        PartOfThing="namespace A; class PartOfThing extends Thing {}",
    )
    assert {name: (model.table, model.how) for name, model in found.items()} == {
        "A\\Base": ("", "convention"),
        "A\\Plan": ("subscriptions", "stated"),
        "A\\Yearly": ("subscriptions", "stated"),
        "A\\Thing": ("things", "convention"),
        "A\\PartOfThing": ("part_of_things", "convention"),
    }
    assert found["A\\Yearly"].evidence.path == "app/Plan.php"


def test_cyclic_ancestry_ends_and_is_no_model() -> None:
    found = models(
        One="class One extends Two { function a() { return $this->hasMany(Two::class); } }",
        Two="class Two extends One {}",
        Helper="class Helper extends \\Exception {}",
    )
    assert found == {}


def test_a_computed_table_is_not_guessed() -> None:
    found = models(
        Row="use Illuminate\\Database\\Eloquent\\Model;\n"
        "class Row extends Model { function getTable() { return config('rows.table'); } }"
    )
    assert (found["Row"].table, found["Row"].how) == ("", "stated")


def test_a_trait_relates_the_class_that_uses_it() -> None:
    found = models(
        Tree="trait Tree { function parent() { return $this->belongsTo(static::class); } }",
        Node="class Node extends \\Illuminate\\Database\\Eloquent\\Model { use Tree; }",
    )
    (relation,) = found["Node"].relations
    assert relation.related == "Node"
    assert relation.evidence.path == "app/Tree.php"


def test_an_heir_of_an_own_class_without_a_parent_is_no_model() -> None:
    texts = {
        "app/Models/Labels/Label.php": "namespace App\\Models\\Labels; abstract class Label {}",
        "app/Models/Labels/Tape.php": "namespace App\\Models\\Labels; class Tape extends Label {}",
        "app/Models/It.php": "namespace App\\Models; class It extends \\Vendor\\Models\\It {}",
    }
    files = [
        FileFacts(path, "php", read_code(f"<?php\n{text}\n", "text/x-php").facts)
        for path, text in texts.items()
    ]
    assert set(resolve_models(files)) == {"App\\Models\\It"}
