"""Measure how soon an edit that an agent's run reports is searchable, with daemon and watcher.

    python -m benchmarks.reported_to_searchable [--trials N] [--hook]

A file of the example application is edited and committed; then an event of a run names it, or with
`--hook` Git's hook runs alone. The edit counts as searchable once a search finds its own word and,
with an event, also the event's word.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from pathlib import Path

import pygit2

from benchmarks.code_memory import TENANT, commit_all
from benchmarks.measure import PROJECT, create_parser, describe_machine, report_result
from benchmarks.saved_to_searchable import Probe, run_stack, summarize_latencies, wait_for
from benchmarks.servers import benchmark_servers, write_tenants_file
from rag_assets.cli.session import Session
from rag_assets.common.settings import Settings
from rag_assets.systems.code_memory.hooks import install_hooks
from rag_assets.systems.code_memory.runs import Run, RunEvent, Runs
from rag_assets.tenants.model import Tenant

WORK = PROJECT / ".local" / "benchmark-reported"
RUN = "benchmark"


def main() -> None:
    """Measure and save the result."""
    parser = create_parser(__doc__)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument(
        "--hook", action="store_true", help="let Git's hook report the edit, without an event"
    )
    parser.add_argument("--repository", type=Path, default=PROJECT / "examples" / "laravel")
    options = parser.parse_args()
    before = describe_machine()
    home = WORK / "home"
    root = make_installation(home, options.repository)
    with benchmark_servers(WORK) as servers:
        servers.use_home(home, "reported")
        with run_stack():
            results = run_trials(root, options.trials, hook=options.hook)
    figures = {"told by": "a hook" if options.hook else "an event", **results}
    print(json.dumps(figures, indent=1))
    report_result(
        "told-to-searchable" + ("-hook" if options.hook else ""),
        "told to searchable",
        before,
        figures,
    )


def make_installation(home: Path, repository: Path) -> Path:
    """Make an installation with one tenant that reads a branch; return its repository."""
    shutil.rmtree(home, ignore_errors=True)
    root = home / "repository"
    shutil.copytree(repository, root)
    pygit2.init_repository(str(root), initial_head="main")
    commit_all(root)
    tenant = {
        "id": TENANT,
        "profile": "code-memory",
        "organization": "benchmark",
        "project": TENANT,
        "embedder": {"provider": "local"},
        "sources": [{"name": "repo", "type": "git", "root": str(root), "ref": "HEAD"}],
    }
    write_tenants_file(home, [tenant])
    return root


def run_trials(root: Path, count: int, *, hook: bool) -> dict[str, object]:
    """Commit edits one after another, report each, and wait until it is found."""
    probe = Probe()
    wait_for(probe.is_idle)
    if hook:
        install_hooks(Settings.from_environment().local, TENANT, root)
    edited = next(iter(sorted(root.glob("app/**/*.php"))))
    text = edited.read_text()
    seconds = []
    with Session() as session:
        record = session.catalog.tenants.get(TENANT)
        runs = Runs(session.catalog.database)
        runs.put(record.ref, Run(RUN), by="a benchmark")
        tenant = Tenant.from_config(record.config)
        for number in range(count):
            word, event_word = f"zanzibar{number}x", f"mombasa{number}x"
            edited.write_text(f"{text}\n// {word}\n")
            commit_all(root)
            reported_at = time.monotonic()
            if hook:
                subprocess.run([str(root / ".git" / "hooks" / "post-commit")], check=True)
                words = [word]
            else:
                event = RunEvent.model_validate(
                    {
                        "id": f"e{number}",
                        "kind": "file_updated",
                        "path": str(edited.relative_to(root)),
                        "action": "edit",
                        "summary": f"The word is {event_word}.",
                    }
                )
                runs.receive(record.ref, tenant, RUN, [event])
                words = [word, event_word]
            wait_for(
                lambda words=words: all(probe.is_found(TENANT, one) for one in words), pause=0.1
            )
            seconds.append(time.monotonic() - reported_at)
            print(f"{seconds[-1]:6.2f} s", flush=True)
            time.sleep(2)
    return {"trials": count, **summarize_latencies(seconds)}


if __name__ == "__main__":
    main()
