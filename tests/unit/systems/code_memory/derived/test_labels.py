"""Labels of repositories of any framework, and of several."""

from pathlib import Path

import pytest

from rag_assets.systems.code_memory.derived.documents import (
    READ_KINDS,
    find_source_types,
    keep_deciding_facts,
    list_deciding_facts,
)
from rag_assets.systems.code_memory.reading import read_code
from rag_assets.systems.code_memory.symbols.model import FileFacts

MODELS = """from django.db import models

class Invoice(models.Model):
    total = models.IntegerField()
"""
VIEWS = "from django.views import View\n\nclass Show(View):\n    def get(self, request): ...\n"


def file(path: str, text: str) -> FileFacts:
    language = {"py": "python", "php": "php"}[path.rpartition(".")[2]]
    return FileFacts(path, language, read_code(text, f"text/x-{language}").facts)


def test_each_framework_labels_its_own_files() -> None:
    job = "<?php class Ship implements \\Illuminate\\Contracts\\Queue\\ShouldQueue {}"
    files = [file("shop/models.py", MODELS), file("shop/views.py", VIEWS), file("a.php", job)]
    assert find_source_types(files) == {
        ("shop/models.py", "Invoice"): "model",
        ("shop/views.py", "Show"): "controller",
        ("a.php", "Ship"): "job",
    }


def test_python_without_django_has_no_kinds() -> None:
    text = "class Model: ...\n\nclass Invoice(Model): ...\n"
    assert find_source_types([file("models.py", text)]) == find_source_types([]) == {}


def test_a_repository_that_speaks_of_rest_framework_alone_is_djangos() -> None:
    text = "from rest_framework import serializers\n\nclass Row(serializers.Serializer): ...\n"
    assert find_source_types([file("api/rows.py", text)]) == {("api/rows.py", "Row"): "resource"}


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("class A { function f() { return 1; } }", "class A { function f() { g(2); } }", True),
        ("class A {}", "\n\n/** Ships. */\nclass A {}", True),
        ("class A {}", "class A { function f(B $b): C { return new C; } }", True),
        ("class A {}", "class A extends B {}", False),
        ("class A {}", "class B {}", False),
        ("class A {}", "interface A {}", False),
        ("class A {}", "class A { function handle() {} }", False),
        ("class A {}", "class A implements \\Illuminate\\Contracts\\Queue\\ShouldQueue {}", False),
        ("f();", "event(new Paid($x));", False),
        ("f();", "\\Illuminate\\Support\\Facades\\Gate::policy(A::class, B::class);", False),
    ],
)
def test_only_facts_that_decide_kinds_are_compared(before: str, after: str, *, same: bool) -> None:
    files = (file("a.php", f"<?php {text}") for text in (before, after))
    former, newer = (list_deciding_facts(one.facts, "php") for one in files)
    assert (former == newer) is same


def test_all_facts_of_python_but_calls_decide() -> None:
    former, newer, other = (
        list_deciding_facts(file("a.py", text).facts, "python")
        for text in (VIEWS, VIEWS.replace("...", "print(1)"), VIEWS.replace("(View)", ""))
    )
    assert former == newer != other
    assert list_deciding_facts(file("a.py", VIEWS).facts, "markdown") == []


def test_deciding_facts_alone_give_the_same_kinds() -> None:
    root = Path(__file__).parents[5] / "examples" / "laravel"
    paths = [path for path in sorted(root.rglob("*.php")) if "vendor" not in path.parts]
    files = [file(str(one.relative_to(root)), one.read_text()) for one in paths]
    read: list[FileFacts] = []
    for one in files:
        facts = keep_deciding_facts(one.facts, "php")
        assert {fact.kind for fact in facts} <= READ_KINDS
        read.append(FileFacts(one.path, one.language, facts))
    found = find_source_types(files)
    assert len(found) > 100
    assert find_source_types(read) == found
    kept, all_facts = (sum(len(one.facts) for one in side) for side in (read, files))
    assert kept < 0.5 * all_facts
