"""Facts of Python: base classes, and calls with known receivers, by references."""

import pytest

from rag_assets.systems.code_memory.languages.python.facts import read
from rag_assets.systems.code_memory.languages.python.source import (
    get_module_name,
    resolve_reference,
)

TEXT = """
import os.path
import numpy as np
from billing.models import Invoice, Line as Row
from . import rates
from ..core import Base

class Sender(Base, Invoice.Mixin):
    mailer: "Mailer"
    rate: rates.Rate | None = None

    def send(self, row: Row, other, /, *rest):
        os.path.join("a")
        np.zeros(1)
        row.text()
        self.rate.value()
        self.send(row, other)
        super().send(row)
        made = Invoice(1)
        made.save()
        changed = Invoice(2)
        changed = other()
        changed.no()
        other.no()
        rest.no()
        Row(1).total()
        len(rest)
        rates.of(1)
        helper()
        for helper2 in rest:
            helper2()

    @classmethod
    def make(cls, rates):
        cls.send()
        rates.no()

    @staticmethod
    def plain(self):
        self.no()

def helper():
    from json import dumps
    dumps(1)
    def inner():
        dumps(2)
    inner()
"""


def stated(kind: str, symbol: str) -> list[str]:
    facts = read(TEXT).facts
    return [fact.values["name"] for fact in facts if fact.kind == kind and fact.symbol == symbol]


def test_ancestors_are_references() -> None:
    assert stated("extends", "Sender") == ["..core.Base", "billing.models.Invoice.Mixin"]


def test_calls_are_told_only_where_the_receiver_is_known() -> None:
    assert stated("calls", "Sender.send") == [
        "os.path.join",
        "numpy.zeros",
        "billing.models.Line.text",
        ".rates.Rate.value",
        ":Sender.send",
        "billing.models.Invoice",
        "billing.models.Invoice.save",
        "billing.models.Line",
        "billing.models.Line.total",
        ".rates.of",
        ":helper",
    ]
    assert stated("calls", "Sender.make") == [":Sender.send"]
    assert stated("calls", "Sender.plain") == []
    assert stated("calls", "helper") == ["json.dumps", ":helper.inner"]
    assert stated("calls", "helper.inner") == ["json.dumps"]


def test_a_method_that_a_class_does_not_have_may_be_any_of_its_bases() -> None:
    text = """
from .b import Base
class Mixin: pass
class A(Base, Mixin):
    def f(self):
        self.g()
        self.own()
        self.held.h()
        def inner(): self.deep()
    def own(self): pass
    @classmethod
    def of(cls): cls.make()
"""
    assert [f.values["name"] for f in read(text).facts if f.kind == "calls"] == [
        *(":A.g", ".b.Base.g", ":Mixin.g", ":A.own"),
        *(":A.deep", ".b.Base.deep", ":Mixin.deep"),
        *(":A.make", ".b.Base.make", ":Mixin.make"),
    ]


def test_the_parent_of_one_base_is_known() -> None:
    text = "from a import B\nclass C(B):\n    def m(self):\n        super().m()\n"
    assert [f.values["name"] for f in read(text).facts if f.kind == "calls"] == ["a.B.m"]


PLACES = {
    "top": ("billing/models.py", {"billing"}, (), "billing.models"),
    "package": ("billing/__init__.py", {"billing"}, (), "billing"),
    "src": ("src/billing/models.py", {"src/billing"}, (), "billing.models"),
    "deep": ("a/b/billing/x/y.py", {"a/b/billing", "a/b/billing/x"}, (), "billing.x.y"),
    "root": ("backend/apps/billing/m.py", {"backend/apps/billing"}, {"backend"}, "apps.billing.m"),
    "script": ("manage.py", (), (), "manage"),
    "alone": ("src/tools/run.py", (), (), "tools.run"),
}


@pytest.mark.parametrize(("path", "packages", "roots", "name"), PLACES.values(), ids=list(PLACES))
def test_paths_are_modules(path: str, packages: set[str], roots: set[str], name: str) -> None:
    assert get_module_name(path, packages, roots) == name


REFERENCES = {
    "own": (":A.b", "x.y", False, "x.y.A.b"),
    "absolute": ("z.A", "x.y", False, "z.A"),
    "sibling": (".z.A", "x.y", False, "x.z.A"),
    "package": (".z.A", "x.y", True, "x.y.z.A"),
    "above": ("..z", "x.y.w", False, "x.z"),
    "outside": ("...z", "x.y", False, ""),
}


@pytest.mark.parametrize(
    ("reference", "module", "package", "name"), REFERENCES.values(), ids=list(REFERENCES)
)
def test_references_become_absolute(reference: str, module: str, package: bool, name: str) -> None:
    assert resolve_reference(reference, module, package=package) == name
