"""Kinds by base classes, by use and by path."""

from rag_assets.systems.code_memory.django.kinds import find_source_types
from tests.unit.systems.code_memory.django.project import PROJECT, facts
from tests.unit.systems.code_memory.django.test_routes import API


def test_definitions_have_the_source_types_of_their_counterparts() -> None:
    assert find_source_types(facts(PROJECT)) == {
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
    found = {symbol: kind for (_, symbol), kind in find_source_types(facts(more)).items()}
    assert found == {
        "Book": "model",
        "BookSerializer": "resource",
        "Books": "controller",
        "Owner": "policy",
        "Shelves": "controller",
        "Short": "resource",
        "status": "controller",
    }
