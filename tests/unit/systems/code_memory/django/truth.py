"""Print routes, models and tables according to Django's resolver, registry and migrations.

This runs in a separate process, because settings apply to a whole process. With `create`, it also
prints the columns of a database in which Django has created the tables of all models.
"""

import json
import sys
from typing import Any

import django
from django.apps import apps
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.urls import URLResolver, get_resolver

VERBS = {"get", "post", "put", "patch", "delete"}


def routes(patterns: list[Any], prefix: str, names: list[str]) -> Any:
    for pattern in patterns:
        part = str(pattern.pattern)
        if type(pattern.pattern).__name__ == "LocalePrefixPattern":
            part = "<language>/"
        if isinstance(pattern, URLResolver):
            inner = [*names, pattern.namespace] if pattern.namespace else names
            yield from routes(pattern.url_patterns, prefix + part, inner)
            continue
        view = getattr(pattern.callback, "view_class", pattern.callback)
        name = ":".join([*names, pattern.name]) if pattern.name else ""
        # An object that is called, as a feed, is told by its class.
        view = view if hasattr(view, "__qualname__") else type(view)
        last = view.__qualname__.rpartition(".")[2]
        # REST framework names the class that it makes of a function after that.
        shown = view.__qualname__ if last == view.__name__ else view.__name__
        yield [prefix + part, name, f"{view.__module__}.{shown}", answers(pattern.callback)]


def answers(callback: Any) -> dict[str, str] | None:
    """Return the methods of a view class by the HTTP methods that they handle."""
    actions = getattr(callback, "actions", None)
    shown = getattr(callback, "view_class", None) or getattr(callback, "cls", None)
    if actions:
        return {method.upper(): action for method, action in actions.items() if method in VERBS}
    if shown is None:
        return None
    named = [verb for verb in shown.http_method_names if verb in VERBS and hasattr(shown, verb)]
    return {verb.upper(): verb for verb in named}


def label(model: Any) -> str:
    return model if isinstance(model, str) else f"{model.__module__}.{model.__qualname__}"


def fields(options: Any) -> dict[str, list[Any]]:
    found = {}
    held = [*options.local_fields, *options.local_many_to_many, *options.private_fields]
    for one in held:
        remote = one.remote_field
        target = label(remote.model) if remote is not None and remote.model else ""
        through = getattr(remote, "through", None)
        own = through is not None and not through._meta.auto_created
        column = None if one.many_to_many else getattr(one, "column", None)
        found[one.name] = [type(one).__name__, target, label(through) if own else "", column or ""]
    return found


def tables() -> dict[str, Any]:
    loader = MigrationLoader(None, ignore_no_migrations=True)
    state = loader.project_state()
    found = {}
    with connection.schema_editor(collect_sql=True):
        for app, name in state.models:
            options = state.apps.get_model(app, name)._meta
            if options.proxy:
                continue
            columns = {
                f.column: [type(f).__name__, f.null] for f in options.local_fields if f.column
            }
            named = [one.name for one in [*options.indexes, *options.constraints]]
            found[options.db_table] = [columns, sorted(named)]
            for many in options.local_many_to_many:
                # None where the model is swapped for another one.
                through = many.remote_field.through
                between = None if through is None else through._meta
                if between is not None and between.auto_created:
                    found[between.db_table] = [{f.column: None for f in between.local_fields}, []]
    return found


def columns() -> dict[str, dict[str, bool]]:
    """Return the columns of each table that Django creates, and whether they are nullable."""
    # Without migrations, which end in the same tables after half a minute of computing.
    settings.MIGRATION_MODULES = {app.label: None for app in apps.get_app_configs()}
    call_command("migrate", run_syncdb=True, verbosity=0)
    with connection.cursor() as cursor:
        return {
            table: {
                one.name: bool(one.null_ok)
                for one in connection.introspection.get_table_description(cursor, table)
            }
            for table in connection.introspection.table_names(cursor)
        }


def main() -> None:
    django.setup()
    models = {
        label(model): [
            model._meta.app_label,
            model._meta.db_table,
            model._meta.proxy,
            fields(model._meta),
        ]
        for model in apps.get_models()
    }
    found = list(routes(get_resolver().url_patterns, "", []))
    told = {"routes": found, "models": models, "tables": tables()}
    if "create" in sys.argv[1:]:
        told["columns"] = columns()
    sys.stdout.write(json.dumps(told))


main()
