"""Laravel's Blueprint: converts calls on a table into columns, indexes and foreign keys.

It follows Laravel's own class call by call. Columns and commands have the attributes that Laravel
gives them (`autoIncrement`, `onDelete`, ...). Names that are not stated follow Laravel's
conventions.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.resources import files
from typing import Any, Final, TypeAlias

from rag_assets.systems.code_memory.languages.php.values import COMPUTED, Computed
from rag_assets.systems.code_memory.laravel.inflection import class_basename, plural, snake
from rag_assets.systems.code_memory.laravel.routes.model import Arguments

Attributes: TypeAlias = dict[str, Any]

_DEFAULT_STRING_LENGTH: Final = 255
_INDEXES: Final = {
    "primary": "primary",
    "unique": "unique",
    "index": "index",
    "fullText": "fulltext",
    "fulltext": "fulltext",
    "spatialIndex": "spatialIndex",
}
"""Kinds of indexes, by method."""

_FOREIGN_ACTIONS: Final = {
    f"{action}On{event}".lower(): (f"on{event}", words)
    for event in ("Delete", "Update")
    for action, words in {
        "cascade": "cascade",
        "restrict": "restrict",
        "null": "set null",
        "noAction": "no action",
    }.items()
}
"""Attributes of foreign keys, by the method in lower case that sets them."""


class Blueprint:
    """The columns and commands of one statement on a table.

    Attributes:
        columns: the columns in order, each with Laravel's attributes: name, type, and the
            attributes of modifiers.
        commands: the commands, in order, each with `name` and Laravel's attributes.
        unread: names of methods that Laravel 8 to 12 does not have (macros), and of computed
            values.
        conditional: whether a call on it runs under a condition.
    """

    def __init__(self, table: str) -> None:
        self.table = table
        self.columns: list[Attributes] = []
        self.commands: list[Attributes] = []
        self.unread: list[str] = []
        self.conditional = False

    def call(self, name: str, arguments: Arguments) -> Attributes | None:
        """Apply a method of Blueprint; return the attributes that a chained call changes."""
        method = _METHODS.get(name.lower())
        if method is None:
            self.unread.append(name)
            return None
        return method(self, arguments)

    def modify(self, target: Attributes, name: str, arguments: Arguments) -> Attributes:
        """Apply a chained modifier; return the attributes that the next modifier changes."""
        lower = name.lower()
        if "type" in target and name == "references":
            key = self.add_index("foreign", [target["name"]])
            key["references"] = arguments.get(0, "column")
            return key
        if lower == "constrained":
            return self._add_constraint(target, arguments)
        if lower in _FOREIGN_ACTIONS:
            attribute, value = _FOREIGN_ACTIONS[lower]
            target[attribute] = value
        else:
            target[name] = next(iter(arguments.all), True)
        return target

    def finish(self) -> None:
        """Add the indexes that modifiers of columns state, such as `->unique()`."""
        for column in self.columns:
            for key, kind in _INDEXES.items():
                index = column.get(key)
                if index is not None and index is not False:
                    name = index if isinstance(index, str) else None
                    self.add_index(kind, [column["name"]], name)
                    column[key] = False
                    break

    def add_column(self, kind: str, name: Any, **attributes: Any) -> Attributes:
        """Add a column, and return its attributes.

        A column with a computed name is not added, but reported in `unread`.

        Args:
            kind: Laravel's name of the type.
        """
        if not isinstance(name, str):
            self.unread.append(f"name of a column ({kind})")
            return {"type": kind, "name": COMPUTED, **attributes}
        column: Attributes = {"type": kind, "name": name, **attributes}
        self.columns.append(column)
        return column

    def add_index(self, kind: str, columns: Any, name: Any = None) -> Attributes:
        """Add an index or a foreign key, by default under Laravel's name; return its attributes."""
        names = columns if isinstance(columns, list) else [columns]
        if isinstance(columns, dict):
            names = list(columns.values())
        if any(isinstance(column, Computed) for column in names):
            self.unread.append(f"columns of an index ({kind})")
        index = name or self.build_index_name(kind, names)
        return self.add_command(kind, index=index, columns=names)

    def add_command(self, name: str, **attributes: Any) -> Attributes:
        """Add a command, and return its attributes."""
        command = {"name": name, **attributes}
        self.commands.append(command)
        return command

    def drop_columns(self, columns: Sequence[Any]) -> None:
        """Add a command that drops columns."""
        if any(not isinstance(column, str) for column in columns):
            self.unread.append("name of a column (dropColumn)")
        self.add_command("dropColumn", columns=list(columns))

    def drop_index(self, command: str, kind: str, index: Any) -> None:
        """Add a command that drops an index, given by its name or its columns."""
        if isinstance(index, Computed):
            self.unread.append(f"name of an index ({command})")
        columns = index if isinstance(index, list) else []
        index_name = (
            index if index and not isinstance(index, list) else self.build_index_name(kind, columns)
        )
        self.add_command(command, index=index_name, columns=columns)

    def build_index_name(self, kind: str, columns: Sequence[Any]) -> str:
        """Return Laravel's conventional name of an index."""
        name = f"{self.table}_{'_'.join(map(str, columns))}_{kind}".lower()
        return name.replace("-", "_").replace(".", "_")

    def _add_constraint(self, target: Attributes, arguments: Arguments) -> Attributes:
        if "type" not in target:
            target["references"] = "id"
            return target
        key = self.add_index("foreign", [target["name"]], arguments.get(2, "indexName"))
        table, references = arguments.get(0, "table"), arguments.get(1, "column") or "id"
        if table is None and isinstance(target["name"], str):
            stem, separator, _ = target["name"].rpartition(f"_{references}")
            table = plural(stem if separator else target["name"])
        key |= {"references": references, "on": table}
        return key


