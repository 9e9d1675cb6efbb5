"""The derived documents of a repository, for all frameworks that its files use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rag_assets.systems.code_memory.derived import by_data, django, laravel
from rag_assets.systems.code_memory.derived.labels import speaks_of_django
from rag_assets.systems.code_memory.derived.model import Derivation, DerivedDocument
from rag_assets.systems.code_memory.derived.requested_routes import with_tests
from rag_assets.systems.code_memory.frameworks.definitions import all_frameworks
from rag_assets.systems.code_memory.symbols.model import FileFacts


def derived_documents(files: Sequence[FileFacts], own: str = "") -> Derivation:
    """Return the routes and tables derived from all these files together, without duplicates.

    Args:
        files: the files of one repository, all readable by the same callers.
        own: frameworks of the tenant; see all_frameworks.
    """
    frameworks = all_frameworks(own)
    found = [derive(files) for derive in _interpreters(files)]
    found.append(by_data.derive(files, frameworks))
    documents: dict[str, DerivedDocument] = {}
    for one in found:
        for document in one.documents:
            documents.setdefault(document.name, document)
    documents, cut = with_tests(documents, files, frameworks)
    unresolved = (why for one in found for why in one.unresolved)
    return Derivation(tuple(documents.values()), (*unresolved, *cut))


def _interpreters(files: Sequence[FileFacts]) -> Iterator[laravel.Derive]:
    is_php = any(one.language == "php" for one in files)
    if is_php and any(map(laravel.speaks_of_laravel, files)):
        yield laravel.derive
    python = [one for one in files if one.language == "python"]
    if any(map(speaks_of_django, python)):
        yield django.derive
