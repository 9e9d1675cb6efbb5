"""The operations of code memory, for runs of agents in a project's repositories.

Every operation takes `project`, the id of the project in the application. It may be omitted if the
client was created with a project.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from rag_assets.api.run_responses import (
    CodeRun,
    IndexedProject,
    InvalidatedFiles,
    ReceivedEvents,
    RetrievedChunks,
)
from rag_assets.client.calls import drop_empty, join_lines, operation

_PROJECT = "/api/projects/{id}"
_RUN = f"{_PROJECT}/runs/{{run}}"
_operation = partial(operation, of_project=True)


@_operation("PUT", _RUN, CodeRun)
def put_run(
    run: str, *, rag_enabled: bool = True, model: str | None = None, project: str | None = None
) -> dict[str, Any]:
    """Create a run of an agent, or change its settings.

    Args:
        rag_enabled: whether the run gets passages.
        model: language model that the run prompts; passages fill a share of its context window.
    """
    return {"body": drop_empty({"metadata_json": {"rag_enabled": rag_enabled}, "model": model})}


@_operation("POST", f"{_RUN}/events", ReceivedEvents)
def record_run_events(
    run: str, events: Iterable[Mapping[str, Any]], *, project: str | None = None
) -> dict[str, Any]:
    """Record the events of a run, all or none.

    Events with known ids are ignored, so they may be sent again.

    Args:
        events: the events, each with the fields id, kind, path, action, summary, at that the
            OpenAPI description defines.
    """
    return {"lines": join_lines(events)}


@_operation("POST", f"{_PROJECT}/retrieve", RetrievedChunks)
def retrieve(
    query: str,
    *,
    run: str | None = None,
    options: Mapping[str, Any] | None = None,
    project: str | None = None,
) -> None:
    """Find the passages of a project's repositories for a prompt.

    Args:
        run: id of the run; it gets no passages if they are switched off for the run.
        options: any of top_k, source_types, must_include_paths, route_name, controller_class,
            table_name, include_run_summaries, min_score.
    """


@_operation("POST", f"{_PROJECT}/index-rag", IndexedProject, repeatable=False)
def index_file(path: str, *, project: str | None = None) -> dict[str, Any]:
    """Read and index a file again; a new file becomes searchable soon. For admins.

    Args:
        path: path within the repository, or the path that hits contain.
    """
    return {"body": {"paths": [path]}}


@_operation("POST", f"{_PROJECT}/index-rag", IndexedProject, repeatable=False)
def reindex_project(*, project: str | None = None) -> dict[str, Any]:
    """Read and index a whole project again; existing embeddings are reused. For admins."""
    return {"body": None}


@_operation("POST", f"{_PROJECT}/invalidate", InvalidatedFiles)
def invalidate(path: str, *, project: str | None = None) -> dict[str, Any]:
    """Remove a file from the index; it is indexed again when it changes. For admins.

    Args:
        path: path within the repository, or the path that hits contain.
    """
    return {"body": {"paths": [path]}}
