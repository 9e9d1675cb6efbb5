"""Tables derived from a repository's classes and migrations with the rules of one framework.

A table has the classes that map to it, its columns with the tables that they refer to, and the
migrations that name it. Tables and columns with names computed at run time are left out.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.frameworks.definitions import (
    ChangeRules,
    ColumnRules,
    Framework,
    TableRules,
    find_pattern,
)
from rag_assets.systems.code_memory.frameworks.repository import (
    File,
    RepositoryFiles,
    get_last_part,
    group,
)
from rag_assets.systems.code_memory.frameworks.statements import Value, find_argument

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+")
_MAX_ANCESTORS: Final = 40
"""Maximum number of ancestors followed for a class; further ancestors are ignored."""
_MAX_RENAMES: Final = 20
"""Maximum number of renames followed for a name; further renames are ignored."""
_MAX_COLUMNS: Final = 300
"""Maximum number of columns of a table; further columns are dropped."""


@dataclass(frozen=True, slots=True)
class ClassStatement:
    """A class of the repository, with the file and the fact that states it."""

    file: File
    fact: Fact

    @property
    def name(self) -> str:
        """Return the name of the class without its module."""
        return str(self.fact.values["name"])

    @property
    def place(self) -> tuple[str, int]:
        """Return the path and the offset, which identify the class."""
        return self.file.path, self.fact.start


@dataclass(frozen=True, slots=True)
class MappedColumn:
    """A column of a table, with the file and the fact that state it.

    Attributes:
        kind: the call that creates it; "" for a column that the framework adds.
        refers_to: the table that it refers to; "" if absent.
    """

    name: str
    kind: str
    is_nullable: bool
    refers_to: str
    file: File
    fact: Fact
    is_key: bool = False


@dataclass(frozen=True, slots=True)
class MappedClass:
    """A class that maps to a table, with the file and the fact that state this.

    Attributes:
        model: the class as written; "" if a call outside a class names the table.
        is_named: whether the source states the table's name.
    """

    file: File
    fact: Fact
    model: str
    is_named: bool


@dataclass(slots=True)
class MappedTable:
    """A table with its classes, columns and migrations.

    Attributes:
        changes: the calls in migrations that name it, with their files.
    """

    name: str
    models: list[MappedClass] = field(default_factory=list)
    columns: dict[str, MappedColumn] = field(default_factory=dict)
    changes: list[tuple[File, Fact]] = field(default_factory=list)


class TableReader:
    """A reader of one framework's tables in the files of one repository."""

    def __init__(self, framework: Framework, files: Sequence[File]) -> None:
        self._framework = framework
        self._files = files
        self._repository = RepositoryFiles(files)
        self._tables: dict[str, MappedTable] = {}
        self._table_of: dict[tuple[str, int], str] = {}
        self._configured_names: set[str] = set()
        self._mapped_classes: list[tuple[TableRules, ClassStatement, str]] = []

    def list_tables(self) -> list[MappedTable]:
        """Return the tables of all files, sorted by name."""
        for tables in self._framework.tables:
            for file in self._files:
                calls = (
                    self._iter_configured_tables if tables.configurations else _iter_tables_of_calls
                )
                for name, mapped in calls(tables, file):
                    self._add_mapping(name, mapped)
            for file in self._files:
                for name, mapped in self._iter_tables_of_sets(tables, file):
                    self._add_mapping(name, mapped)
                for class_ in (ClassStatement(file, fact) for fact in file.classes):
                    is_new = class_.place not in self._table_of
                    if is_new and (mapping := self._map_class(tables, class_)) is not None:
                        self._add_mapping(*mapping)
                        self._table_of[class_.place] = mapping[0]
                        self._mapped_classes.append((tables, class_, mapping[0]))
        for tables, class_, name in self._mapped_classes:
            if tables.columns is not None and not _is_true(_find_assignment(class_, tables.shared)):
                self._add_columns(tables.columns, class_, self._tables[name])
        self._add_changes()
        return [self._tables[name] for name in sorted(self._tables)]

    def _add_mapping(self, name: str, mapping: MappedClass) -> None:
        self._tables.setdefault(name, MappedTable(name)).models.append(mapping)

    def _iter_configured_tables(
        self, tables: TableRules, file: File
    ) -> Iterator[tuple[str, MappedClass]]:
        """Yield the tables that configurations of classes name, each with its class."""
        for call in file.calls:
            value = find_argument(call, "0") if call.values["name"] in tables.calls else None
            stating = None if value is None else _find_stating_fact(tables, file, call)
            if value is None or value[0] != "s" or stating is None:
                continue
            name = get_last_part(stating.values.get("type_arguments", ("",))[0])
            class_ = self._resolve_class(file, name)
            self._configured_names.add(name)
            place = file, call, str(stating.values["name"])
            if class_ is not None:
                place = class_.file, class_.fact, class_.name
            yield str(value[1]), MappedClass(*place, is_named=True)

    def _iter_tables_of_sets(
        self, tables: TableRules, file: File
    ) -> Iterator[tuple[str, MappedClass]]:
        """Yield the tables of properties such as `DbSet<Order> Orders`, each with its class.

        A class whose table another file states is left out.
        """
        for property_ in file.properties if tables.sets else ():
            type_, _, rest = property_.values["value"][1].partition("<")
            name = get_last_part(rest.rstrip(">?"))
            class_ = self._resolve_class(file, name)
            if type_ not in tables.sets or name in self._configured_names:
                continue
            if class_ is not None and self._map_class(tables, class_) is not None:
                continue
            place = (
                (file, property_, "") if class_ is None else (class_.file, class_.fact, class_.name)
            )
            yield str(property_.values["name"]), MappedClass(*place, is_named=True)

    def _map_class(
        self, tables: TableRules, class_: ClassStatement
    ) -> tuple[str, MappedClass] | None:
        """Return the table that a class maps to, and the mapping; None if it has no table."""
        marks = [a for a in class_.file.annotations if a.values["target"][0] == class_.fact.start]
        if class_.name in tables.bases or self._is_embedded(tables, class_):
            return None
        lineage = self._list_lineage(class_, tables.embedded)
        key = self._find_application_of_path(class_.file.path), class_.name.lower()
        is_model = bool(
            any(self._has_outside_base(tables, ancestor) for ancestor in lineage)
            or {a.values["name"] for a in marks} & {*tables.annotations}
            or (class_.fact.values["bases"] and key in self._created_classes)
        )
        table_assignment = _find_assignment(class_, tables.field)
        is_text = table_assignment is not None and table_assignment.values["value"][0] == "s"
        if table_assignment is not None and is_text and (is_model or not tables.bases):
            name = table_assignment.values["value"][1].strip('"')
            return name, MappedClass(class_.file, table_assignment, class_.name, True)
        is_abstract = _is_true(_find_assignment(class_, tables.abstract))
        if not is_model or is_abstract or (table_assignment is not None and not is_text):
            return None
        if tables.shared == "*" or _is_true(_find_assignment(class_, tables.shared)):
            for parent in lineage[1:]:
                if (inherited := self._map_class(tables, parent)) is not None:
                    return inherited[0], MappedClass(class_.file, class_.fact, class_.name, False)
        return self._find_table_by_name(tables, class_, marks, lineage)

    def _is_embedded(self, tables: TableRules, class_: ClassStatement) -> bool:
        """Return whether a class only gives its columns to the classes that embed it."""
        is_named = bool(tables.embedded and re.search(tables.embedded, class_.name))
        return is_named and class_.name in self._embedded_names

    @cached_property
    def _embedded_names(self) -> set[str]:
        """Return the names of all base classes and embedded types."""
        classes = (fact for file in self._files for fact in file.classes)
        return {get_last_part(base) for fact in classes for base in fact.values["bases"]}

    def _find_table_by_name(
        self,
        tables: TableRules,
        class_: ClassStatement,
        marks: Sequence[Fact],
        lineage: Sequence[ClassStatement],
    ) -> tuple[str, MappedClass] | None:
        """Return the table of a class, named by an annotation or after the class; else None.

        The second part of the result is the mapping of the class.
        """
        values = (
            find_argument(a, tables.argument)
            for a in marks
            if a.values["name"] == tables.annotation
        )
        value = next((v for v in values if v is not None and v[0] in {"s", "n", "d"}), None)
        if value is None and tables.base_argument and class_.fact.values.get("arguments"):
            value = find_argument(class_.fact, tables.base_argument)
        if value is not None and value[0] == "d":
            value = value[1].get("name")
        if value is not None:
            return str(value[1]), MappedClass(class_.file, class_.fact, class_.name, True)
        if not tables.naming:
            return None
        usual = MappedClass(class_.file, class_.fact, class_.name, False)
        if tables.naming == "app":
            label = self._find_application_label(tables, class_, lineage)
            return f"{label}_{class_.name.lower()}", usual
        return _build_table_name(class_.name, tables.naming), usual

    def _has_outside_base(self, tables: TableRules, class_: ClassStatement) -> bool:
        """Return whether a class extends a model class from outside the repository."""
        of_bases = tables.columns.of_bases if tables.columns is not None else ()
        base_names = class_.fact.values["bases"]
        bases = [
            base for base in base_names if base in tables.bases or get_last_part(base) in of_bases
        ]
        # Only in Python files is the origin of a name such as `Model` known.
        is_python = class_.file.language == "python"
        return any(
            not is_python or self._resolve_class(class_.file, base) is None for base in bases
        )

    def _list_lineage(self, class_: ClassStatement, names: str = "") -> list[ClassStatement]:
        """Return a class and its ancestors in the repository, nearest first.

        Args:
            names: regular expression of the names of the ancestors to follow; "" for all.
        """
        lineage = {class_.place: class_}
        pending = [class_]
        while pending and len(lineage) < _MAX_ANCESTORS:
            here = pending.pop(0)
            for base in here.fact.values["bases"]:
                parent = self._resolve_class(here.file, base)
                if parent is None or not re.search(names, parent.name):
                    continue
                if parent.place not in lineage:
                    lineage[parent.place] = parent
                    pending.append(parent)
        return [*lineage.values()]

    @cached_property
    def _classes(self) -> Mapping[str, list[ClassStatement]]:
        """Return the top-level classes by name."""
        return group(
            (get_last_part(fact.values["name"]), ClassStatement(file, fact))
            for file in self._files
            for fact in file.classes
            if all(enclosing is fact for enclosing in file.find_enclosing(file.classes, fact.start))
        )

    def _resolve_class(self, file: File, name: str) -> ClassStatement | None:
        """Return the class that a name in a file refers to; None if no file here defines it."""
        first, _, rest = name.partition(".")
        original = get_last_part(rest) if rest else file.get_original_name(first)
        known = self._classes.get(original, ())
        own = [class_ for class_ in known if class_.file is file]
        if own and not rest:
            return own[0]
        module = file.modules_by_name.get(first)
        if module is None:
            return None if file.language == "python" else _find_nearest_class(file, known)
        owner = module if rest else module.rpartition(".")[0]
        level = len(module) - len(module.lstrip("."))
        owner = owner if len(owner) >= level else "." * level
        places = [other.path for other in self._repository.find_modules(file, owner)]
        stated_classes = [class_ for class_ in known if class_.file.path in places]
        if stated_classes or not places:
            return stated_classes[0] if stated_classes else None
        # A package may re-export the definitions of its modules.
        folders = tuple(f"{posixpath.dirname(path)}/" for path in places if "__init__" in path)
        passed = [class_ for class_ in known if class_.file.path.startswith(folders)]
        return passed[0] if len(passed) == 1 else (known[0] if len(known) == 1 else None)

    def _find_application_label(
        self, tables: TableRules, class_: ClassStatement, lineage: Sequence[ClassStatement]
    ) -> str:
        """Return the label of the application to which a class belongs."""
        for ancestor in lineage:
            if ancestor is not class_ and not _is_true(_find_assignment(ancestor, tables.abstract)):
                continue
            assignment = _find_assignment(ancestor, tables.label)
            if assignment is not None and assignment.values["value"][0] == "s":
                return str(assignment.values["value"][1])
            inner = _find_inner_class(ancestor, tables.label.rpartition(".")[0])
            if inner is not None and not [*filter(None, inner.values["bases"])]:
                break
        return self._find_application_of_path(class_.file.path)

    def _find_application_of_path(self, path: str) -> str:
        folder = posixpath.dirname(path)
        while folder:
            if folder in self._labels_by_folder:
                return self._labels_by_folder[folder]
            folder = posixpath.dirname(folder)
        parts = posixpath.splitext(path)[0].split("/")
        for part in ("models", "migrations"):
            if part in parts[1:]:
                return parts[parts.index(part, 1) - 1]
        return parts[-2] if len(parts) > 1 else parts[-1]

    @cached_property
    def _labels_by_folder(self) -> Mapping[str, str]:
        """Return the labels of applications, by the folder of the class that configures each."""
        bases = {base for tables in self._framework.tables for base in tables.apps}
        labels: dict[str, str] = {}
        for file in self._files:
            folder = posixpath.dirname(file.path)
            for fact in file.classes:
                if bases & {get_last_part(base) for base in fact.values["bases"]}:
                    assignment = _find_assignment(ClassStatement(file, fact), "label")
                    kind, text, *_ = assignment.values["value"] if assignment else ("", "")
                    labels[folder] = (str(text) if kind == "s" else "") or posixpath.basename(
                        folder
                    )
        return labels

    def _add_columns(
        self, columns: ColumnRules, class_: ClassStatement, table: MappedTable
    ) -> None:
        """Add the columns of a class and of its ancestors without a table to its table."""
        lineage, name = self._list_lineage(class_), table.name
        parents = (p for p in lineage[1:] if self._table_of.get(p.place, name) != name)
        parent = next(parents, None)
        above = set() if parent is None else {id(p.fact) for p in self._list_lineage(parent)}
        inherited: dict[str, MappedColumn] = {}
        hidden: set[str] = set()
        for ancestor in lineage:
            if id(ancestor.fact) not in above:
                for assigned, column in self._iter_stated_columns(columns, ancestor, class_, table):
                    if assigned not in hidden:
                        inherited.setdefault(column.name, column)
                hidden |= {get_last_part(v.values["name"]) for v in _list_own_assignments(ancestor)}
                for column in self._iter_columns_of_bases(columns, ancestor, class_, table):
                    inherited.setdefault(column.name, column)
        first: list[MappedColumn] = []
        if columns.key and not any(column.is_key for column in inherited.values()):
            key = columns.key
            if parent is not None and columns.parent_key:
                key = columns.parent_key.replace("{parent}", parent.name.lower())
            first = [MappedColumn(key, "", False, "", class_.file, class_.fact)]
        for column in [*first, *inherited.values()][:_MAX_COLUMNS]:
            table.columns.setdefault(column.name, column)

    def _iter_columns_of_bases(
        self, columns: ColumnRules, class_: ClassStatement, heir: ClassStatement, table: MappedTable
    ) -> Iterator[MappedColumn]:
        """Yield the columns of `heir` that a class inherits from base classes in other packages.

        A join table is added to the tables instead of being yielded.
        """
        for base in class_.fact.values["bases"]:
            known = columns.of_bases.get(get_last_part(base), "").split()
            for name in known if self._resolve_class(class_.file, base) is None else ():
                column = MappedColumn(name, "", False, "", heir.file, heir.fact)
                joined, _, target = name.partition(">")
                if target:
                    self._add_join_table(columns, heir, table, (joined, target, column))
                else:
                    yield column

    def _iter_stated_columns(
        self, columns: ColumnRules, class_: ClassStatement, heir: ClassStatement, table: MappedTable
    ) -> Iterator[tuple[str, MappedColumn]]:
        """Yield the columns of `heir` that a class assigns, each with the assigned name."""
        for value in _list_own_assignments(class_):
            call = class_.file.find_call(value.values["value"])
            name = get_last_part(value.values["name"])
            if call is None:
                continue
            kind, options = call.values["name"], call.values.get("named", {})
            refers_to = self._find_referenced_table(columns, class_, call)
            if find_pattern(kind, columns.joins):
                if columns.through not in options:
                    target = self._find_target_class(columns, class_, call)
                    place = MappedColumn("", kind, False, refers_to, class_.file, value)
                    self._add_join_table(columns, heir, table, (name, target, place))
                continue
            pattern = find_pattern(kind, columns.calls)
            column_pattern = columns.calls[pattern] if pattern else ""
            stated = find_argument(call, columns.stated) if columns.stated else None
            stated_name = str(stated[1]) if stated is not None and stated[0] == "s" else ""
            flags = [_is_true_value(options.get(f)) for f in (columns.nullable, "primary_key")]
            for column_name in column_pattern.replace("{name}", name).split():
                place_of_column = refers_to, class_.file, value, flags[1]
                yield (
                    name,
                    MappedColumn(stated_name or column_name, kind, flags[0], *place_of_column),
                )

    def _add_join_table(
        self,
        columns: ColumnRules,
        heir: ClassStatement,
        table: MappedTable,
        join: tuple[str, str, MappedColumn],
    ) -> None:
        """Add the join table between the table of a class and another table.

        Args:
            join: the last part of the join table's name; the other class in lower case, "" if it is
                computed; and a column that refers to the other table.
        """
        name, second, made_by = join
        first, joined = heir.name.lower(), f"{table.name}_{name}"
        if first == second:
            first, second = f"from_{first}", f"to_{second}"
        between = self._tables.setdefault(joined, MappedTable(joined))
        keys = ((first, table.name), (second, made_by.refers_to))
        names = [(columns.key, ""), *((f"{last}_id", other) for last, other in keys if last)]
        for column, refers_to in names:
            if column:
                added = replace(made_by, name=column, kind="", refers_to=refers_to)
                between.columns.setdefault(column, added)

    def _find_target_class(self, columns: ColumnRules, class_: ClassStatement, call: Fact) -> str:
        """Return the class that a call refers to, in lower case; "" if known only at run time."""
        for value in self._iter_reference_targets(columns, class_, call):
            text = self._resolve_target_text(columns, class_, value, call.start) or str(value[1])
            return class_.name.lower() if text == "self" else get_last_part(text).lower()
        return ""

    def _find_referenced_table(
        self, columns: ColumnRules, class_: ClassStatement, call: Fact
    ) -> str:
        """Return the table that a column refers to; "" if it refers to none or is computed.

        The call, or a call in its arguments, names a class, or a table with its column.
        """
        for value in self._iter_reference_targets(columns, class_, call):
            # A name is a class or one of its attributes: `Customer`, `Customer.id`.
            names = (str(value[1]), str(value[1]).rpartition(".")[0]) if value[0] == "n" else ()
            for name in filter(None, names):
                if (known := self._resolve_class(class_.file, name)) is not None:
                    return self._table_of.get(known.place, "")
            text = self._resolve_target_text(columns, class_, value, call.start)
            is_self = text == "self"
            own = self._table_of.get(class_.place, "")
            return own if is_self else self._find_table_in_text(class_, text)
        return ""

    def _iter_reference_targets(
        self, columns: ColumnRules, class_: ClassStatement, call: Fact
    ) -> Iterator[Value]:
        """Yield the values by which a call names the class or table that it refers to.

        The call itself, or a call in its arguments, may name it.
        """
        inner_calls = (class_.file.find_call(value) for value in call.values["arguments"])
        for candidate_call in (call, *(inner for inner in inner_calls if inner is not None)):
            pattern = find_pattern(candidate_call.values["name"], columns.references)
            value = find_argument(candidate_call, columns.references[pattern]) if pattern else None
            if value is not None and value[0] in {"n", "s", "c"}:
                yield value

    def _resolve_target_text(
        self, columns: ColumnRules, class_: ClassStatement, value: Value, at: int
    ) -> str:
        """Return the class or table that a value names: a string, or the value of a setting."""
        name = get_last_part(str(value[3 if value[0] == "c" else 1]))
        setting = columns.settings.get(name)
        wanted = value if setting is None else ["n", f"settings.{setting}"]
        text = self._repository.resolve_text(class_.file, wanted, at)
        return text or columns.defaults.get(setting or "", "")

    def _find_table_in_text(self, class_: ClassStatement, text: str) -> str:
        """Return the table that a text refers to: `users.id`, `billing.Invoice` or `Invoice`."""
        first, _, last = text.rpartition(".")
        for name in (first, f"{first}_{last}".lower(), text):
            if name in self._tables:
                return name
        known = self._classes.get(last, ())
        own = [known_class for known_class in known if known_class.file is class_.file] or known
        return self._table_of.get(own[0].place, "") if len(own) == 1 else ""

    def _add_changes(self) -> None:
        """Add the calls in migrations to the tables that they name, directly or by class."""
        for changes in self._framework.changes:
            calls = self._list_migration_calls(changes)
            newer = dict(self._read_renames(changes, calls))
            for file, call in calls:
                name = self._get_text_argument(call, changes.calls.get(call.values["name"], ""))
                if not name:
                    continue
                known = self._find_changed_table(changes, file.path, name, newer)
                if known is not None:
                    known.changes.append((file, call))
                    joined = f"{known.name}_{self._get_text_argument(call, 'name|1')}"
                    if changes.naming == "model" and joined in self._tables:
                        self._tables[joined].changes.append((file, call))

    def _list_migration_calls(self, changes: ChangeRules) -> list[tuple[File, Fact]]:
        place = re.compile(changes.files)
        files = (file for file in self._files if place.search(file.path))
        return [(file, call) for file in files for call in file.calls]

    @cached_property
    def _created_classes(self) -> set[tuple[str, str]]:
        """Return the classes whose tables the migrations create and never delete.

        Each is a pair of the application and the class name in lower case.
        """
        created: set[tuple[str, str]] = set()
        deleted: set[tuple[str, str]] = set()
        for changes in self._framework.changes:
            calls = self._list_migration_calls(changes) if changes.creates else []
            for file, call in calls:
                called = call.values["name"]
                if called in {*changes.creates, *changes.deletes}:
                    name = self._get_text_argument(call, changes.calls[called]).lower()
                    ends = created if called in changes.creates else deleted
                    ends.add((self._find_application_of_path(file.path), name))
            newer = dict(self._read_renames(changes, calls))
            created |= {(app, name) for (app, _), name in newer.items()}
        return created - deleted

    def _read_renames(
        self, changes: ChangeRules, calls: Sequence[tuple[File, Fact]]
    ) -> Iterator[tuple[tuple[str, str], str]]:
        """Yield the renames of classes: (application, old name) and the new name, in lower case."""
        for file, call in calls:
            if call.values["name"] in changes.renames:
                old, new = changes.renames[call.values["name"]]
                key = (
                    self._find_application_of_path(file.path),
                    self._get_text_argument(call, old).lower(),
                )
                yield key, self._get_text_argument(call, new).lower()

    def _get_text_argument(self, call: Fact, place: str) -> str:
        """Return an argument of a call if it is a string; else ""."""
        value = find_argument(call, place) if place else None
        return str(value[1]) if value is not None and value[0] == "s" else ""

    def _find_changed_table(
        self, changes: ChangeRules, path: str, name: str, newer: Mapping[tuple[str, str], str]
    ) -> MappedTable | None:
        """Return the table that a migration names, after all renames; None if it is unknown."""
        app = self._find_application_of_path(path)
        last = name if changes.naming == "table" else name.lower()
        for _ in range(_MAX_RENAMES):
            if (app, last) not in newer:
                break
            last = newer[app, last]
        if changes.naming == "table":
            return self._tables.get(last)
        return self._tables.get(self._tables_by_label.get((app, last), ""))

    @cached_property
    def _tables_by_label(self) -> Mapping[tuple[str, str], str]:
        """Return the table of each class, by application and class name in lower case."""
        tables_by_class: dict[tuple[str, str], str] = {}
        for tables, class_, name in self._mapped_classes:
            label = self._find_application_label(tables, class_, self._list_lineage(class_))
            tables_by_class[label, class_.name.lower()] = name
        return tables_by_class


