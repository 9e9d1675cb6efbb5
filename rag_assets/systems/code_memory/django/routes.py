"""The routes of a repository's URL configurations, in the order of Django's resolver."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rag_assets.systems.code_memory.django.program import Program
from rag_assets.systems.code_memory.django.routing import Routes
from rag_assets.systems.code_memory.django.urlconf import Prefix, UrlWalk
from rag_assets.systems.code_memory.symbols.model import FileFacts


def routes_of(files: Iterable[FileFacts], root: str = "") -> Routes:
    """Return the routes of a repository.

    Args:
        files: the files of the repository.
        root: module of the outermost URL configuration; by default the modules that settings name,
            or else the modules that no other module includes.
    """
    program = Program(files)
    walk = UrlWalk(program)
    roots = [root] if root else list(_roots(program))
    for name in roots:
        module = program.module(name)
        if module is not None:
            walk.module(module, Prefix())
    return Routes(tuple(walk.routes), tuple(dict.fromkeys(walk.unresolved)))


def _roots(program: Program) -> Iterator[str]:
    named = []
    for module in program:
        value = module.constant("", "ROOT_URLCONF")
        if isinstance(value, str) and program.module(value) is not None:
            named.append(value)
    if named:
        yield from dict.fromkeys(named)
        return
    lists = {m.name: m for m in program if m.values("", "urlpatterns")}
    included: set[str] = set()
    for module in lists.values():
        walk = UrlWalk(program)
        walk.module(module, Prefix())
        included |= walk.entered - {module.name}
    yield from (name for name in lists if name not in included)
