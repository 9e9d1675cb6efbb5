"""Kinds of repositories of any framework, and of several."""

from rag_assets.code.frameworks.labels import kinds_of
from rag_assets.code.model import FileFacts
from rag_assets.code.reading import read_code

MODELS = """from django.db import models

class Invoice(models.Model):
    total = models.IntegerField()
"""
VIEWS = "from django.views import View\n\nclass Show(View):\n    def get(self, request): ...\n"


def file(path: str, text: str) -> FileFacts:
    language = {"py": "python", "php": "php"}[path.rpartition(".")[2]]
    return FileFacts(path, language, read_code(text, f"text/x-{language}").facts)


def test_each_framework_tells_of_its_own_files() -> None:
    job = "<?php class Ship implements \\Illuminate\\Contracts\\Queue\\ShouldQueue {}"
    files = [file("shop/models.py", MODELS), file("shop/views.py", VIEWS), file("a.php", job)]
    assert kinds_of(files) == {
        ("shop/models.py", "Invoice"): "model",
        ("shop/views.py", "Show"): "controller",
        ("a.php", "Ship"): "job",
    }


def test_python_without_django_has_no_kinds() -> None:
    assert kinds_of([file("models.py", "class Model: ...\n\nclass Invoice(Model): ...\n")]) == {}
    assert kinds_of([]) == {}
