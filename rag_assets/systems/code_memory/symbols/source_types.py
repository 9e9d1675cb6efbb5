"""The source types of a repository's documents and chunks."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, get_args

SourceType: TypeAlias = Literal[
    "route",
    "controller",
    "controller_method",
    "model",
    "model_relation",
    "migration",
    "table",
    "service",
    "job",
    "event",
    "listener",
    "policy",
    "middleware",
    "request",
    "resource",
    "config",
    "package",
    "readme",
    "doc",
    "cursor_rule",
    "claude_rule",
    "api_endpoint",
    "run_summary",
    "file_change",
    "known_bug",
    "adr",
    "code",
]

SOURCE_TYPES: Final[tuple[SourceType, ...]] = get_args(SourceType)
