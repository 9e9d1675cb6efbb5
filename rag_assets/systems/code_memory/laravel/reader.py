"""Read a PHP file, including its Laravel facts."""

from __future__ import annotations

from rag_assets.systems.code_memory.languages.php import facts, origins
from rag_assets.systems.code_memory.languages.php.facts import list_setting_facts, list_units
from rag_assets.systems.code_memory.languages.php.source import PhpSource
from rag_assets.systems.code_memory.laravel import statements
from rag_assets.systems.code_memory.laravel.models import model_facts
from rag_assets.systems.code_memory.laravel.policies import guard_facts
from rag_assets.systems.code_memory.laravel.routes import reader as routes
from rag_assets.systems.code_memory.laravel.schema.reader import schema_facts
from rag_assets.systems.code_memory.symbols.model import CodeText


def read(text: str) -> CodeText:
    """Return the units and facts of a PHP file."""
    source = PhpSource(text)
    bodies = origins.OriginFinders(source)
    found = [*facts.list_facts(source), *statements.list_facts(source, bodies)]
    found += origins.origin_facts(source, bodies)
    found += schema_facts(source)
    found += model_facts(source)
    found += guard_facts(source)
    found += routes.list_facts(source)
    found += list_setting_facts(source)
    notes = ("parts of the file could not be parsed as PHP",) if source.tree.has_errors else ()
    found.sort(key=lambda fact: (fact.start, fact.end))
    return CodeText(list_units(source), tuple(found), notes)
