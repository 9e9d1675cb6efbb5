"""The configuration reference, from the models that validate tenants.yaml and the settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from inspect import cleandoc
from typing import Any

from docstring_parser import DocstringStyle, parse
from pydantic import TypeAdapter

from rag_assets.api import settings as service_settings
from rag_assets.client import exchange as client_settings
from rag_assets.common import elasticsearch_settings, settings
from rag_assets.panel import settings as panel_settings
from rag_assets.plugins.registry import installed_systems
from rag_assets.tenants.kinds import installed_kinds
from rag_assets.tenants.model import Tenant

_HEAD = """# Configuration

This page is for operators who look up a setting. There are two kinds: environment variables of the
installation, and fields of its tenants in `tenants.yaml`. A field that is not listed here is
refused, with its name. This page is written from the models that validate the settings.
"""
_BOUNDS = {
    "minimum": "≥ {}",
    "exclusiveMinimum": "> {}",
    "maximum": "≤ {}",
    "exclusiveMaximum": "< {}",
    "minItems": "at least {}",
    "maxItems": "at most {}",
    "maxLength": "at most {} characters",
    "pattern": "`{}`",
}
_NAMES = {"integer": "whole number", "number": "number", "string": "text", "boolean": "yes or no"}

Schema = Mapping[str, Any]


def build_configuration_page() -> str:
    """Return the page's text."""
    schema = TypeAdapter(Tenant).json_schema()
    models: dict[str, Schema] = {"Tenant": schema, **schema.get("$defs", {})}
    parts = [_HEAD, "## Environment\n", _build_environment_table(settings.__doc__)]
    parts += ["\nFor your own [Elasticsearch](elasticsearch.md):\n"]
    parts += [_build_environment_table(elasticsearch_settings.__doc__)]
    parts += ["\nFor `rag-assets serve`:\n", _build_environment_table(service_settings.__doc__)]
    parts += ["\nFor the panel of the service:\n", _build_environment_table(panel_settings.__doc__)]
    parts += ["\nFor programs that use [the client](client.md):\n"]
    parts += [_build_environment_table(cleandoc(client_settings.ClientOptions.__doc__ or ""))]
    parts += ["\n## tenants.yaml\n", _build_example()]
    for name in _order_models(models):
        parts += [f"\n### {_build_title(name, models)}\n", *_write_section(models[name], models)]
    parts += ["\n## Chunkers\n", *_write_chunkers(), "\n## Profiles\n", *_write_profiles()]
    return "\n".join(parts).rstrip() + "\n"


def _build_environment_table(docstring: str | None) -> str:
    lines = (docstring or "").splitlines()
    rows = [line for line in lines if line.startswith("|")]
    return "\n".join(f"| `{row[2:].replace(' |', '` |', 1)}" if n > 1 else row
                     for n, row in enumerate(rows))  # fmt: skip


def _build_example() -> str:
    return """```yaml
agents: [~/.config/swebash/agents.yaml]   # agents with the strategy rag are tenants
tenants:
  - id: handbook
    profile: documents
    sources:
      - name: files
        type: files
        root: ~/handbook
        exclude: ["drafts/"]
      - name: pushed
        type: records
    parser:
      ocr: true
```
"""


def _order_models(models: Mapping[str, Schema]) -> Iterator[str]:
    """Yield the models in the order in which the tenant refers to them, each once."""
    seen: list[str] = []
    todo = ["Tenant"]
    while todo:
        name = todo.pop(0)
        if name in seen or "properties" not in models[name]:
            continue
        seen.append(name)
        todo += [ref for field in models[name]["properties"].values() for ref in _find_refs(field)]
    yield from seen


