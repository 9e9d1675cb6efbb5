"""Glossary: an example of a system, with one part of every kind.

A tenant's terms are in a file with one line per term, `term: definition`.
"""

from rag_assets.plugins.system import Migrations, Profile, System

SYSTEM = System(
    name="glossary",
    profile=Profile(
        defaults={
            "chunker": {"chunker": "definition"},
            "embedder": {"provider": "deterministic"},
            "retrieval": {"top_k": 3},
        },
        thresholds={"openai/text-embedding-3-small": 0.6},
        retrieval_steps=(
            *("recall", "verify", "fuse", "score", "read"),
            *("exact_term", "rerank", "budget"),
        ),
    ),
    source_kinds={"terms": "glossary_system.source:TERMS"},
    chunkers={"definition": "glossary_system.chunker:DEFINITION"},
    tables={"glossary_lookups": "glossary_system.tables:LOOKUPS"},
    migrations=Migrations(package="glossary_system.migrations", head="0001"),
    texts=("glossary_lookups.term",),
    assets={"glossary_terms": "glossary_system.definitions:glossary_terms"},
    checks={"chunks.defined_once": "glossary_system.definitions:defined_once"},
    jobs={"count_terms": "glossary_system.definitions:count_all_terms"},
    sensors={"glossary_lookups_sensor": "glossary_system.definitions:glossary_lookups_sensor"},
    schedules={"count_terms_daily": "glossary_system.definitions:count_terms_daily"},
    routers={"/rag/glossary": "glossary_system.routes:router"},
    pages={"/glossary": "glossary_system.pages:routes"},
    commands={"glossary": "glossary_system.commands:app"},
    tools={"glossary_define": "glossary_system.tools:DEFINE"},
    prompts={"glossary_terms": "glossary_system.tools:TERMS"},
    retrieval_steps={"exact_term": "glossary_system.steps:ExactTerm"},
)