_Method: TypeAlias = Callable[[Blueprint, Arguments], Attributes | None]


def _add_stated_column(
    kind: str, rule: Mapping[str, Any], blueprint: Blueprint, arguments: Arguments
) -> Attributes:
    attributes: Attributes = {}
    for position, name in enumerate(rule.get("arguments", ()), 1):
        default = rule.get("defaults", {}).get(name)
        value = arguments.get(position, name, default)
        is_flag = isinstance(default, bool)
        attributes[name] = bool(value) if is_flag else default if value is None else value
    name = arguments.get(0, "column", arguments.named.get("name")) or rule.get("name")
    return blueprint.add_column(kind, name, **{**attributes, **rule.get("always", {})})


def _read_columns() -> Iterator[tuple[str, _Method]]:
    """Yield the Blueprint methods of blueprint.toml that add one column, each with its name."""
    text = files(__package__.rpartition(".")[0]).joinpath("blueprint.toml").read_text("utf-8")
    for rule in tomllib.loads(text)["columns"]:
        methods = {**{kind: kind for kind in rule.get("types", ())}, **rule.get("methods", {})}
        yield from (
            (name, partial(_add_stated_column, kind, rule)) for name, kind in methods.items()
        )


_COLUMNS: Final = dict(_read_columns())


def _get_foreign_key_column(arguments: Arguments) -> Any:
    """Return the column of a foreign key to a model: as stated, or the model's name with `_id`."""
    model, column = arguments.get(0, "model"), arguments.get(1, "column")
    if not isinstance(column, str) and isinstance(model, str):
        return f"{snake(class_basename(model))}_id"
    return column


def _add_model_foreign_id(blueprint: Blueprint, arguments: Arguments) -> Attributes | None:
    return _COLUMNS["foreignId"](blueprint, Arguments([_get_foreign_key_column(arguments)]))


def _add_any_column(blueprint: Blueprint, arguments: Arguments) -> Attributes:
    more = arguments.get(2, "parameters")
    attributes = more if isinstance(more, dict) else {}
    kind = str(arguments.get(0, "type"))
    return blueprint.add_column(kind, arguments.get(1, "name"), **attributes)


def _add_timestamps(kind: str, blueprint: Blueprint, arguments: Arguments) -> None:
    for column in ("created_at", "updated_at"):
        precision = arguments.get(0, "precision", 0)
        blueprint.add_column(kind, column, precision=precision, nullable=True)


def _add_morphs(kind: str, is_nullable: bool, blueprint: Blueprint, arguments: Arguments) -> None:
    name = arguments.get(0, "name")
    if not isinstance(name, str):
        blueprint.unread.append("name of a column (morphs)")
        return
    more: Attributes = {"nullable": True} if is_nullable else {}
    blueprint.add_column("string", f"{name}_type", length=_DEFAULT_STRING_LENGTH, **more)
    if kind == "bigInteger":
        more = {"autoIncrement": False, "unsigned": True, **more}
    blueprint.add_column(kind, f"{name}_id", **more)
    blueprint.add_index("index", [f"{name}_type", f"{name}_id"], arguments.get(1, "indexName"))