def _find_refs(schema: Any) -> Iterator[str]:
    if isinstance(schema, Mapping):
        if "$ref" in schema:
            yield str(schema["$ref"]).rpartition("/")[2]
        for value in schema.values():
            yield from _find_refs(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _find_refs(value)


def _build_title(name: str, models: Mapping[str, Schema]) -> str:
    if name == "Tenant":
        return "A tenant"
    users = [
        f"`{field}`"
        for model in models.values()
        for field, schema in model.get("properties", {}).items()
        if name in _find_refs(schema)
    ]
    kind = models[name].get("properties", {}).get("type", {}).get("const")
    title = ", ".join(dict.fromkeys(users)) or name
    return f"{title} of {kind}" if kind else title


def _write_section(model: Schema, models: Mapping[str, Schema]) -> Iterator[str]:
    parsed = parse(model.get("description", ""), DocstringStyle.GOOGLE)
    meanings = {
        name.strip(): (param.description or "").replace("\n", " ")
        for param in parsed.params
        for name in param.arg_name.split(",")
    }
    yield " ".join(filter(None, [parsed.short_description, parsed.long_description])) + "\n"
    yield "| field | takes | default | meaning |\n|---|---|---|---|"
    for name, field in model["properties"].items():
        required = name in model.get("required", ())
        default = "required" if required else _format_default(field)
        meaning = meanings.get(name, field.get("description", ""))
        yield f"| `{name}` | {_format_type(field, models)} | {default} | {_escape_cell(meaning)} |"


def _format_default(field: Schema) -> str:
    value = field.get("default")
    if "$ref" in field and "default" not in field:
        return "see there"
    if value is None or value in ({}, []):
        return ""
    if isinstance(value, Mapping):
        return "see there"
    if isinstance(value, list):
        return ", ".join(f"`{item}`" for item in value)
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _format_type(field: Schema, models: Mapping[str, Schema]) -> str:
    if kinds_of := field.get("anyOf") or field.get("oneOf"):
        kinds = [_format_type(kind, models) for kind in kinds_of if kind.get("type") != "null"]
        return " or ".join(kinds)
    if "$ref" in field:
        name = str(field["$ref"]).rpartition("/")[2]
        model = models[name]
        if "properties" not in model:
            return _format_type(model, models)
        title = _build_title(name, models)
        anchor = title.replace("`", "").replace(", ", "-").replace(" ", "-").lower()
        return f"[{title}](#{anchor})"
    return _format_plain_type(field, models)


def _format_plain_type(field: Schema, models: Mapping[str, Schema]) -> str:
    if "const" in field:
        return f"`{field['const']}`"
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if field.get("type") == "array":
        items = field.get("items", {})
        return f"list of {_format_type(items, models)}" if items else "list"
    if field.get("type") == "object":
        inner = field.get("additionalProperties")
        return (
            f"mapping to {_format_type(inner, models)}" if isinstance(inner, Mapping) else "mapping"
        )
    bounds = [text.format(field[key]) for key, text in _BOUNDS.items() if key in field]
    return _escape_cell(", ".join([_NAMES.get(field.get("type", ""), "any value"), *bounds]))


def _escape_cell(text: str) -> str:
    return text.replace("|", "\\|")


_CHUNKER_RULES = """\
A limit is never exceeded; the overlap is at most half of it. A table, code, a list's item or a
paragraph that fits into a chunk is not cut. A longer table is cut between rows, code between
statements, and a chunk that begins within one has a [context](searching.md#context-of-a-passage),
which counts in the limit and has a quarter of it at most.
"""


def _write_chunkers() -> Iterator[str]:
    yield _CHUNKER_RULES
    yield "| chunker | cuts | limit | from | to | overlap |\n|---|---|---:|---:|---:|---:|"
    for name, kind in installed_kinds().chunkers.items():
        limit = f"`max_{kind.unit}: {kind.limit}`"
        overlap = str(kind.overlap) if kind.overlaps else "none"
        row = (f"`{name}`", kind.purpose, limit, str(kind.smallest), str(kind.largest), overlap)
        yield f"| {' | '.join(row)} |"


def _write_profiles() -> Iterator[str]:
    yield "A profile is a named set of defaults; what a tenant sets itself goes before it.\n"
    yield "| profile | sets |\n|---|---|"
    for name, profile in installed_systems().profiles.items():
        facts = (
            item
            for group, values in profile.defaults.items()
            for item in _format_settings(group, values)
        )
        yield f"| `{name}` | {', '.join(facts)} |"


def _format_settings(group: str, values: Any) -> Iterator[str]:
    if isinstance(values, Mapping):
        yield from (f"`{group}.{key}: {value}`" for key, value in values.items())
    elif not isinstance(values, Sequence):
        yield f"`{group}: {'null' if values is None else values}`"
    else:
        yield from (f"`{group}: {value}`".replace("'", "") for value in values)
