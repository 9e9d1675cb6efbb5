"""Laravel's Blueprint: turns calls on a table into columns, indexes and foreign keys.

It follows Laravel's own class call by call. Columns and commands have the attributes that Laravel
gives them (`autoIncrement`, `onDelete`, ...). Names that are not stated follow Laravel's
conventions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rag_assets.systems.code_memory.laravel.inflection import class_basename, plural, snake
from rag_assets.systems.code_memory.laravel.schema.expressions import COMPUTED, Computed

_INTEGERS: Final = {
    "integer": "integer",
    "tinyInteger": "tinyInteger",
    "smallInteger": "smallInteger",
    "mediumInteger": "mediumInteger",
    "bigInteger": "bigInteger",
}
_PLAIN: Final = {
    **{
        name: name
        for name in [
            "tinyText",
            "text",
            "mediumText",
            "longText",
            "boolean",
            "json",
            "jsonb",
            "date",
            "year",
            "uuid",
            "ulid",
            "ipAddress",
            "macAddress",
            "geometry",
            "polygon",
            "computed",
        ]
    },
    "lineString": "linestring",
    "geometryCollection": "geometrycollection",
    "multiPoint": "multipoint",
    "multiLineString": "multilinestring",
    "multiPolygon": "multipolygon",
    "multiPolygonZ": "multipolygonz",
    "binary": "binary",
    "geography": "geography",
    "vector": "vector",
}
_TIMES: Final = ("dateTime", "dateTimeTz", "time", "timeTz", "timestamp", "timestampTz")
_INDEXES: Final = {
    "primary": "primary",
    "unique": "unique",
    "index": "index",
    "fullText": "fulltext",
    "fulltext": "fulltext",
    "spatialIndex": "spatialIndex",
}
_DROPPED: Final = {
    "dropPrimary": "primary",
    "dropUnique": "unique",
    "dropIndex": "index",
    "dropFullText": "fulltext",
    "dropSpatialIndex": "spatialIndex",
    "dropForeign": "foreign",
}
_ON_DELETE: Final = {
    "cascadeOnUpdate": ("onUpdate", "cascade"),
    "restrictOnUpdate": ("onUpdate", "restrict"),
    "nullOnUpdate": ("onUpdate", "set null"),
    "noActionOnUpdate": ("onUpdate", "no action"),
    "cascadeOnDelete": ("onDelete", "cascade"),
    "restrictOnDelete": ("onDelete", "restrict"),
    "nullOnDelete": ("onDelete", "set null"),
    "noActionOnDelete": ("onDelete", "no action"),
}
_STRING_LENGTH: Final = 255

Attributes = dict[str, Any]


class Blueprint:
    """The columns and commands of one statement on a table.

    Attributes:
        table: the name of the table.
        columns: the columns in order, each with Laravel's attributes: name, type, and the
            attributes of modifiers.
        commands: the commands, in order, each with `name` and Laravel's attributes.
        unread: names of methods that Laravel 8 to 12 does not have (macros), and of computed
            values.
    """

    def __init__(self, table: str) -> None:
        self.table = table
        self.columns: list[Attributes] = []
        self.commands: list[Attributes] = []
        self.unread: list[str] = []
        self._after: str | None = None

    def call(self, name: str, given: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """Apply a method of Laravel's Blueprint.

        Args:
            name: the name of the method.
            given: values of the positional arguments.
            named: values of the named arguments.

        Returns:
            The attributes that a further call in the chain changes; None if no call can.
        """
        arguments = _Arguments(given, named)
        for part in (self._column, self._columns, self._index, self._drop, self._other):
            known, target = part(name, arguments)
            if known:
                return target
        self.unread.append(name)
        return None

    def modify(
        self, target: Attributes, name: str, given: Sequence[Any], named: Mapping[str, Any]
    ) -> Attributes:
        """Apply a modifier, which is a call that follows another call in a chain.

        Returns:
            The attributes that the next call changes; after `constrained`, those of the foreign
                key.
        """
        arguments = _Arguments(given, named)
        foreign_id = target.get("name") is not None and "columns" not in target
        if foreign_id and name in {"constrained", "references"} and "type" in target:
            return self._constrained(target, name, arguments)
        if name in _ON_DELETE:
            key, value = _ON_DELETE[name]
            target[key] = value
        elif name == "constrained":
            target["references"] = "id"
        else:
            values = [*given, *named.values()]
            target[name] = values[0] if values else True
        return target

    def after(self, column: Any) -> None:
        """Place the next columns one after another, the first of them after the named column."""
        self._after = column if isinstance(column, str) else None

    def finish(self) -> None:
        """Add the indexes that the columns themselves state."""
        for column in self.columns:
            for key in ("primary", "unique", "index", "fulltext", "fullText", "spatialIndex"):
                stated = column.get(key)
                if stated is None or stated is False:
                    continue
                name = stated if isinstance(stated, str) else None
                self._indexed(_INDEXES[key], [column["name"]], name)
                column[key] = False
                break

    def _add(self, kind: str, name: Any, **parameters: Any) -> Attributes:
        if not isinstance(name, str):
            self.unread.append(f"name of a column ({kind})")
            name = COMPUTED
        column: Attributes = {"type": kind, "name": name, **parameters}
        if not isinstance(name, Computed):
            self.columns.append(column)
            if self._after is not None:
                column["after"] = self._after
                self._after = name
        return column

    def _integer(self, kind: str, name: Any, increments: Any, unsigned: Any) -> Attributes:
        return self._add(kind, name, autoIncrement=bool(increments), unsigned=bool(unsigned))

    def _column(  # noqa: PLR0911 - a line for each kind of column
        self, name: str, given: _Arguments
    ) -> tuple[bool, Any]:
        column = given.first("column", "name")
        if name in _PLAIN:
            return True, self._add(_PLAIN[name], column)
        if name in _TIMES:
            return True, self._add(name, column, precision=given.at(1, "precision", 0))
        if name in {"char", "string"}:
            length = given.at(1, "length") or _STRING_LENGTH
            return True, self._add(name, column, length=length)
        if name in {"enum", "set"}:
            return True, self._add(name, column, allowed=given.at(1, "allowed", []))
        if name == "point":
            return True, self._add("point", column, srid=given.at(1, "srid"))
        if name in {"foreignId", "foreignUuid", "foreignUlid"}:
            return True, self._foreign_id(name, column)
        if name == "foreignIdFor":
            return True, self._foreign_id_for(given)
        if name == "addColumn":
            return True, self._add(str(given.at(0, "type")), given.at(1, "name"), **given.others(2))
        return self._number(name, column, given)

    def _number(  # noqa: PLR0911 - a line for each kind of number
        self, name: str, column: Any, given: _Arguments
    ) -> tuple[bool, Any]:
        if name in _INTEGERS:
            increments, unsigned = given.at(1, "autoIncrement"), given.at(2, "unsigned")
            return True, self._integer(name, column, increments, unsigned)
        if name.startswith("unsigned") and name[8:9].lower() + name[9:] in _INTEGERS:
            kind = name[8:9].lower() + name[9:]
            return True, self._integer(kind, column, given.at(1, "autoIncrement"), True)
        if name == "id":
            return True, self._integer("bigInteger", column or "id", True, True)
        if name in {"increments", "integerIncrements"}:
            return True, self._integer("integer", column, True, True)
        if name.endswith("Increments") and name[:-10] + "Integer" in _INTEGERS:
            return True, self._integer(name[:-10] + "Integer", column, True, True)
        unsigned = name.startswith("unsigned")
        kind = name[8:].lower() if unsigned else name
        if kind in {"float", "double", "decimal"}:
            total, places = (None, None) if kind == "double" else (8, 2)
            return True, self._add(
                kind,
                column,
                total=given.at(1, "total", total),
                places=given.at(2, "places", places),
                unsigned=unsigned or bool(given.at(3, "unsigned", False)),
            )
        return False, None

    def _columns(self, name: str, given: _Arguments) -> tuple[bool, Any]:
        if name in {"timestamps", "nullableTimestamps", "timestampsTz", "datetimes"}:
            kind = {"timestampsTz": "timestampTz", "datetimes": "dateTime"}.get(name, "timestamp")
            for column in ("created_at", "updated_at"):
                self._add(kind, column, precision=given.at(0, "precision", 0), nullable=True)
            return True, None
        if name in {"softDeletes", "softDeletesTz", "softDeletesDatetime"}:
            kinds = {"softDeletesTz": "timestampTz", "softDeletesDatetime": "dateTime"}
            kind = kinds.get(name, "timestamp")
            stated = given.at(0, "column", "deleted_at")
            precision = given.at(1, "precision", 0)
            return True, self._add(kind, stated, precision=precision, nullable=True)
        if name == "rememberToken":
            return True, self._add("string", "remember_token", length=100, nullable=True)
        if name.lower().endswith("morphs") and not name.startswith("drop"):
            self._morphs(name, given)
            return True, None
        return False, None

    def _morphs(self, method: str, given: _Arguments) -> None:
        name, index = given.at(0, "name"), given.at(1, "indexName")
        if not isinstance(name, str):
            self.unread.append(f"name of a column ({method})")
            return
        nullable = {"nullable": True} if method.startswith("nullable") else {}
        self._add("string", f"{name}_type", length=_STRING_LENGTH, **nullable)
        kind = next((kind for kind in ("uuid", "ulid") if kind in method.lower()), None)
        if kind is not None:
            self._add(kind, f"{name}_id", **nullable)
        else:
            numbered = self._integer("bigInteger", f"{name}_id", False, True)
            numbered.update(nullable)
        self._indexed("index", [f"{name}_type", f"{name}_id"], index)

    def _foreign_id(self, method: str, column: Any) -> Attributes:
        if method == "foreignId":
            made = self._integer("bigInteger", column, False, True)
        else:
            made = self._add(method[7:].lower(), column)
        return made

    def _foreign_id_for(self, given: _Arguments) -> Attributes:
        model, stated = given.at(0, "model"), given.at(1, "column")
        if not isinstance(stated, str) and isinstance(model, str):
            stated = f"{snake(class_basename(model))}_id"
        return self._foreign_id("foreignId", stated)

    def _constrained(self, column: Attributes, name: str, given: _Arguments) -> Attributes:
        key = self._indexed("foreign", [column["name"]], None)
        if name == "references":
            key["references"] = given.at(0, "column")
            return key
        table, references = given.at(0, "table"), given.at(1, "column") or "id"
        if table is None and isinstance(column["name"], str):
            before, found, _ = column["name"].rpartition(f"_{references}")
            table = plural(before if found else column["name"])
        if given.at(2, "indexName") is not None:
            key["index"] = given.at(2, "indexName")
        key["references"] = references
        key["on"] = table
        return key

    def _index(self, name: str, given: _Arguments) -> tuple[bool, Any]:
        if name in _INDEXES:
            stated = given.at(1, "name", None)
            columns = given.first("columns")
            return True, self._indexed(_INDEXES[name], columns, stated, given.at(2, "algorithm"))
        if name == "rawIndex":
            return True, self._indexed("index", [given.at(0, "expression")], given.at(1, "name"))
        if name == "foreign":
            return True, self._indexed("foreign", given.first("columns"), given.at(1, "name"))
        if name == "renameIndex":
            return True, self._command(name, given.at(0, "from"), given.at(1, "to"))
        return False, None

    def _indexed(self, kind: str, columns: Any, name: Any, algorithm: Any = None) -> Attributes:
        listed = columns if isinstance(columns, list) else [columns]
        if isinstance(columns, dict):
            listed = list(columns.values())
        if any(isinstance(column, Computed) for column in listed):
            self.unread.append(f"columns of an index ({kind})")
        index = name or self._conventional(kind, listed)
        made = {"name": kind, "index": index, "columns": listed, "algorithm": algorithm}
        self.commands.append(made)
        return made

    def _conventional(self, kind: str, columns: Sequence[Any]) -> str:
        name = f"{self.table}_{'_'.join(map(str, columns))}_{kind}".lower()
        return name.replace("-", "_").replace(".", "_")

    def _command(self, name: str, source: Any, target: Any) -> Attributes:
        made = {"name": name, "from": source, "to": target}
        self.commands.append(made)
        return made

    def _drop(self, name: str, given: _Arguments) -> tuple[bool, Any]:
        if name in _DROPPED:
            return True, self._drop_index(name, given.first("index"))
        if name == "dropConstrainedForeignId":
            self._drop_index("dropForeign", [given.first("column")])
        elif name == "dropConstrainedForeignIdFor":
            model, stated = given.at(0, "model"), given.at(1, "column")
            if stated is None and isinstance(model, str):
                stated = f"{snake(class_basename(model))}_id"
            self._drop_index("dropForeign", [stated])
            self._drop_columns([stated])
            return True, None
        elif name == "dropMorphs":
            stem = given.first("name")
            pair = [f"{stem}_type", f"{stem}_id"]
            self._drop_index("dropIndex", given.at(1, "indexName") or pair)
            self._drop_columns(pair)
            return True, None
        dropped = _dropped_columns(name, given)
        if dropped is not None:
            self._drop_columns(dropped)
        return dropped is not None, None

    def _drop_index(self, name: str, index: Any) -> Attributes:
        columns: list[Any] = []
        if isinstance(index, list):
            columns, index = index, self._conventional(_DROPPED[name], index)
        made = {
            "name": name,
            "index": index or self._conventional(name, columns),
            "columns": columns,
            "algorithm": None,
        }
        if isinstance(index, Computed):
            self.unread.append(f"name of an index ({name})")
        self.commands.append(made)
        return made

    def _drop_columns(self, columns: list[Any]) -> None:
        if any(not isinstance(column, str) for column in columns):
            self.unread.append("name of a column (dropColumn)")
        self.commands.append({"name": "dropColumn", "columns": columns})

    def _other(self, name: str, given: _Arguments) -> tuple[bool, Any]:
        if name == "renameColumn":
            return True, self._command(name, given.at(0, "from"), given.at(1, "to"))
        if name == "rename":
            made = {"name": "rename", "to": given.at(0, "to")}
            self.commands.append(made)
            return True, None
        if name in {"drop", "dropIfExists"}:
            self.commands.append({"name": name})
            return True, None
        if name == "removeColumn":
            gone = given.first("name")
            self.columns = [column for column in self.columns if column["name"] != gone]
            return True, None
        ignored = {"temporary", "engine", "charset", "collation", "comment", "create", "innoDb"}
        return name in ignored, None


class _Arguments:
    """Arguments of a call, by position or by name."""

    def __init__(self, given: Sequence[Any], named: Mapping[str, Any]) -> None:
        self._given = given
        self._named = named

    def at(self, position: int, name: str, default: Any = None) -> Any:
        if position < len(self._given):
            return self._given[position]
        return self._named.get(name, default)

    def first(self, *names: str) -> Any:
        return self.at(0, next((name for name in names if name in self._named), names[0]))

    def every(self) -> list[Any]:
        return [*self._given, *self._named.values()]

    def others(self, position: int) -> dict[str, Any]:
        value = self.at(position, "parameters")
        return dict(value) if isinstance(value, dict) else {}


def _dropped_columns(name: str, given: _Arguments) -> list[Any] | None:
    if name in {"dropColumn", "dropColumns"}:
        first = given.first("columns")
        return list(first) if isinstance(first, list) else given.every()
    if name == "dropConstrainedForeignId":
        return [given.first("column")]
    if name in {"dropTimestamps", "dropTimestampsTz"}:
        return ["created_at", "updated_at"]
    if name in {"dropSoftDeletes", "dropSoftDeletesTz"}:
        return [given.at(0, "column", "deleted_at")]
    return ["remember_token"] if name == "dropRememberToken" else None