def _find_nearest_class(file: File, known: Sequence[ClassStatement]) -> ClassStatement | None:
    """Return the class with the longest common path with a file; None if two share as much."""
    shared = [len(posixpath.commonprefix([file.path, class_.file.path])) for class_ in known]
    most = max(shared, default=0)
    near = [class_ for class_, count in zip(known, shared, strict=True) if count == most]
    return near[0] if len(near) == 1 else None


def _list_own_assignments(class_: ClassStatement) -> list[Fact]:
    """Return the assignments directly in a class, not in its nested classes."""
    file, (start, end) = class_.file, (class_.fact.start, class_.fact.end)
    inner = [c for c in file.classes if start < c.start and c.end <= end]
    own = (value for value in file.values if start <= value.start < end)
    return [v for v in own if not any(c.start <= v.start < c.end for c in inner)]


def _find_assignment(class_: ClassStatement, name: str) -> Fact | None:
    """Return the assignment of `db_table` or `Meta.db_table` in a class; None if absent."""
    inner, _, last = name.rpartition(".")
    is_own = not inner or inner == "self"
    holder = class_.fact if is_own else _find_inner_class(class_, inner)
    if not name or holder is None:
        return None
    wanted_name = name if inner == "self" else last
    values = (v for v in class_.file.values if holder.start <= v.start < holder.end)
    return next((v for v in values if v.values["name"] == wanted_name), None)


