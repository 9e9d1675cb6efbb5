"""Verified creation of indexes: an index template of somebody else may change the new index.

A template with a matching pattern adds settings, mappings and aliases to an index. For example, a
template that keeps fields out of `_source` makes the index lose every text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple

from elastic_transport import TransportError
from elasticsearch import ApiError, BadRequestError, Elasticsearch

from rag_assets.common.errors import IndexUnavailable

_EXISTS: Final = "resource_already_exists_exception"
_STORED_ELSEWISE: Final = ("_source", "runtime", "enabled")
"""Parts of a mapping that change what is stored or found; none of the project's indexes has
them."""
_CHANGING: Final = (
    *("index.mapping.", "index.analysis.", "index.blocks.", "index.lifecycle.", "index.sort."),
    *("index.similarity.", "index.default_pipeline", "index.final_pipeline", "index.mode"),
)
"""Prefixes of settings that change what is stored, found or kept."""


class _Template(NamedTuple):
    """An index template that applies to a name."""

    name: str
    priority: int


def create_index(
    client: Elasticsearch,
    name: str,
    body: Mapping[str, Any],
    aliases: Mapping[str, Any] | None = None,
) -> None:
    """Create an index if it does not exist, and verify that it was created as requested.

    An index that differs is deleted again, so that nothing is ever written to it.

    Args:
        body: settings and mappings of the index.

    Raises:
        IndexUnavailable: an index template changes the index, or forbids its creation.
    """
    try:
        client.indices.create(index=name, **body, aliases=aliases, wait_for_active_shards=1)
    except BadRequestError as error:
        if error.error == _EXISTS:
            return
        if _applying(client, name):
            raise _refusal(
                client, name, f"Elasticsearch rejects the request ({error.error})"
            ) from None
        raise
    live = client.indices.get(index=name, flat_settings=True)[name]
    difference = next(differences(live["mappings"], live["settings"], body), None)
    if difference is not None:
        client.indices.delete(index=name, ignore_unavailable=True)
        raise _refusal(client, name, difference)


def differences(
    mappings: Mapping[str, Any], settings: Mapping[str, Any], body: Mapping[str, Any]
) -> Iterator[str]:
    """Yield descriptions of how an index differs from the request; additional fields are allowed.

    Args:
        mappings, settings: those of the index; settings by their full names.
        body: the requested settings and mappings.
    """
    wanted = body["mappings"]
    yield from (f"its mapping has `{part}`" for part in _STORED_ELSEWISE if part in mappings)
    for part in wanted.keys() - {"properties", "_meta"}:
        if not _is_within(wanted[part], mappings.get(part)):
            yield f"its mapping has a different `{part}`"
    fields = mappings.get("properties", {})
    for name, field in wanted["properties"].items():
        live = fields.get(name, {})
        # Elasticsearch adds defaults only to the options of vector fields.
        complete = "dims" in field or live.keys() <= field.keys()
        if not (complete and _is_within(field, live)):
            yield f"its field `{name}` has a different mapping"
    requested = dict(flat_settings(body["settings"]))
    for name, value in settings.items():
        if name in requested:
            if _plain(requested[name]) != _plain(value):
                yield f"its setting `{name}` is {value!r}"
        elif name.startswith(_CHANGING):
            yield f"it has the setting `{name}`"


def _is_within(wanted: Any, live: Any) -> bool:
    """Return whether `live` contains everything in `wanted`."""
    if isinstance(wanted, Mapping):
        return isinstance(live, Mapping) and all(
            _is_within(value, live.get(key)) for key, value in wanted.items()
        )
    return _plain(wanted) == _plain(live)


def _plain(value: Any) -> str:
    """Return a value as a string, as in Elasticsearch's settings."""
    return str(value).lower()


def flat_settings(settings: Mapping[str, Any], prefix: str = "index") -> Iterator[tuple[str, Any]]:
    """Yield the settings of an index by their full names."""
    for key, value in settings.items():
        name = key if key == prefix else f"{prefix}.{key}"
        if isinstance(value, Mapping):
            yield from flat_settings(value, name)
        else:
            yield name, value


def _refusal(client: Elasticsearch, name: str, difference: str) -> IndexUnavailable:
    templates = _applying(client, name)
    if not templates:
        return IndexUnavailable(
            f"index {name!r} is not created as requested: {difference}",
            hint="an index template or a plugin of Elasticsearch changes it: check GET"
            f" /_index_template and POST /_index_template/_simulate_index/{name}",
        )
    named = " and ".join(repr(template.name) for template in templates)
    above = max(template.priority for template in templates) + 1
    pattern = f"{name.split('-', maxsplit=1)[0]}-*"
    return IndexUnavailable(
        f"index {name!r} is not created as requested: {difference}, because of the index"
        f" template {named}; nothing was embedded or written",
        hint=f"change index_patterns of {named} in Elasticsearch, or exempt the indexes of this"
        f' installation: PUT /_index_template/rag-assets {{"index_patterns": ["{pattern}"],'
        f' "priority": {above}}}; then sync again',
    )


def _applying(client: Elasticsearch, name: str) -> list[_Template]:
    """Return the templates that apply to a name; empty if this account may not see them.

    Only the composable template with the highest priority applies, or else all legacy templates.
    """
    try:
        answer = client.indices.get_index_template()["index_templates"]
        composable = [
            _Template(one["name"], int(one["index_template"].get("priority", 0)))
            for one in answer
            if _matches(name, one["index_template"]["index_patterns"])
        ]
        if composable:
            return [max(composable, key=lambda template: template.priority)]
        former = client.indices.get_template().items()
        return [_Template(key, 0) for key, one in former if _matches(name, one["index_patterns"])]
    except (ApiError, TransportError):
        return []


def _matches(name: str, patterns: list[str] | str) -> bool:
    listed = [patterns] if isinstance(patterns, str) else patterns
    return any(fnmatchcase(name, pattern) for pattern in listed)
