"""The derived documents and source types of a repository, for all frameworks that its files use.

A file shows by *signs* which frameworks its repository uses. The signs of all files together
determine which languages the derivation reads: files in other languages change nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.derived import by_data, django, laravel
from rag_assets.systems.code_memory.derived.model import Derivation, DerivedDocument
from rag_assets.systems.code_memory.derived.operations import OPERATION, derive_operations
from rag_assets.systems.code_memory.derived.requested_routes import add_tests_to_routes
from rag_assets.systems.code_memory.django.kinds import find_source_types as django_kinds
from rag_assets.systems.code_memory.frameworks.definitions import Framework, all_frameworks
from rag_assets.systems.code_memory.frameworks.routes import page_route
from rag_assets.systems.code_memory.frameworks.statements import FOUND, GRAMMARS, STATEMENTS
from rag_assets.systems.code_memory.laravel import classes as laravel_classes
from rag_assets.systems.code_memory.relations.edge_rules import EVENTS
from rag_assets.systems.code_memory.symbols.model import USES, FileFacts
from rag_assets.systems.code_memory.symbols.source_types import SourceType

SIGN_KINDS: Final = laravel.SIGN_KINDS | {FOUND, OPERATION, "imports"}
"""Kinds of the facts that signs_of reads."""
_LARAVEL: Final = "interpreter of Laravel"
_DJANGO: Final = "interpreter of Django"
_OPERATIONS: Final = "API description"
"""Signs for the interpreters; all other signs are names of frameworks, which contain no blank."""
_DJANGO_PACKAGES: Final = frozenset({"django", "rest_framework"})
"""Packages that only Django projects import."""

LABELLED: Final = frozenset({"php", "python", *GRAMMARS})
"""Languages with definitions or statements that frameworks interpret."""
READ_KINDS: Final = laravel_classes.READ_KINDS
"""Kinds of the facts that decide source types in PHP."""
_DECIDES_NOTHING: Final = frozenset({"calls", USES, FOUND, *EVENTS, *STATEMENTS})
"""Kinds of facts that do not influence the source type of any definition."""


def list_signs(file: FileFacts, own: str = "") -> set[str]:
    """Return the signs of a file: the frameworks and interpreters that its repository may use.

    Args:
        file: the file, with at least the facts of SIGN_KINDS.
    """
    found = {name for fact in file.facts if fact.kind == FOUND for name in fact.values["names"]}
    if laravel.speaks_of_laravel(file):
        found.add(_LARAVEL)
    if speaks_of_django(file):
        found.add(_DJANGO)
    if any(fact.kind == OPERATION for fact in file.facts):
        found.add(_OPERATIONS)
    for framework in _list_unmarked_frameworks(file.language, own):
        paths = (page_route(one, file.path) for one in framework.pages)
        if _reads_facts(framework) or any(path is not None for path in paths):
            found.add(framework.name)
    return found


@lru_cache(maxsize=128)
def languages_read(signs: frozenset[str], own: str = "") -> frozenset[str] | None:
    """Return the languages of the files that derived_documents reads; None for all files.

    Without the files in other languages, the derived documents are the same. The languages for two
    sets of signs are the languages for their union.

    Args:
        signs: the signs of all files of a repository.
    """
    if _LARAVEL in signs or _OPERATIONS in signs:
        return None  # Both need definitions in any language.
    frameworks = all_frameworks(own)
    used = [o for o in frameworks if o.name in signs and (o.pages or _reads_facts(o))]
    languages = {language for one in used for language in one.languages}
    if _DJANGO in signs:
        languages.add("python")
    if _DJANGO in signs or any(one.routes or one.resources or one.pages for one in used):
        # Requests in tests are matched with routes.
        languages.update(language for o in frameworks if o.requests for language in o.languages)
    return frozenset(languages)


def is_of_django(signs: frozenset[str]) -> bool:
    """Return whether a repository with these signs is read by the interpreter of Django."""
    return _DJANGO in signs


@lru_cache(maxsize=128)
def _list_unmarked_frameworks(language: str, own: str) -> tuple[Framework, ...]:
    """Return the frameworks of a language that apply without a marker in a file."""
    return tuple(o for o in all_frameworks(own) if language in o.languages and not o.markers)


def _reads_facts(framework: Framework) -> bool:
    """Return whether routes or tables follow from a framework's data and the facts of files."""
    rules = framework.routes, framework.resources, framework.tables, framework.changes
    return any(map(bool, rules))


def derived_documents(files: Sequence[FileFacts], own: str = "") -> Derivation:
    """Derive routes and tables from all these files together, without duplicates.

    Args:
        files: the files of one repository, all readable by the same callers.
    """
    frameworks = all_frameworks(own)
    found: list[Derivation] = []
    is_php = any(one.language == "php" for one in files)
    if is_php and any(map(laravel.speaks_of_laravel, files)):
        found.append(laravel.derive(files))
    if any(map(speaks_of_django, files)):
        found.append(django.derive(files))
    found.append(by_data.derive(files, frameworks))
    documents: dict[str, DerivedDocument] = {}
    for one in found:
        for document in one.documents:
            documents.setdefault(document.name, document)
    for document in [*derive_operations(files, documents.values())]:
        documents.setdefault(document.name, document)
    documents, cut = add_tests_to_routes(documents, files, frameworks)
    unresolved = (why for one in found for why in one.unresolved)
    return Derivation(tuple(documents.values()), (*unresolved, *cut))


def keep_deciding(facts: Sequence[Fact], language: str) -> tuple[Fact, ...]:
    """Return the facts of a file that kinds_of reads unless the repository uses Django."""
    return tuple(filter(laravel_classes.is_read_fact, facts)) if language == "php" else ()


def list_deciding_facts(facts: Sequence[Fact], language: str) -> list[object]:
    """Return the facts of a file that determine source types, in a comparable form.

    If two results are equal, the source types are equal too, in this file and in others.
    """
    if language == "php":
        return laravel_classes.select_read_facts(facts)
    # Django's views, models and routes depend on nearly all facts of a module.
    return [
        (fact.kind, fact.symbol, fact.values)
        for fact in facts
        if language == "python" and fact.kind not in _DECIDES_NOTHING
    ]


def find_source_types(files: Sequence[FileFacts]) -> Mapping[tuple[str, str], SourceType]:
    """Return the source type of each definition that has one, by path and qualified name."""
    php = [one for one in files if one.language == "php"]
    python = [one for one in files if one.language == "python"]
    found = dict(laravel_classes.find_source_types(php)) if php else {}
    if any(map(speaks_of_django, python)):
        found |= django_kinds(python)
    return found


def speaks_of_django(one: FileFacts) -> bool:
    """Return whether a Python file imports from Django or Django REST framework."""
    return one.language == "python" and any(
        fact.kind == "imports" and str(fact.values["name"]).partition(".")[0] in _DJANGO_PACKAGES
        for fact in one.facts
    )