def _find_inner_class(class_: ClassStatement, name: str) -> Fact | None:
    start, end = class_.fact.start, class_.fact.end
    inner = (c for c in class_.file.classes if start < c.start < end and c.values["name"] == name)
    return next(inner, None)


def _find_stating_fact(tables: TableRules, file: File, call: Fact) -> Fact | None:
    """Return the call or class whose type argument is the class of the table that a call names."""
    receiver = file.find_call(call.values.get("on"))
    while receiver is not None:
        if receiver.values["name"] in tables.entities:
            return receiver
        receiver = file.find_call(receiver.values.get("on"))
    around = file.find_enclosing(file.calls, call.start)
    names = {*tables.entities, *tables.owned}
    outer = [c for c in around if c.start < call.start and c.values["name"] in names]
    if outer:
        return outer[-1] if outer[-1].values["name"] in tables.entities else None
    classes = file.find_enclosing(file.classes, call.start)
    is_configuration = classes and {*classes[-1].values["bases"]} & {*tables.configurations}
    return classes[-1] if is_configuration else None


def _is_true(fact: Fact | None) -> bool:
    return fact is not None and _is_true_value(fact.values["value"])


def _is_true_value(value: Sequence[Any] | None) -> bool:
    return value is not None and value[0] == "n" and str(value[1]).lower() == "true"


