"""The reader of PHP files, including their Laravel facts."""

from __future__ import annotations

from rag_assets.systems.code_memory.languages.php import facts, origins
from rag_assets.systems.code_memory.languages.php.facts import iter_setting_facts, list_units
from rag_assets.systems.code_memory.languages.php.source import PhpSource
from rag_assets.systems.code_memory.laravel import statements
from rag_assets.systems.code_memory.laravel.models import list_model_facts
from rag_assets.systems.code_memory.laravel.policies import iter_guard_facts
from rag_assets.systems.code_memory.laravel.routes import reader as routes
from rag_assets.systems.code_memory.laravel.schema.reader import list_schema_facts
from rag_assets.systems.code_memory.symbols.model import CodeText, sort_facts


def read(text: str) -> CodeText:
    """Return the units and facts of a PHP file."""
    source = PhpSource(text)
    bodies = origins.OriginFinders(source)
    all_facts = (
        *facts.iter_facts(source),
        *statements.iter_facts(source, bodies),
        *origins.iter_origin_facts(source, bodies),
        *list_schema_facts(source),
        *list_model_facts(source),
        *iter_guard_facts(source),
        *routes.iter_facts(source),
        *iter_setting_facts(source),
    )
    notes = ("parts of the file could not be parsed as PHP",) if source.tree.has_errors else ()
    return CodeText(list_units(source), sort_facts(all_facts), notes)
