"""Kinds by base classes, by use and by path."""

from rag_assets.systems.code_memory.django.kinds import find_source_types
from tests.unit.systems.code_memory.django.project import PROJECT, facts
from tests.unit.systems.code_memory.django.test_routes import API


def test_definitions_have_the_source_types_of_their_counterparts() -> None:
    found: dict[str, list[str]] = {}
    for (path, symbol), kind in sorted(find_source_types(facts(PROJECT)).items()):
        found.setdefault(kind, []).append(f"{path} {symbol}")
    migrations = ("0001_initial", "0002_more", "0003_between")
    assert found == {
        "request": ["billing/forms.py InvoiceForm"],
        "migration": [f"billing/migrations/{name}.py Migration" for name in migrations],
        "model": [
            *("billing/models/customer.py Customer", "billing/models/customer.py Proxy"),
            *("billing/models/invoice.py Credit", "billing/models/invoice.py Invoice"),
            *("billing/models/invoice.py Line", "billing/models/invoice.py Product"),
            *("core/models.py Person", "core/models.py Stamped"),
        ],
        "service": ["billing/services.py pay"],
        "listener": ["billing/signals.py other", "billing/signals.py saved"],
        "event": ["billing/signals.py paid"],
        "controller": [
            *("billing/views/invoices.py InvoiceDetail", "billing/views/invoices.py InvoiceList"),
            *("billing/views/invoices.py _ping", "core/views.py Base", "core/views.py echo"),
            "core/views.py home",
        ],
        "middleware": ["core/clock.py Clock"],
        "job": ["core/tasks.py work"],
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
