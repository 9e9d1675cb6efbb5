"""Facts of Python, and its units."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.systems.code_memory.languages.python.facts import read
from rag_assets.systems.code_memory.languages.python.source import (
    get_module_name,
    resolve_reference,
)
from tests.unit.systems.code_memory.languages.readers import assert_units_cover

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


def test_calls_are_stated_only_where_the_receiver_is_known() -> None:
    assert stated("extends", "Sender") == ["..core.Base", "billing.models.Invoice.Mixin"]
    assert stated("calls", "Sender.send") == [
        *("os.path.join", "numpy.zeros", "billing.models.Line.text", ".rates.Rate.value"),
        *(":Sender.send", "billing.models.Invoice", "billing.models.Invoice.save"),
        *("billing.models.Line", "billing.models.Line.total", ".rates.of", ":helper"),
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


VIEW = '''"""Invoices over HTTP."""
from django.views import View

LIMIT = 10


# Shows invoices.
@register
class InvoiceView(View):
    """All of one customer."""

    template = "invoices.html"

    # Lists them.
    @cached
    def get(self, request):
        found = list(request)
        return found  # all

    def _hidden(self): return 1

    extra = 2

    def __call__(self): ...


async def total(rows: list[int], *, tax: bool = False) -> int:
    return sum(rows)
'''
MODEL = """from django.db import models


class Invoice(models.Model):
    number = models.CharField(max_length=20)
    customer = models.ForeignKey(
        "crm.Customer",
        on_delete=models.CASCADE,
    )  # who pays
    paid = models.BooleanField()

    class Meta:
        db_table = "invoices"
"""
MIGRATION = """from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("billing", "0001_initial")]

    operations = [
        migrations.AddField(model_name="invoice", name="paid", field=models.BooleanField()),
        # Before the new rules.
        migrations.RunPython(fill),
        migrations.DeleteModel("Draft"),
    ]
"""


def units(text: str) -> list[tuple[str, str, bool, str]]:
    found = read(text).units
    return [(one.role, one.symbol, one.alone, text[one.start : one.end]) for one in found]


def test_a_view_is_its_head_and_each_method() -> None:
    found = [unit for unit in units(VIEW) if unit[1]]
    assert [unit[:3] for unit in found] == [
        ("class", "InvoiceView", True),
        ("method", "InvoiceView.get", True),
        ("method", "InvoiceView._hidden", False),
        ("rest", "InvoiceView", False),
        ("method", "InvoiceView.__call__", True),
        ("function", "total", True),
    ]
    head, get = found[0][3], found[1][3]
    assert head.startswith("# Shows invoices.\n@register\nclass InvoiceView")
    assert head.endswith('template = "invoices.html"')
    assert get.startswith("# Lists them.\n    @cached")
    assert get.endswith("return found  # all")
    signatures = {u.symbol: u.signature for u in read(VIEW).units if u.role != "rest"}
    assert signatures["InvoiceView"] == "class InvoiceView(View)"
    assert signatures["InvoiceView.get"] == "def get(self, request)"
    assert signatures["total"] == "async def total(rows: list[int], *, tax: bool = False) -> int"


def test_a_small_class_stays_in_one_piece_and_a_large_one_does_not() -> None:
    method = "    def m{0}(self):\n        return '" + "x" * 200 + "'\n\n"
    small = "class A:\n" + method.format(1)
    large = "class A:\n" + "".join(method.format(n) for n in range(20))
    assert [unit[:2] for unit in units(small)] == [("class", "A")]
    assert len(units(large)) == 21


def test_fields_that_relate_are_units_of_a_model() -> None:
    found = [unit for unit in units(MODEL) if unit[1]]
    assert [unit[:3] for unit in found] == [
        ("class", "Invoice", True),
        ("relation", "Invoice.customer", True),
        ("rest", "Invoice", False),
    ]
    assert found[1][3].endswith(")  # who pays")


def test_operations_on_tables_are_units_of_a_migration() -> None:
    found = [unit[:2] for unit in units(MIGRATION) if unit[0] == "schema"]
    assert found == [("schema", "invoice"), ("schema", "Draft")]


def test_settings_are_keys_and_lists_of_routes_are_groups() -> None:
    settings = "DEBUG = True\nINSTALLED_APPS = [\n    'billing',\n]\nif DEBUG:\n    X = 1\n"
    found = [unit[:2] for unit in units(settings)]
    assert found == [("key", "DEBUG"), ("key", "INSTALLED_APPS"), ("rest", "")]
    urls = "urlpatterns = [\n    path('a/', a),\n    path('b/', b),\n]\n"
    [only] = read(urls).units
    assert only.role == "group"
    assert {urls[:cut].rsplit("\n", 1)[1].strip() for cut in only.cuts} >= {"path('a/', a),"}


@given(st.lists(st.sampled_from([*VIEW.splitlines(), *MODEL.splitlines(), "é = '…'", "\t)"])))
def test_units_cover_any_text_and_do_not_overlap(lines: list[str]) -> None:
    text = "\n".join(lines)
    assert_units_cover(text, read(text))
