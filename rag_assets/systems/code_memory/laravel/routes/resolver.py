"""Resolve a repository's routes: the state of Laravel's router after all providers ran."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.laravel.routes.machine import Machine
from rag_assets.systems.code_memory.laravel.routes.model import (
    Context,
    Evidence,
    Routes,
    Unresolved,
)
from rag_assets.systems.code_memory.laravel.routes.program import ROOT, ClassFacts, Program, is_test
from rag_assets.systems.code_memory.laravel.routes.reader import DIRECT, FACADES, RESOURCES, VERBS
from rag_assets.systems.code_memory.laravel.routes.values import (
    Arguments,
    Body,
    Exhausted,
    Frame,
    Instance,
    Value,
)
from rag_assets.systems.code_memory.symbols.model import FileFacts


def providers_of(program: Program) -> Iterator[str]:
    """Yield provider classes: listed providers, then the application's, then those in packages.

    An application's provider is skipped if the application lists other providers of its own and no
    statement names this one: Laravel's skeleton contains such providers.
    """
    names = (name for listed in program.providers.values() for name in listed)
    listed = {name: index for index, name in enumerate(dict.fromkeys(names))}
    found = [
        (listed.get(name, len(listed)), not one.path.startswith("app/"), one.path, name)
        for name, one in program.classes.items()
        if not one.abstract and not is_test(one.path) and _is_provider(program, name)
        if name in listed or name in program.registered or not _is_replaced(program, one)
    ]
    yield from (name for *_, name in sorted(found))


def _is_provider(program: Program, name: str) -> bool:
    *own, last = program.lineage(name)
    return bool(own) and any(
        one not in program.classes and one.rpartition("\\")[2].endswith("Provider")
        for one in (*own, last)
    )


def _is_replaced(program: Program, one: ClassFacts) -> bool:
    """Return whether the application of a class lists other providers of its own instead."""
    for root, listed in program.providers.items():
        own = f"{root}app/"
        held = (program.classes.get(name) for name in listed)
        if one.path.startswith(own) and any(c and c.path.startswith(own) for c in held):
            return True
    return False


_ROUTES = "Illuminate\\Foundation\\Support\\Providers\\RouteServiceProvider"
_MAKES = VERBS | RESOURCES | DIRECT | {"group"}


def resolve_routes(files: Iterable[FileFacts]) -> Routes:
    """Return the routes of a repository.

    Files are loaded by providers, `withRouting`, `loadRoutesFrom` and `require`. A file that is
    never loaded has no routes, and is reported as unresolved.

    Args:
        files: the files of the repository.
    """
    return collect_routes(run_providers(files))


def run_providers(files: Iterable[FileFacts]) -> Machine:
    """Evaluate everything in a repository that creates routes; return the machine.

    Args:
        files: the files of the repository.
    """
    program = Program(files)
    machine = Machine(program)
    providers = list(providers_of(program))
    for name in providers:
        _run_methods(machine, name, ("register", "configurePackage"))
    for name in providers:
        machine.deferred.clear()
        _run_methods(machine, name, ("boot",))
        _run_route_provider(machine, name)
    for path in sorted(program.top_levels()):
        if path.endswith("bootstrap/app.php") and not is_test(path):
            first = Evidence(path, program.body(Body(path, "", 0))[0])
            _run_guarded(
                machine, partial(machine.load, ROOT + path, _make_frame(path), stated=False), first
            )
    return machine


def _run_methods(machine: Machine, name: str, methods: Iterable[str]) -> None:
    for method in methods:
        function = machine.program.method(name, method)
        if function is not None:
            frame = _make_frame(function.body.path)
            run = partial(machine.function, function, Instance(name), Arguments(()), frame)
            _run_guarded(machine, run, Evidence(function.body.path, function.fact))


def _run_route_provider(machine: Machine, name: str) -> None:
    """Evaluate what a route provider does after boot: its last closure, or else its `map`."""
    if machine.deferred:
        last, evidence = machine.deferred[-1]
        frame = _make_frame(evidence.path)
        _run_guarded(machine, partial(machine.closure, last, Arguments(()), frame), evidence)
    elif _ROUTES in machine.program.lineage(name):
        _run_methods(machine, name, ("map",))


def _run_guarded(machine: Machine, run: Callable[[], Value], evidence: Evidence) -> None:
    machine.begin()
    try:
        run()
    except RecursionError:
        machine.unresolved.append(Unresolved("code that is nested too deeply", evidence))
    except Exhausted:
        machine.unresolved.append(
            Unresolved("the evaluation stopped at its limit of steps", evidence)
        )


def _make_frame(path: str) -> Frame:
    return Frame(path, "", None, {}, Context(), 0)


def collect_routes(machine: Machine) -> Routes:
    """Return the routes that an evaluation created, and the statements left unresolved."""
    routes, unresolved = [], list(machine.unresolved)
    for draft in machine.router.drafts:
        if isinstance(draft.uri, str):
            routes.append(draft.route())
        elif draft.context.evidence:
            reason = f"the URI is computed: {draft.uri.why}"
            unresolved.append(Unresolved(reason, draft.context.evidence[-1]))
    unresolved += _report_unloaded_files(machine)
    return Routes(tuple(routes), tuple(dict.fromkeys(unresolved)))


def _report_unloaded_files(machine: Machine) -> Iterator[Unresolved]:
    for path in sorted(machine.program.top_levels()):
        if path in machine.loaded or is_test(path):
            continue
        facts = machine.program.body(Body(path, "", 0))
        first = next((fact for fact in facts if makes_routes(fact)), None)
        if first is not None:
            yield Unresolved("a routes file that no known statement loads", Evidence(path, first))


def makes_routes(fact: Fact) -> bool:
    """Return whether a fact is a statement that calls the router to create routes."""
    value = fact.values.get("value")
    if not isinstance(value, dict) or value.get("of") != "chain":
        return False
    names = {call["name"].lower() for call in value["calls"]}
    router = value["root"] == {"of": "variable", "name": "router"}
    return (router or value["class"] in FACADES) and not names.isdisjoint(_MAKES)
