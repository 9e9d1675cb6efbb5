"""Team guidelines: documents of a project's team, for the prompts of its application."""

from rag_assets.plugins.system import Migrations, Profile, System

_ROUTES = "rag_assets.systems.team_guidelines.routes"

SYSTEM = System(
    name="team-guidelines",
    profile=Profile(
        defaults={
            "sources": [
                {
                    "name": "guidelines",
                    "type": "uploads",
                    "max_documents": 1_000,
                    "max_total_bytes": 5 * 1024**3,
                    "media_types": [
                        "application/pdf",
                        "text/markdown",
                        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
                    ],
                }
            ],
            "chunker": {"chunker": "recursive", "max_tokens": 512, "overlap": 64},
            "embedder": {"provider": "auto"},
            "retrieval": {"top_k": 5, "mode": "knn"},
        },
        # The description's figure for models over the network; the local one's is measured by
        # benchmarks.guidelines_threshold (decision 0083).
        thresholds={
            "openai/text-embedding-3-small": 0.75,
            "gemini/gemini-embedding-001": 0.75,
            "gemini/gemini-embedding-2": 0.75,
            "gemini/text-embedding-004": 0.75,
            "local/all-MiniLM-L6-v2": 0.20,
        },
        calibrates=frozenset(
            {
                "openai/text-embedding-3-small",
                *("gemini/gemini-embedding-001", "gemini/gemini-embedding-2"),
                "gemini/text-embedding-004",
            }
        ),
        requires_project=True,
        projects_over_api=True,
        follows_guidelines=True,
    ),
    panels={"/guidelines": "rag_assets.systems.team_guidelines.panel.pages:PANEL"},
    # In the order of their names: what is called {…} would answer for others.
    routers={
        "/api/organizations, /api/projects": f"{_ROUTES}.projects:projects",
        "/api/…/keys": f"{_ROUTES}.keys:keys",
        "/api/projects/{id}/guidelines/context": f"{_ROUTES}.context:prompting",
        "/api/projects/{id}/guidelines/text": f"{_ROUTES}.context:texts",
        "/api/projects/{id}/guidelines/upload": f"{_ROUTES}.upload:uploading",
        "/api/projects/{id}/guidelines/{documentId}": f"{_ROUTES}.documents:documents",
    },
    tables={
        "guideline_texts": "rag_assets.systems.team_guidelines.tables:guideline_texts",
        "guideline_rules": "rag_assets.systems.team_guidelines.tables:guideline_rules",
    },
    migrations=Migrations(package="rag_assets.systems.team_guidelines.migrations", head="0002"),
    texts=("guideline_texts.text", "guideline_rules.paths"),
    follow_up="rag_assets.systems.team_guidelines.rules:FOLLOW_UP",
    commands={"guidelines": "rag_assets.systems.team_guidelines.commands:app"},
    prompts={"team_guidelines": "rag_assets.systems.team_guidelines.prompts:TEAM_GUIDELINES"},
)
