"""Experience: solutions from past projects, returned to orchestrators of other projects."""

from rag_assets.plugins.system import Migrations, Profile, System

_HERE = "rag_assets.systems.experience"

SYSTEM = System(
    name="experience",
    profile=Profile(
        defaults={
            "sources": [{"name": "experience", "type": "experience"}],
            "chunker": {"chunker": "recursive", "max_tokens": 2_047, "overlap": 0},
            "embedder": {"provider": "openai", "model": "text-embedding-3-small"},
            "retrieval": {"top_k": 5, "mode": "knn"},
            "retention_days": 365,
            # Entries expire after a year and are deleted without confirmation.
            "prune_share": None,
        },
        # The requirement sets the thresholds of its model; benchmarks.experience calibrates the
        # thresholds of the local model. For tasks, no threshold separates answers from near misses:
        # this threshold only excludes unrelated entries (decision 23).
        thresholds_of_uses={
            "task": {
                "openai/text-embedding-3-small": 0.70,
                "local/all-MiniLM-L6-v2": 0.20,
            },
            "failure": {
                "openai/text-embedding-3-small": 0.75,
                "local/all-MiniLM-L6-v2": 0.36,
            },
        },
        calibrates=frozenset({"openai/text-embedding-3-small"}),
        asked_by=frozenset({"orchestrator"}),
        # Entries that may differ are not merged: see differences.py.
        keeps_passages=True,
    ),
    source_kinds={"experience": f"{_HERE}.model:EXPERIENCE"},
    tables={
        "projects": f"{_HERE}.tables:projects",
        "knowledge_staging": f"{_HERE}.tables:knowledge_staging",
        "checkpoints": f"{_HERE}.tables:checkpoints",
        "experience_patterns": f"{_HERE}.tables:experience_patterns",
        "experience_merges": f"{_HERE}.tables:experience_merges",
        "experience_questions": f"{_HERE}.tables:experience_questions",
        "experience_feedback": f"{_HERE}.tables:experience_feedback",
    },
    staged_rows={"knowledge_staging": f"{_HERE}.merges:STAGED_ROWS"},
    texts=(
        *(
            f"knowledge_staging.{name}"
            for name in (
                *("agent_type", "task_type", "technology", "failure_description"),
                *("error_message", "solution_steps", "gate_type", "human_feedback"),
                *("revision_approach", "approved_approach", "when_to_try", "about"),
            )
        ),
        "projects.name",
        "checkpoints.error",
    ),
    migrations=Migrations(package=f"{_HERE}.migrations", head="0001"),
    follow_up=f"{_HERE}.finishing:FOLLOW_UP",
    sensors={"checkpoints": f"{_HERE}.definitions:checkpoints_sensor"},
    panels={"/experience": f"{_HERE}.panel:PANEL"},
    routers={"/rag/experience": f"{_HERE}.routes:router"},
    commands={"experience": f"{_HERE}.commands:app"},
    command_help={"experience": "Solutions from past projects, for later projects."},
    problems={
        "not-verified": f"{_HERE}.errors:NotVerified",
        "entry-differs": f"{_HERE}.errors:EntryDiffers",
        "problems-differ": f"{_HERE}.errors:ProblemsDiffer",
        "unknown-experience": f"{_HERE}.errors:UnknownExperience",
        "no-experience": f"{_HERE}.errors:NoExperience",
    },
    tools={
        "experience_project": f"{_HERE}.tools:PROJECT",
        "experience_checkpoint": f"{_HERE}.tools:CHECKPOINT",
        "experience_checkpoint_progress": f"{_HERE}.tools:CHECKPOINT_PROGRESS",
        "experience_context": f"{_HERE}.tools:CONTEXT",
        "experience_for_task": f"{_HERE}.tools:FOR_TASK",
        "experience_for_failure": f"{_HERE}.tools:FOR_FAILURE",
        "experience_capture": f"{_HERE}.tools:CAPTURE",
        "experience_feedback": f"{_HERE}.tools:FEEDBACK",
    },
)
