"""Operations of migrations: what each does to the models."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from rag_assets.code.frameworks.django.calls import (
    Call,
    dictionary_of,
    groups_of,
    items_of,
    text_of,
)
from rag_assets.code.frameworks.django.fields import is_relation
from rag_assets.code.frameworks.django.migrations import Migration
from rag_assets.code.frameworks.django.modules import Evidence, Unresolved
from rag_assets.code.frameworks.django.program import Program
from rag_assets.code.frameworks.django.states import VIRTUAL, ModelState, State, StatedField

_SQL: Final = re.compile(
    r"\b(CREATE|ALTER|DROP)\s+(?:UNLOGGED\s+|TEMPORARY\s+)?TABLE\s+"
    r"(?:IF\s+(?:NOT\s+)?EXISTS\s+)?(?:ONLY\s+)?[\"`]?(\w{1,100})[\"`]?",
    re.IGNORECASE,
)
_PAIR: Final = 2
_DATA_ONLY: Final = frozenset(
    {"RunPython", "AlterModelOptions", "AlterModelManagers", "AlterModelTableComment"}
    | {"AlterOrderWithRespectTo", "CreateExtension", "TrigramExtension", "UnaccentExtension"}
)

_PREFIXES: Final = ("django.db.migrations.", "django.contrib.postgres.operations.")


class Operations:
    """The operations of one migration, applied to a state.

    Args:
        program: the repository.
        migration: whose they are.
        state: that they change.
    """

    def __init__(self, program: Program, migration: Migration, state: State) -> None:
        self._program = program
        self._migration = migration
        self._module = migration.module
        self._state = state
        self._known: Mapping[str, Callable[[Call], None]] = {
            "CreateModel": self._create_model,
            "DeleteModel": self._delete_model,
            "RenameModel": self._rename_model,
            "AlterModelTable": self._alter_table,
            "AddField": self._set_field,
            "AlterField": self._set_field,
            "RemoveField": self._remove_field,
            "RenameField": self._rename_field,
            "AddIndex": self._add_index,
            "AddIndexConcurrently": self._add_index,
            "RemoveIndex": self._remove_index,
            "RemoveIndexConcurrently": self._remove_index,
            "RenameIndex": self._rename_index,
            "AddConstraint": self._add_index,
            "RemoveConstraint": self._remove_index,
            "AlterUniqueTogether": self._together,
            "AlterIndexTogether": self._touched,
            "AlterModelOptions": self._options,
            "RunSQL": self._sql,
        }

    def run(self) -> None:
        """Applies all of them."""
        for fact in self._migration.operations:
            if fact.values["under"]:
                at = {"at": [fact.start, fact.end]}
                self._miss(f"depends on `{fact.values['under']}`", at)
            else:
                self._all(fact.values["value"])

    def _all(self, value: Any) -> None:
        todo = [value]
        while todo:
            at = todo.pop()
            kind = at.get("of") if isinstance(at, dict) else ""
            if kind in {"list", "tuple", "sum"} and isinstance(at, dict):
                todo.extend(reversed(at["items"]))
            elif kind == "call":
                todo.extend(reversed(self._one(Call(at))))
            elif at is not None:
                self._miss("a computed operation", at)

    def _one(self, call: Call) -> list[Any]:
        """Applies an operation; the operations within it are returned."""
        name = self._name(call)
        if name == "SeparateDatabaseAndState":
            self._sql_within(call.get("database_operations", 0))
            return [call.get("state_operations", 1)]
        if name == "RunSQL":
            self._sql(call)
            return [call.get("state_operations", 2)]
        if name in self._known:
            self._known[name](call)
        elif name not in _DATA_ONLY and not name.endswith("Extension"):
            self._miss(f"an operation of its own: {name}"[:80], call.value)
        return []

    def _name(self, call: Call) -> str:
        """The last name of an operation of Django's, also where an own class extends it."""
        name = self._program.absolute(call.called, self._module)
        lineage = self._program.ancestry(name)
        found = (one for one in lineage if one.startswith(_PREFIXES))
        return next(found, lineage[0]).rpartition(".")[2]

    def _create_model(self, call: Call) -> None:
        name = call.text("name", 0)
        if not name:
            self._miss("a model with a computed name", call.value)
            return
        model = ModelState(self._migration.app, name)
        options = dictionary_of(call.get("options", 2))
        model.stated = text_of(options.get("db_table")).strip('"')
        model.proxy = options.get("proxy") is True
        model.managed = options.get("managed", True) is not False
        model.together = groups_of(options.get("unique_together"))
        model.evidence.append(self._evidence(call))
        self._fields(model, call)
        for key in ("indexes", "constraints"):
            for item in items_of(options.get(key)):
                self._index(model, item)
        self._state.models[f"{model.app}.{name}".lower()] = model

    def _fields(self, model: ModelState, call: Call) -> None:
        fields = call.get("fields", 1)
        if not isinstance(fields, dict) or fields["of"] not in {"list", "tuple"}:
            model.reasons.append("computed fields")
        for item in items_of(fields):
            pair = items_of(item)
            if len(pair) == _PAIR and isinstance(pair[0], str):
                self._state_field(model, pair[0], pair[1], self._evidence(call))
            else:
                model.reasons.append("a computed field")
        inherited = [base for base in items_of(call.get("bases", 3)) if isinstance(base, str)]
        keyed = any(f.options.get("primary_key") is True for f in model.fields.values())
        if not keyed and not inherited and not model.proxy:
            options = {"primary_key": True}
            key = StatedField(
                "id", "AutoField", "AutoField", "", False, "", options, self._evidence(call)
            )
            model.fields = {"id": key, **model.fields}

    def _delete_model(self, call: Call) -> None:
        self._state.models.pop(self._label(call.text("name", 0)), None)

    def _rename_model(self, call: Call) -> None:
        old, new = call.text("old_name", 0), call.text("new_name", 1)
        model = self._state.models.pop(self._label(old), None)
        if model is None or not new:
            return
        model.name = new
        model.evidence.append(self._evidence(call))
        self._state.models[self._label(new)] = model
        for other in self._state.models.values():
            for name, one in other.fields.items():
                if one.target == self._label(old):
                    other.fields[name] = replace(one, target=self._label(new))

    def _alter_table(self, call: Call) -> None:
        model = self._model(call, "name")
        table = call.get("table", 1)
        if model is None:
            return
        if table is not None and not isinstance(table, str):
            model.reasons.append("a computed name")
        model.stated = text_of(table)

    def _set_field(self, call: Call) -> None:
        model, name = self._model(call), call.text("name", 1)
        if model is not None and name:
            self._state_field(model, name, call.get("field", 2), self._evidence(call))

    def _remove_field(self, call: Call) -> None:
        model = self._model(call)
        if model is not None:
            model.fields.pop(call.text("name", 1), None)

    def _rename_field(self, call: Call) -> None:
        model = self._model(call)
        old, new = call.text("old_name", 1), call.text("new_name", 2)
        if model is None or old not in model.fields or not new:
            return

        def renamed(names: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(new if one == old else one for one in names)

        model.fields = {
            (new if name == old else name): (replace(one, name=new) if name == old else one)
            for name, one in model.fields.items()
        }
        model.indexes = {n: (kind, renamed(f)) for n, (kind, f) in model.indexes.items()}
        model.together = [renamed(names) for names in model.together]

    def _add_index(self, call: Call) -> None:
        model = self._model(call)
        item = call.get("index", 1) or call.get("constraint", 1)
        if model is not None:
            self._index(model, item)

    def _index(self, model: ModelState, value: Any) -> None:
        if not isinstance(value, dict) or value["of"] != "call":
            model.reasons.append("a computed index")
            return
        call = Call(value)
        name = call.text("name", 99)
        last = call.called.rpartition(".")[2]
        kind = {"UniqueConstraint": "unique", "CheckConstraint": "check"}.get(last, "index")
        fields = tuple(item for item in items_of(call.get("fields", 99)) if isinstance(item, str))
        model.indexes[name or f"({','.join(fields)})"] = (kind, fields)

    def _remove_index(self, call: Call) -> None:
        model = self._model(call)
        if model is not None:
            model.indexes.pop(call.text("name", 1), None)

    def _rename_index(self, call: Call) -> None:
        model = self._model(call)
        new, old = call.text("new_name", 1), call.text("old_name", 2)
        if model is not None and old in model.indexes and new:
            model.indexes[new] = model.indexes.pop(old)

    def _together(self, call: Call) -> None:
        model = self._model(call, "name")
        if model is not None:
            model.together = groups_of(call.get("unique_together", 1))

    def _touched(self, call: Call) -> None:
        self._model(call, "name")

    def _options(self, call: Call) -> None:
        model = self._state.models.get(self._label(call.text("name", 0)))
        managed = dictionary_of(call.get("options", 1)).get("managed")
        if model is not None and isinstance(managed, bool):
            model.managed = managed

    def _sql_within(self, value: Any) -> None:
        for item in items_of(value):
            if isinstance(item, dict) and item["of"] == "call":
                call = Call(item)
                if self._name(call) == "RunSQL":
                    self._sql(call)

    def _sql(self, call: Call) -> None:
        texts = [call.get("sql", 0)]
        while texts:
            at = texts.pop()
            if isinstance(at, str):
                for verb, name in dict.fromkeys(_SQL.findall(at)):
                    self._state.written.setdefault(name, []).append(self._evidence(call))
                    if verb.upper() == "CREATE":
                        self._state.created.add(name)
                    elif verb.upper() == "DROP":
                        self._state.created.discard(name)
            elif isinstance(at, dict) and at["of"] in {"list", "tuple"}:
                texts.extend(reversed(at["items"]))
            elif at is not None:
                self._miss("computed SQL", call.value)

    def _state_field(self, model: ModelState, name: str, value: Any, at: Evidence) -> None:
        if not isinstance(value, dict) or value["of"] != "call":
            model.reasons.append("a computed field")
            return
        call = Call(value)
        kind = call.called.rpartition(".")[2]
        base, target = self._base(call, kind), ""
        if is_relation(base) and base not in VIRTUAL:
            target = self._target(model, call.get("to", 0))
        deletes = call.get("on_delete", 1)
        written = deletes.get("name", "") if isinstance(deletes, dict) else ""
        plain = str | int | float | bool
        model.fields[name] = StatedField(
            name,
            kind,
            base,
            target,
            call.get("through", 99) is not None,
            written.rpartition(".")[2].lower(),
            {key: v for key, v in call.value["named"].items() if isinstance(v, plain)},
            at,
        )

    def _base(self, call: Call, kind: str) -> str:
        """The class of relations that a class of fields extends, also one of another package."""
        lineage = self._program.ancestry(self._program.absolute(call.called, self._module))
        names = (one.rpartition(".")[2] for one in lineage)
        found = next((one for one in names if is_relation(one)), "")
        if found or not isinstance(call.get("to", 99), str):
            return found or kind
        return "ManyToManyField" if call.get("on_delete", 99) is None else "ForeignKey"

    def _target(self, model: ModelState, value: Any) -> str:
        if isinstance(value, dict) and value["of"] == "name":
            value = self._state.user
        if not isinstance(value, str):
            return f"{model.app}.?"
        name = f"{model.app}.{model.name}" if value == "self" else value
        return (name if "." in name else f"{self._migration.app}.{name}").lower()

    def _model(self, call: Call, key: str = "model_name") -> ModelState | None:
        """The model of an operation, with the operation as evidence."""
        model = self._state.models.get(self._label(call.text(key, 0)))
        if model is None:
            self._miss("a model that no migration made", call.value)
        else:
            model.evidence.append(self._evidence(call))
        return model

    def _label(self, name: str) -> str:
        return f"{self._migration.app}.{name}".lower()

    def _evidence(self, call: Call) -> Evidence:
        return self._module.evidence(call.value)

    def _miss(self, reason: str, value: Any) -> None:
        self._state.unresolved.append(Unresolved(reason, self._module.evidence(value)))
