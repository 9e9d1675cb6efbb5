"""The service providers of a repository, in boot order."""

from __future__ import annotations

from collections.abc import Iterator

from rag_assets.systems.code_memory.laravel.routes.program import ClassFacts, Program, is_test


def providers_of(program: Program) -> Iterator[str]:
    """Yield the classes: listed providers, then the application's, then those in packages.

    A provider of an application is skipped if the application lists other providers of its own and
    no statement names this one: Laravel's skeleton comes with such a provider.
    """
    names = (name for listed in program.providers.values() for name in listed)
    listed = {name: index for index, name in enumerate(dict.fromkeys(names))}
    found = [
        (listed.get(name, len(listed)), not one.path.startswith("app/"), one.path, name)
        for name, one in program.classes.items()
        if not one.abstract and not is_test(one.path) and _is_provider(program, name)
        if name in listed or name in program.registered or not _is_left_out(program, one)
    ]
    yield from (name for *_, name in sorted(found))


def _is_provider(program: Program, name: str) -> bool:
    *own, last = program.lineage(name)
    return bool(own) and any(
        one not in program.classes and one.rpartition("\\")[2].endswith("Provider")
        for one in (*own, last)
    )


def _is_left_out(program: Program, one: ClassFacts) -> bool:
    """Return whether the application of a class lists other providers of its own."""
    for root, listed in program.providers.items():
        own = f"{root}app/"
        held = (program.classes.get(name) for name in listed)
        if one.path.startswith(own) and any(c and c.path.startswith(own) for c in held):
            return True
    return False
