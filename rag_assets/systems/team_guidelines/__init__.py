"""Team guidelines: documents of a team, whose passages an application puts into prompts."""

from rag_assets.plugins.system import Migrations, Profile, System

_HERE = "rag_assets.systems.team_guidelines"

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
        # The requirement sets the threshold of remote models; benchmarks.guidelines_threshold
        # measured the threshold of the local model (decision 24).
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
        opt_in_problem="feature-off",
    ),
    panels={"/guidelines": f"{_HERE}.panel:PANEL"},
    # Routers are added in the order of their names, so a router with {…} in its path must come
    # last.
    routers={
        "/api/organizations, /api/projects": f"{_HERE}.routes:projects",
        "/api/…/keys": f"{_HERE}.routes:keys",
        "/api/projects/{id}/guidelines/context": f"{_HERE}.document_routes:prompting",
        "/api/projects/{id}/guidelines/text": f"{_HERE}.document_routes:texts",
        "/api/projects/{id}/guidelines/upload": f"{_HERE}.document_routes:uploading",
        "/api/projects/{id}/guidelines/{documentId}": f"{_HERE}.document_routes:documents",
    },
    tables={
        "guideline_texts": f"{_HERE}.tables:guideline_texts",
        "guideline_rules": f"{_HERE}.tables:guideline_rules",
    },
    migrations=Migrations(package=f"{_HERE}.migrations", head="0002"),
    texts=("guideline_texts.text", "guideline_rules.paths"),
    follow_up=f"{_HERE}.texts:FOLLOW_UP",
    commands={"guidelines": f"{_HERE}.commands:app"},
    command_help={"guidelines": "Guidelines of a team's projects, for prompts."},
    problems={
        "feature-off": f"{_HERE}.errors:GuidelinesOff",
        "text-refused": f"{_HERE}.errors:TextRefused",
        "version-missing": f"{_HERE}.errors:VersionMissing",
    },
    prompts={"team_guidelines": f"{_HERE}.contexts:TEAM_GUIDELINES"},
    prompt_headings=("Team Guidelines",),
)
