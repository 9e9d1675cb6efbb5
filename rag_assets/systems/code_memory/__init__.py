"""Code memory: an agent's memory of a repository."""

from rag_assets.plugins.system import Migrations, Profile, System

_HERE = "rag_assets.systems.code_memory"

SYSTEM = System(
    name="code-memory",
    profile=Profile(
        defaults={
            "chunker": {"chunker": "code", "max_tokens": 1200, "overlap": 200},
            "embedder": {"provider": "openai", "model": "text-embedding-3-large"},
            "retrieval": {"top_k": 12, "mode": "hybrid"},
        },
        # The project description states this threshold for this model. For other models, no known
        # cosine separates answers from passages that are merely similar (decision 17).
        thresholds={"openai/text-embedding-3-large": 0.25},
        retrieval_steps=(
            *(
                "walk",
                "recall",
                "expand",
                "verify",
                "quote",
                "fuse",
                "score",
                "spread",
                "read",
                "join",
            ),
            *("rerank", "gather", "budget"),
        ),
        requires_project=True,
        sources_beside=(
            f"{_HERE}.sources.records:build_derived_config",
            f"{_HERE}.sources.records:build_runs_config",
        ),
        share_of_window=0.4,
    ),
    routers={
        "/api/projects/{id}/relations": f"{_HERE}.routes:router",
        "/api/projects/{id}/runs": f"{_HERE}.run_routes:router",
        "/api/projects/{id}/runs/{run}/events": f"{_HERE}.run_routes:receiving",
    },
    panels={"/code": f"{_HERE}.panel.pages:PANEL"},
    tables={
        "code_runs": f"{_HERE}.catalog.tables:code_runs",
        "code_run_events": f"{_HERE}.catalog.tables:code_run_events",
        "derivations": f"{_HERE}.catalog.tables:derivations",
        "document_kinds": f"{_HERE}.catalog.tables:document_kinds",
        "edges": f"{_HERE}.catalog.tables:edges",
        "name_uses": f"{_HERE}.catalog.tables:name_uses",
        "relation_change_totals": f"{_HERE}.catalog.tables:relation_change_totals",
        "relation_changes": f"{_HERE}.catalog.tables:relation_changes",
        "symbols": f"{_HERE}.catalog.tables:symbols",
    },
    service_rights={
        # Runs write these tables, not the service.
        **dict.fromkeys(("derivations", "document_kinds"), ""),
        # The service deletes names together with their document.
        **dict.fromkeys(("edges", "name_uses", "symbols"), "DELETE"),
    },
    migrations=Migrations(package=f"{_HERE}.migrations", head="0001"),
    source_kinds={
        "derived": f"{_HERE}.sources.records:DERIVED",
        "git": f"{_HERE}.sources.git:GIT",
        "runs": f"{_HERE}.sources.records:RUNS",
    },
    tenant_settings={"frameworks": f"{_HERE}.frameworks.definitions:Framework"},
    chunkers={"code": f"{_HERE}.chunker:CODE"},
    fact_stores={"code": f"{_HERE}.pipeline.fact_store:FACTS"},
    question_readers={"code": f"{_HERE}.retrieval.questions:QUESTIONS"},
    retrieval_steps={
        "walk": f"{_HERE}.retrieval.steps.walk:WalkStep",
        "expand": f"{_HERE}.retrieval.steps.expand:ExpandStep",
        "quote": f"{_HERE}.retrieval.steps.quote:QuoteStep",
        "spread": f"{_HERE}.retrieval.steps.spread:SpreadStep",
    },
    assets={"relations": f"{_HERE}.definitions:relations"},
    checks={"search_index.relations": f"{_HERE}.definitions:relations_check"},
    run_reports={"relations": f"{_HERE}.definitions:relations_report"},
    problems={"no-code-memory": f"{_HERE}.errors:NoCodeMemory"},
    tools={
        "code_search": f"{_HERE}.tools:CODE_SEARCH",
        "who_serves": f"{_HERE}.tools:WHO_SERVES",
        "what_touches": f"{_HERE}.tools:WHAT_TOUCHES",
        "impact_of": f"{_HERE}.tools:IMPACT_OF",
        "tests_of": f"{_HERE}.tools:TESTS_OF",
        "outline": f"{_HERE}.tools:OUTLINE",
        "history_of": f"{_HERE}.tools:HISTORY_OF",
        "rules_for": f"{_HERE}.tools:RULES_FOR",
    },
    commands={
        "code": f"{_HERE}.commands:app",
        "hook": f"{_HERE}.commands:hook_app",
    },
    command_help={
        "code": "Relations and symbols in a repository's code.",
        "hook": "Git hooks that start a sync after each commit.",
    },
)