def _add_rename(command: str, blueprint: Blueprint, arguments: Arguments) -> Attributes:
    values = {"from": arguments.get(0, "from"), "to": arguments.get(1, "to")}
    return blueprint.add_command(command, **values)


def _add_column_drops(blueprint: Blueprint, arguments: Arguments) -> None:
    first = arguments.get(0, "columns")
    blueprint.drop_columns(first if isinstance(first, list) else [*arguments.all])


def _add_foreign_column_drop(column: Any, blueprint: Blueprint) -> None:
    blueprint.drop_index("dropForeign", "foreign", [column])
    blueprint.drop_columns([column])


def _add_morphs_drop(blueprint: Blueprint, arguments: Arguments) -> None:
    stem = arguments.get(0, "name")
    columns = [f"{stem}_type", f"{stem}_id"]
    blueprint.drop_index("dropIndex", "index", arguments.get(1, "indexName") or columns)
    blueprint.drop_columns(columns)


def _add_index_command(kind: str, blueprint: Blueprint, arguments: Arguments) -> Attributes:
    return blueprint.add_index(kind, arguments.get(0, "columns"), arguments.get(1, "name"))


def _add_index_drop(command: str, kind: str, blueprint: Blueprint, arguments: Arguments) -> None:
    blueprint.drop_index(command, kind, arguments.get(0, "index"))


_DROPS: Final = {
    f"drop{name[:1].upper()}{name[1:]}": kind
    for name, kind in {**_INDEXES, "foreign": "foreign"}.items()
}
_MORPHS: Final = {
    **dict.fromkeys(("morphs", "numericMorphs"), "bigInteger"),
    "uuidMorphs": "uuid",
    "ulidMorphs": "ulid",
}
_METHODS_BY_NAME: Final[Mapping[str, _Method]] = {
    **_COLUMNS,
    "foreignIdFor": _add_model_foreign_id,
    "addColumn": _add_any_column,
    **dict.fromkeys(("timestamps", "nullableTimestamps"), partial(_add_timestamps, "timestamp")),
    "timestampsTz": partial(_add_timestamps, "timestampTz"),
    "datetimes": partial(_add_timestamps, "dateTime"),
    **{name: partial(_add_morphs, kind, False) for name, kind in _MORPHS.items()},
    **{f"nullable{name}": partial(_add_morphs, kind, True) for name, kind in _MORPHS.items()},
    **{name: partial(_add_index_command, kind) for name, kind in _INDEXES.items()},
    "foreign": partial(_add_index_command, "foreign"),
    "rawIndex": lambda blueprint, arguments: blueprint.add_index(
        "index", [arguments.get(0, "expression")], arguments.get(1, "name")
    ),
    **{name: partial(_add_rename, name) for name in ("renameIndex", "renameColumn")},
    "rename": lambda blueprint, arguments: blueprint.add_command(
        "rename", to=arguments.get(0, "to")
    ),
    "drop": lambda blueprint, _: blueprint.add_command("drop"),
    "dropIfExists": lambda blueprint, _: blueprint.add_command("dropIfExists"),
    **{name: partial(_add_index_drop, name, kind) for name, kind in _DROPS.items()},
    **dict.fromkeys(("dropColumn", "dropColumns"), _add_column_drops),
    **dict.fromkeys(
        ("dropTimestamps", "dropTimestampsTz"),
        lambda blueprint, _: blueprint.drop_columns(["created_at", "updated_at"]),
    ),
    **dict.fromkeys(
        ("dropSoftDeletes", "dropSoftDeletesTz"),
        lambda blueprint, arguments: blueprint.drop_columns(
            [arguments.get(0, "column", "deleted_at")]
        ),
    ),
    "dropRememberToken": lambda blueprint, _: blueprint.drop_columns(["remember_token"]),
    "dropConstrainedForeignId": lambda blueprint, arguments: _add_foreign_column_drop(
        arguments.get(0, "column"), blueprint
    ),
    "dropConstrainedForeignIdFor": lambda blueprint, arguments: _add_foreign_column_drop(
        _get_foreign_key_column(arguments), blueprint
    ),
    "dropMorphs": _add_morphs_drop,
    **dict.fromkeys(
        ("temporary", "engine", "charset", "collation", "comment", "create", "innoDb"),
        lambda _, __: None,
    ),
}
_METHODS: Final[Mapping[str, _Method]] = {
    name.lower(): method for name, method in _METHODS_BY_NAME.items()
}
"""Functions that apply a method of Laravel's Blueprint, by its name in lower case."""
