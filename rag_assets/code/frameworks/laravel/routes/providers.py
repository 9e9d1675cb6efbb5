"""The providers of services of a repository, in the order in which they boot."""

from __future__ import annotations

from collections.abc import Iterator

from rag_assets.code.frameworks.laravel.routes.program import ClassFacts, Program, is_test


def providers_of(program: Program) -> Iterator[str]:
    """The classes: as they are listed, then those of the application, then those of packages.

    One of an application that lists its providers, but not this one, does not run, unless
    another one names it: Laravel's own skeleton comes with such a provider.

    Args:
        program: the repository.
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
    """Whether the application that a class belongs to lists others of its own."""
    for root, listed in program.providers.items():
        own = f"{root}app/"
        held = (program.classes.get(name) for name in listed)
        if one.path.startswith(own) and any(c and c.path.startswith(own) for c in held):
            return True
    return False
