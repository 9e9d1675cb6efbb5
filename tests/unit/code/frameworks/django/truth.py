"""Tells, as Django's resolver, registry and migration loader know them: routes, models, tables.

Run in a process of its own: settings are of a whole process.
"""

import json
import sys
from typing import Any

import django
from django.apps import apps
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.urls import URLResolver, get_resolver


def routes(patterns: list[Any], prefix: str, names: list[str]) -> Any:
    for one in patterns:
        part = str(one.pattern)
        if type(one.pattern).__name__ == "LocalePrefixPattern":
            part = "<language>/"
        if isinstance(one, URLResolver):
            inner = [*names, one.namespace] if one.namespace else names
            yield from routes(one.url_patterns, prefix + part, inner)
            continue
        view = getattr(one.callback, "view_class", one.callback)
        name = ":".join([*names, one.name]) if one.name else ""
        yield [prefix + part, name, f"{view.__module__}.{view.__qualname__}"]


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


def main() -> None:
    django.setup()
    models = {
        label(one): [one._meta.app_label, one._meta.db_table, one._meta.proxy, fields(one._meta)]
        for one in apps.get_models()
    }
    found = list(routes(get_resolver().url_patterns, "", []))
    sys.stdout.write(json.dumps({"routes": found, "models": models, "tables": tables()}))


main()
