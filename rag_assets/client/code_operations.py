"""The operations of code memory, for runs of agents in a project's repositories.

Every operation takes `project`, the id of the project in the application. It may be left out if the
client was created with a project.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rag_assets.api.run_responses import (
    CodeRun,
    IndexedProject,
    InvalidatedFiles,
    ReceivedEvents,
    RetrievedChunks,
)
from rag_assets.client.calls import Call

_PROJECT = "/api/projects/{id}"
_RUN = f"{_PROJECT}/runs/{{run}}"


def put_run(
    run: str, *, rag_enabled: bool = True, model: str | None = None, project: str | None = None
) -> Call[CodeRun]:
    """Create a run of an agent, or change its settings.

    Args:
        run: id of the run.
        rag_enabled: whether the run gets passages.
        model: language model that the run prompts; passages fill a share of its context window.
    """
    body: dict[str, Any] = {"metadata_json": {"rag_enabled": rag_enabled}}
    if model is not None:
        body["model"] = model
    return Call(
        "PUT", _RUN, CodeRun, named=_path_names(project, run=run), body=body, of_project=True
    )


def record_run_events(
    run: str, events: Iterable[Mapping[str, Any]], *, project: str | None = None
) -> Call[ReceivedEvents]:
    """Record the events of a run, all or none.

    Events with known ids are ignored, so they may be sent again.

    Args:
        run: id of the run.
        events: the events, each with the fields id, kind, path, action, summary, at that the
            OpenAPI description defines.
    """
    lines = "".join(json.dumps(dict(event)) + "\n" for event in events)
    return Call(
        "POST",
        f"{_RUN}/events",
        ReceivedEvents,
        named=_path_names(project, run=run),
        lines=lines,
        of_project=True,
    )


def retrieve(
    query: str,
    *,
    run: str | None = None,
    options: Mapping[str, Any] | None = None,
    project: str | None = None,
) -> Call[RetrievedChunks]:
    """Find the passages of a project's repositories for a prompt.

    Args:
        query: search text.
        run: id of the run; it gets no passages if they are switched off for the run.
        options: any of top_k, source_types, must_include_paths, route_name, controller_class,
            table_name, include_run_summaries, min_score.
    """
    body: dict[str, Any] = {"query": query}
    if run is not None:
        body["run"] = run
    if options is not None:
        body["options"] = dict(options)
    return Call(
        "POST",
        f"{_PROJECT}/retrieve",
        RetrievedChunks,
        named=_path_names(project),
        body=body,
        of_project=True,
    )


def index_file(path: str, *, project: str | None = None) -> Call[IndexedProject]:
    """Read and index a file again; a new file becomes searchable soon. For admins.

    Args:
        path: path within the repository, or the path that hits contain.
    """
    return _index(project, [path])


def reindex_project(*, project: str | None = None) -> Call[IndexedProject]:
    """Read and index a whole project again; existing embeddings are reused. For admins."""
    return _index(project, None)


def invalidate(path: str, *, project: str | None = None) -> Call[InvalidatedFiles]:
    """Remove a file from the index; it is indexed again when it changes. For admins.

    Args:
        path: path within the repository, or the path that hits contain.
    """
    return Call(
        "POST",
        f"{_PROJECT}/invalidate",
        InvalidatedFiles,
        named=_path_names(project),
        body={"paths": [path]},
        of_project=True,
    )


def _index(project: str | None, paths: Sequence[str] | None) -> Call[IndexedProject]:
    return Call(
        "POST",
        f"{_PROJECT}/index-rag",
        IndexedProject,
        named=_path_names(project),
        body=None if paths is None else {"paths": list(paths)},
        of_project=True,
        repeatable=False,
    )


def _path_names(project: str | None, **names: str) -> dict[str, str]:
    return names if project is None else {"id": project, **names}
