"""Kinds by ancestry, by use and by place; tables in detail."""

from rag_assets.code.frameworks.django.kinds import kinds_of
from rag_assets.code.frameworks.django.tables import ForeignKey, Index, tables_of
from tests.unit.code.frameworks.django.project import PROJECT, facts
from tests.unit.code.frameworks.django.test_routes import API


def test_definitions_have_the_source_types_of_their_counterparts() -> None:
    assert kinds_of(facts(PROJECT)) == {
        ("billing/forms.py", "InvoiceForm"): "request",
        ("billing/migrations/0001_initial.py", "Migration"): "migration",
        ("billing/migrations/0002_more.py", "Migration"): "migration",
        ("billing/migrations/0003_between.py", "Migration"): "migration",
        ("billing/models/customer.py", "Customer"): "model",
        ("billing/models/customer.py", "Proxy"): "model",
        ("billing/models/invoice.py", "Credit"): "model",
        ("billing/models/invoice.py", "Invoice"): "model",
        ("billing/models/invoice.py", "Line"): "model",
        ("billing/models/invoice.py", "Product"): "model",
        ("billing/services.py", "pay"): "service",
        ("billing/signals.py", "other"): "listener",
        ("billing/signals.py", "paid"): "event",
        ("billing/signals.py", "saved"): "listener",
        ("billing/views/invoices.py", "InvoiceDetail"): "controller",
        ("billing/views/invoices.py", "InvoiceList"): "controller",
        ("billing/views/invoices.py", "_ping"): "controller",
        ("core/clock.py", "Clock"): "middleware",
        ("core/models.py", "Person"): "model",
        ("core/models.py", "Stamped"): "model",
        ("core/tasks.py", "work"): "job",
        ("core/views.py", "Base"): "controller",
        ("core/views.py", "echo"): "controller",
        ("core/views.py", "home"): "controller",
    }


def test_rest_frameworks_classes_are_controllers_resources_and_policies() -> None:
    more = {
        **API,
        "api/rest.py": "from rest_framework import permissions, serializers\n"
        "from rest_framework.filters import SearchFilter\n\n"
        "class BookSerializer(serializers.ModelSerializer): pass\n"
        "class Short(BookSerializer): pass\n"
        "class Owner(permissions.BasePermission): pass\n"
        "class Text(serializers.Field): pass\n"
        "class Search(SearchFilter): pass\n",
        "api/management/commands/run.py": "from django.core.management.base import BaseCommand\n"
        "class Command(BaseCommand): pass\n",
    }
    found = {symbol: kind for (_, symbol), kind in kinds_of(facts(more)).items()}
    assert found == {
        "Book": "model",
        "BookSerializer": "resource",
        "Books": "controller",
        "Owner": "policy",
        "Shelves": "controller",
        "Short": "resource",
        "status": "controller",
    }


def test_tables_tell_keys_indexes_and_evidence() -> None:
    tables = tables_of(facts(PROJECT))
    table = tables.tables["invoices"]
    assert [(c.name, c.type, c.nullable) for c in table.columns] == [
        ("id", "BigAutoField", False),
        ("number", "CharField", True),
        ("text", "TextField", False),
        ("product_id", "ForeignKey", True),
    ]
    assert table.columns[1].attributes == {"max_length": 30, "null": True}
    assert table.foreign_keys == (
        ForeignKey("", ("product_id",), "money_product", ("sku",), "set_null", ""),
    )
    assert table.indexes == (
        Index("", "primary", ("id",)),
        Index("by_text", "index", ("text",)),
        Index("once", "unique", ("text", "product_id")),
        Index("", "unique", ("number", "text")),
    )
    quoted = [PROJECT[one.path][one.start : one.end].strip()[:24] for one in table.evidence]
    assert quoted[0].startswith("migrations.CreateModel(")
    assert [one[11:21] for one in quoted[1:5]] == [
        'AddField("',
        "AlterUniqu",
        "RenameMode",
        "AlterModel",
    ]
    assert table.reasons == ("SQL made or changed it",)
    assert [path[-10:-3] for path in tables.order] == ["initial", "between", "02_more"]
    assert not tables.unresolved
    between = tables.tables["invoices_parts"]
    assert [one.name for one in between.columns] == ["id", "invoice_id", "product_id"]


def test_operations_that_are_computed_are_told() -> None:
    text = """
from django.db import migrations, models

class Migration(migrations.Migration):
    operations = [
        migrations.CreateModel(name(), []),
        migrations.CreateModel("A", fields=[("x", make())] + more),
        migrations.RunSQL(read("a.sql")),
        migrations.DeleteModel("Never"),
        migrations.AddField("never", "x", models.TextField()),
        Own(),
        *others,
    ]
    if POSTGRES:
        operations += [migrations.DeleteModel("A")]
"""
    found = tables_of(facts({"a/__init__.py": "", "a/migrations/0001_x.py": text}))
    assert [one.reason for one in found.unresolved] == [
        "a model with a computed name",
        "computed SQL",
        "a model that no migration made",
        "an operation of its own: Own",
        "a computed operation",
        "depends on `if`",
    ]
    assert not found.tables["a_a"].complete
