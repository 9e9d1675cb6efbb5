"""The reader of PHP files, including their Laravel facts."""

from __future__ import annotations

from rag_assets.systems.code_memory.languages.php import facts, origins
from rag_assets.systems.code_memory.languages.php.facts import list_setting_facts, list_units
from rag_assets.systems.code_memory.languages.php.source import PhpSource
from rag_assets.systems.code_memory.laravel import statements
from rag_assets.systems.code_memory.laravel.models import list_model_facts
from rag_assets.systems.code_memory.laravel.policies import iter_guard_facts
from rag_assets.systems.code_memory.laravel.routes import reader as routes
from rag_assets.systems.code_memory.laravel.schema.reader import list_schema_facts
from rag_assets.systems.code_memory.symbols.model import CodeText


def read(text: str) -> CodeText:
    """Return the units and facts of a PHP file."""
    source = PhpSource(text)
    bodies = origins.OriginFinders(source)
    all_facts = [*facts.list_facts(source), *statements.list_facts(source, bodies)]
    all_facts += origins.origin_facts(source, bodies)
    all_facts += list_schema_facts(source)
    all_facts += list_model_facts(source)
    all_facts += iter_guard_facts(source)
    all_facts += routes.list_facts(source)
    all_facts += list_setting_facts(source)
    notes = ("parts of the file could not be parsed as PHP",) if source.tree.has_errors else ()
    all_facts.sort(key=lambda fact: (fact.start, fact.end))
    return CodeText(list_units(source), tuple(all_facts), notes)