def _iter_tables_of_calls(tables: TableRules, file: File) -> Iterator[tuple[str, MappedClass]]:
    """Yield the tables that calls such as `schema "orders"` name, each with its class."""
    for call in file.calls:
        if call.values["name"] in tables.calls:
            value = find_argument(call, tables.argument)
            model = find_argument(call, tables.model) if tables.model and value is None else None
            modules = [c for c in file.calls if c.values["name"] == "defmodule"]
            owner = file.find_enclosing(modules, call.start)
            classes = file.find_enclosing(file.classes, call.start)
            name = classes[-1].values["name"] if classes else ""
            if owner and owner[-1].values["arguments"]:
                name = str(owner[-1].values["arguments"][0][-1])
            name = name or file.find_receiving_variable(call)
            on = call.values.get("on", ["?"])
            if not name and on[0] == "n" and str(on[1])[:1].isupper():
                name = str(on[1])  # `Order.init({…})`
            if value is not None and value[0] in {"s", "n"}:
                yield str(value[1]), MappedClass(file, call, name, True)
            elif model is not None and model[0] == "s":
                table = _build_table_name(str(model[1]), tables.naming)
                yield table, MappedClass(file, call, name, False)


def _build_table_name(model: str, naming: str) -> str:
    if naming in {"same", "lower"}:
        return model if naming == "same" else model.lower()
    name = "_".join(_WORD.findall(model)).lower()
    if naming == "joined":
        name = name.replace("_", "")
    if naming == "snake":
        return name
    if name.endswith("y") and name[-2:-1] not in "aeiou":
        return name[:-1] + "ies"
    return name + ("es" if name.endswith(("s", "x", "ch", "sh")) else "s")
