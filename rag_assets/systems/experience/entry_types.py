"""What belongs to each type of entry, as rules and as the description of the endpoints says it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag_assets.api.experience_responses import EntryType

FIELDS: Mapping[EntryType, tuple[str, ...]] = {
    "failure_solution": (
        *("failure_description", "error_message", "solution_steps", "success_verified"),
    ),
    "gate_rejection": ("gate_type", "human_feedback", "revision_approach"),
    "gate_approval": ("gate_type", "approved_approach"),
}
"""The fields that a type has of its own; those of other types are left out."""
NEEDED: Mapping[EntryType, tuple[str, ...]] = {
    "failure_solution": ("agent_type", "failure_description"),
    "gate_rejection": ("gate_type", "human_feedback", "revision_approach"),
    "gate_approval": ("gate_type", "approved_approach"),
}
"""The fields that an entry must have to be valid; a failure must be verified besides."""
OF_ANY_TYPE = frozenset(name for names in FIELDS.values() for name in names)

_TEXT = {"type": "string"}
_NULL = {"type": "null"}


def describe_entry(schema: dict[str, Any]) -> None:
    """Add what belongs to each type to the schema of an entry."""
    schema["oneOf"] = [_of_type(entry_type) for entry_type in FIELDS]


def describe_checkpoint(schema: dict[str, Any]) -> None:
    """Add to the schema of a checkpoint that only a manual one may be of all projects."""
    schema["anyOf"] = [
        {"properties": {"checkpoint_type": {"const": "manual"}}},
        {"properties": {"project_id": _TEXT}, "required": ["project_id"]},
    ]


def describe_retraction(schema: dict[str, Any]) -> None:
    """Add to the schema of a retraction that it names a project or a token, and not both."""
    schema["oneOf"] = [
        {"properties": {"project_id": _TEXT, "token": _NULL}, "required": ["project_id"]},
        {"properties": {"project_id": _NULL, "token": _TEXT}, "required": ["token"]},
    ]


def _of_type(entry_type: EntryType) -> dict[str, Any]:
    others = sorted(OF_ANY_TYPE.difference(FIELDS[entry_type]))
    properties: dict[str, Any] = {"entry_type": {"const": entry_type}}
    properties |= dict.fromkeys(NEEDED[entry_type], _TEXT) | dict.fromkeys(others, _NULL)
    if entry_type == "failure_solution":
        properties |= {"solution_steps": _TEXT, "success_verified": {"const": True}}
    needed = [name for name, of in properties.items() if of is not _NULL]
    return {"title": entry_type, "properties": properties, "required": needed}
