"""Everyday steps: sources, configurations, tokens, erasures and jobs."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial

import dagster as dg
import psycopg

from rag_assets.cli.runs import get_repository
from tests.e2e.operators.model import Operated
from tests.e2e.operators.walk import Walk, step
from tests.e2e.operators.world import label_of

# -- sources


@step(10)
def edit_files(walk: Walk, operated: Operated) -> None:
    tenant_id = walk.tenant(operated)
    for _ in range(walk.random.randint(1, 3)):
        files = sorted(operated.tenants[tenant_id].files)
        if len(files) > 2 and walk.chance(0.3):
            operated.delete_file(tenant_id, walk.random.choice(files))
        elif files and walk.chance(0.4):
            operated.write(tenant_id, walk.random.choice(files))
        else:
            operated.write(tenant_id, walk.world.new_name("file") + ".md")
    if walk.chance(0.7):
        operated.settle(tenant_id)


@step(6)
def upload_files(walk: Walk, operated: Operated) -> None:
    tenant_id = walk.tenant(operated)
    uploads = sorted(operated.tenants[tenant_id].uploads)
    if uploads and walk.chance(0.3):
        id_ = walk.random.choice(uploads)
        operated.done("uploads", "delete", tenant_id, id_)
        tenant = operated.tenants[tenant_id]
        tenant.deleted.add(tenant.uploads.pop(id_))
    replaces = walk.random.choice(uploads) if uploads and walk.chance(0.4) else None
    if replaces in operated.tenants[tenant_id].uploads or replaces is None:
        operated.upload(tenant_id, walk.world.new_word(), replaces=replaces)
    if walk.chance(0.5):
        operated.settle(tenant_id)


@step(4)
def push_records(walk: Walk, operated: Operated) -> None:
    tenant_id = walk.tenant(operated)
    operated.push(tenant_id, walk.random.choice(["page", "letter", "plan"]))
    if walk.chance(0.5):
        operated.settle(tenant_id)


@step(2)
def change_chunker(walk: Walk, operated: Operated) -> None:
    """Change the chunker, which starts a new build; the serving one stays for a week."""
    tenant_id = walk.tenant(operated)
    tokens = walk.random.randint(50, 400)
    operated.configure(
        tenant_id, chunker={"chunker": "heading", "max_tokens": tokens, "overlap": 0}
    )
    operated.settle(tenant_id)


@step(2)
def disable_tenant(walk: Walk, operated: Operated) -> None:
    """Disable a tenant for a while: searches fail, and no data is lost."""
    tenant_id = walk.tenant(operated)
    operated.settle(tenant_id)
    operated.done("tenants", "disable", tenant_id)
    assert "tenants enable" in operated.refused("sync", tenant_id)
    if walk.chance(0.3):
        operated.persist("compact")
    operated.done("tenants", "enable", tenant_id)
    operated.settle(tenant_id)


@step(3)
def change_tokens(walk: Walk, operated: Operated) -> None:
    tenant_id = walk.tenant(operated)
    operated.done("tokens", "create", tenant_id)
    valid = [one["token_id"] for one in operated.done("tokens", "list", tenant_id)["tokens"]]
    revoked = walk.random.choice(valid)
    operated.done("tokens", "revoke", tenant_id, revoked)
    operated.revoked.add(revoked)


@step(4)
def sync_all(walk: Walk, operated: Operated) -> None:
    operated.persist("sync", "--all", *(["--repair"] if walk.chance(0.3) else []))


# -- erasures


@step(6)
def purge(walk: Walk, operated: Operated) -> None:
    tenant_id = walk.tenant(operated)
    operated.settle(tenant_id)
    command, erased = purge_of(walk, operated, tenant_id)
    if walk.chance(0.3):
        operated.done("hold", "set", tenant_id, "--reason", "a claim")
        assert "hold lift" in operated.refused(*command)
        operated.done("hold", "lift", tenant_id, "--reason", "it is settled")
    assert "--yes" in operated.refused(*command[:-1])
    operated.erase(*command)
    note_erased(operated, tenant_id, erased())


def purge_of(
    walk: Walk, operated: Operated, tenant_id: str
) -> tuple[list[str], Callable[[], list[str]]]:
    """Return the command that purges a random document, and a function that updates the model."""
    tenant = operated.tenants[tenant_id]
    by_uri = operated.documents(tenant_id)
    choices: list[tuple[str, Callable[[], str]]] = [
        (id_, partial(tenant.uploads.pop, id_)) for id_ in sorted(tenant.uploads)
    ]
    choices += [
        (by_uri[f"pushed/page/{name}"], partial(tenant.records.pop, name))
        for name in sorted(tenant.records)
    ]
    choices += [
        (by_uri[f"files/{name}"], partial(tenant.keep_out, name))
        for name in sorted(tenant.files)
        if name not in tenant.kept_out
    ]
    if not choices:
        operated.upload(tenant_id, walk.world.new_word())
        operated.settle(tenant_id)
        return purge_of(walk, operated, tenant_id)
    document_id, erase = walk.random.choice(choices)
    return ["purge", tenant_id, "--document", document_id, "--yes"], lambda: [erase()]


def note_erased(
    operated: Operated, tenant_id: str, words: list[str], *, with_names: bool = True
) -> None:
    if with_names:
        words = [*words, *map(label_of, words)]
    receipt = operated.done("receipts", tenant_id)["receipts"][-1]
    unseen = receipt["proof"].get("places not seen", []) if receipt["proof"] else []
    operated.erased |= dict.fromkeys(words, unseen)
    operated.verify_receipts()


@step(3)
def prune_old_documents(walk: Walk, operated: Operated) -> None:
    tenant_id = walk.tenant(operated)
    operated.settle(tenant_id)
    tenant = operated.tenants[tenant_id]
    if not tenant.uploads:
        operated.upload(tenant_id, walk.world.new_word())
        operated.settle(tenant_id)
    id_ = walk.random.choice(sorted(tenant.uploads))
    operated.configure(tenant_id, retention_days=100)
    with psycopg.connect(operated.database_url) as connection:
        connection.execute(
            "UPDATE rag_catalog.documents SET embedded_at = now() - interval '101 days'"
            " WHERE tenant = %s AND document_id = %s",
            [tenant_id, id_],
        )
    operated.done("prune", tenant_id)
    operated.configure(tenant_id, retention_days=None)
    # Events of uploads and runs still name the file, but its text is in no store.
    note_erased(operated, tenant_id, [tenant.uploads.pop(id_)], with_names=False)


@step(3)
def remove_and_add_tenant(walk: Walk, operated: Operated) -> None:
    tenant_id = walk.tenant(operated)
    folder = operated.tenants[tenant_id].folder
    if walk.chance(0.5):
        operated.unlist(tenant_id)
    assert "--yes" in operated.refused("tenants", "remove", tenant_id)
    end_removal(operated, tenant_id)
    if folder.exists():
        shutil.rmtree(folder)
    operated.add_tenant(tenant_id, folder)
    for number in range(2):
        operated.write(tenant_id, f"{number}.md")
    operated.settle(tenant_id)
    operated.upload(tenant_id, walk.world.new_word())


def end_removal(operated: Operated, tenant_id: str) -> None:
    """Remove a tenant, unless a killed command has removed it; verify the receipt."""
    if tenant_id in {one["id"] for one in operated.done("tenants", "list")["tenants"]}:
        operated.erase("tenants", "remove", tenant_id, "--yes")
    tenant = operated.tenants.pop(tenant_id)
    words = {*tenant.words(), *tenant.files.values(), *tenant.deleted}
    note_erased(operated, tenant_id, sorted(words))


# -- jobs


@step(3)
def daily_jobs(walk: Walk, operated: Operated) -> None:
    run_jobs(operated, is_weekly=False)


@step(5)
def weekly_jobs(walk: Walk, operated: Operated) -> None:
    for tenant_id in operated.tenants:
        operated.settle(tenant_id)
    operated.age_blobs()
    if walk.chance(0.5):
        run_jobs(operated, is_weekly=True)
    else:
        operated.persist("compact")
    operated.verify_compacted()


def run_jobs(operated: Operated, *, is_weekly: bool, must_succeed: bool = True) -> None:
    """Run every scheduled job, as the daemon does."""
    with operated.site.session() as session:
        for schedule in get_repository().schedule_defs:
            if schedule.cron_schedule.endswith("0") != is_weekly:
                continue
            # An unclosed context would leave its instance to later tests of the process.
            with dg.build_schedule_context(session.instance) as context:
                tick = schedule.evaluate_tick(context)
            for request in tick.run_requests or ():
                job = get_repository().get_job(schedule.job_name)
                result = job.execute_in_process(
                    instance=session.instance, run_config=request.run_config, raise_on_error=False
                )
                assert result.success or not must_succeed, (schedule.name, _failure_of(result))


def _failure_of(result: dg.ExecuteInProcessResult) -> str:
    return "; ".join(
        str(event.step_failure_data.error_display_string)
        for event in result.all_events
        if event.is_step_failure
    )
