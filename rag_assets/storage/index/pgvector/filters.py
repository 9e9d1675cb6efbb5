"""Entry filters as conditions on `rag_chunks`, called `c`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from psycopg import sql

from rag_assets.storage.index.model import EntryFilter, MovedPages


class Conditions:
    """The conditions of an entry filter, and their parameter values.

    Args:
        entry_filter: the filter to express.
    """

    def __init__(self, entry_filter: EntryFilter) -> None:
        self.values: dict[str, Any] = {}
        self._each = [*self._of_columns(entry_filter), *self._of_metadata(entry_filter)]

    @property
    def all(self) -> sql.Composed:
        """Return all conditions; true without conditions."""
        return sql.SQL(" AND ").join(self._each) if self._each else sql.SQL("{}").format(True)

    def _of_columns(self, wanted: EntryFilter) -> list[sql.Composed]:
        found = [] if wanted.scopes is None else [self._in_scopes(wanted.scopes, wanted.moved)]
        found += [
            self._match_values(column, values)
            for column, values in (
                ("page_uuid", wanted.pages),
                ("source_type", wanted.source_types),
                ("source", wanted.sources),
                ("document_id", wanted.documents),
                ("language", wanted.languages),
            )
            if values is not None
        ]
        if wanted.without_source_types:
            left_out = self._match_values("source_type", wanted.without_source_types)
            found.append(sql.SQL("NOT {}").format(left_out))
        if wanted.tags is not None:
            tags = sql.SQL("c.tags @> {}::text[]").format(self._value([*wanted.tags]))
            found.append(tags if wanted.tags else sql.SQL("{}").format(False))
        if wanted.paths is not None:
            folders = self._value([path.rstrip("/") for path in wanted.paths])
            found.append(
                sql.SQL(
                    "EXISTS (SELECT FROM unnest({}::text[]) AS folder"
                    " WHERE c.uri = folder OR starts_with(c.uri, folder || '/'))"
                ).format(folders)
            )
        if wanted.modified_after is not None:
            found.append(sql.SQL("c.modified_at >= {}").format(self._value(wanted.modified_after)))
        if wanted.modified_before is not None:
            found.append(sql.SQL("c.modified_at < {}").format(self._value(wanted.modified_before)))
        return found

    def _in_scopes(self, scopes: Collection[str], moved: MovedPages) -> sql.Composed:
        """Return the condition that an entry has one of these scopes.

        For a moved page, the page decides.
        """
        return sql.SQL("({} OR ({} AND NOT {}))").format(
            self._match_values("page_uuid", sorted(moved.readable)),
            self._match_values("access_scope", sorted(scopes)),
            self._match_values("page_uuid", sorted(moved.unreadable)),
        )

    def _of_metadata(self, wanted: EntryFilter) -> list[sql.Composed]:
        found = [self._holds(key, values) for key, values in wanted.metadata.items()]
        return found + [
            sql.SQL("NOT {}").format(self._holds(key, values))
            for key, values in wanted.without_metadata.items()
        ]

    def _holds(self, key: str, values: Sequence[str | None]) -> sql.Composed:
        """Return the condition that metadata have one of these values; None stands for no value."""
        name = self._value(key)
        given = self._value([value for value in values if value is not None])
        held = sql.SQL("coalesce(c.metadata -> {}::text ?| {}::text[], false)").format(name, given)
        if None not in values:
            return held
        return sql.SQL("({} OR NOT c.metadata ? {}::text)").format(held, name)

    def _match_values(self, column: str, values: Sequence[str]) -> sql.Composed:
        # Null equals none of the values, so a row with null is neither included nor excluded.
        return sql.SQL("coalesce({} = ANY({}::text[]), false)").format(
            sql.Identifier("c", column), self._value([*values])
        )

    def _value(self, value: Any) -> sql.Placeholder:
        name = f"filter_{len(self.values)}"
        self.values[name] = value
        return sql.Placeholder(name)
