"""Commands for builds of a tenant's index: list, publish, roll back and discard them."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from rag_assets.cli.arguments import Json, TenantArgument
from rag_assets.cli.output import print_json, print_table, say
from rag_assets.cli.session import Session, with_reading_session, with_session
from rag_assets.common.errors import ConfigurationError, RagAssetsError
from rag_assets.common.formatting import dollars, duration, format_count

if TYPE_CHECKING:
    from rag_assets.pipeline.context import TenantContext
    from rag_assets.pipeline.generation_moves import BuildOrder, BuildReport

_Number: TypeAlias = Annotated[int, typer.Argument(metavar="N", help="Number of the build.")]
_ExpectedNumber: TypeAlias = Annotated[
    int | None,
    typer.Argument(
        metavar="[N]", help="Number of the configuration's build; refuse to publish any other."
    ),
]

app = typer.Typer()


@app.command("list")
@with_reading_session
def list_builds(session: Session, tenant_id: TenantArgument, *, as_json: Json = False) -> None:
    """List a tenant's builds with state, difference, progress, cost and index."""
    reports = _list_reports(session, tenant_id)
    if as_json:
        print_json({"tenant": tenant_id, "generations": [asdict(report) for report in reports]})
        return
    print_table(
        [
            *("", "state", "since", "differs in", "documents", "entries", "rate", "time left"),
            *("cost", "checks", "index"),
        ],
        [_build_row(report) for report in reports],
    )
    for report in reports:
        for line in _iter_remarks(report):
            say(f"{report.number}: {line}")
    if not reports:
        say(f"\nNothing is indexed yet: rag-assets sync {tenant_id}")


@app.command("show")
@with_reading_session
def show(
    session: Session, tenant_id: TenantArgument, number: _Number, *, as_json: Json = False
) -> None:
    """Show one build with its checks and dates."""
    report = _find_report(session, tenant_id, number)
    if as_json:
        print_json({"tenant": tenant_id, **asdict(report)})
        return
    print_table(["", ""], list(_iter_facts(report)))
    for line in _iter_remarks(report):
        say(line)
    if report.checks:
        say("\nChecks before the build was published or held:")
        print_table(
            ["check", "result", "finding"],
            [
                (c["check"], "passed" if c["passed"] else "failed", c["description"])
                for c in report.checks
            ],
        )


@app.command("publish")
@with_session
def publish(
    session: Session,
    tenant_id: TenantArgument,
    number: _ExpectedNumber = None,
    *,
    force: Annotated[
        bool, typer.Option("--force", help="Publish the build even if a check failed.")
    ] = False,
    reason: Annotated[str, typer.Option(help="Reason; required with --force.")] = "",
    as_json: Json = False,
) -> None:
    """Remove the pin, and publish the configuration's build if it passes its checks."""
    from rag_assets.pipeline.generation_moves import require_configured, unpin_build

    if force and not reason.strip():
        raise ConfigurationError(
            "--force needs a reason",
            hint="add the reason with --reason; it is stored with the event",
        )
    with session.writer(tenant_id, "publish") as ctx:
        if number is not None:
            require_configured(ctx, number)
        unpin_build(ctx, _build_order(ctx, reason))
    _catch_up(session, tenant_id)
    config = {"force": force, "by": _get_user(), "reason": reason}
    config |= {} if number is None else {"generation": number}
    run = session.runner.run(
        "publish_generation", tenant_id, {"publish_configured_build": {"config": config}}
    )
    if run.failure is not None:
        raise run.failure
    _print_serving_build(session, tenant_id, as_json=as_json)


@app.command("rollback")
@with_session
def rollback(
    session: Session,
    tenant_id: TenantArgument,
    *,
    reason: Annotated[str, typer.Option(help="Reason, which is stored.")],
    number: Annotated[
        int | None,
        typer.Option(
            "--to", metavar="N", help="Number of the build; by default the previous build."
        ),
    ] = None,
    now: Annotated[
        bool,
        typer.Option(
            "--now", help="Publish the build immediately, and bring it up to date afterwards."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Bring a former build up to date, publish it, and pin it."""
    from rag_assets.pipeline.generation_moves import choose_rollback_build, roll_back

    if not reason.strip():
        raise ConfigurationError("a rollback needs a reason", hint="add the reason with --reason")
    with session.writer(tenant_id, "rollback") as ctx:
        generation = choose_rollback_build(ctx, number)
        session.embedders.require_key(ctx.ref, ctx.for_build(generation).tenant.embedder)
        answers = roll_back(ctx, generation, _build_order(ctx, reason), now=now)
    if answers and not as_json:
        say(f"generation {generation.number} answers; it is brought up to date now")
    _catch_up(session, tenant_id)
    _print_serving_build(session, tenant_id, as_json=as_json)


@app.command("discard")
@with_session
def discard(
    session: Session, tenant_id: TenantArgument, number: _Number, *, as_json: Json = False
) -> None:
    """Delete a build that does not answer."""
    from rag_assets.pipeline.generation_moves import discard_build

    with session.writer(tenant_id, "discard") as ctx:
        discard_build(ctx, number, _build_order(ctx, ""))
    if as_json:
        print_json({"tenant": tenant_id, "discarded": number})
        return
    say(f"Generation {number} of {tenant_id} is deleted.")


def _catch_up(session: Session, tenant_id: str) -> None:
    from rag_assets.cli.sync import sync_tenant

    result = sync_tenant(session, tenant_id)
    if result.error is not None:
        raise result.error


def _build_order(ctx: TenantContext, reason: str) -> BuildOrder:
    from rag_assets.pipeline.generation_moves import BuildOrder

    return BuildOrder.create(ctx, _get_user(), reason)


def _get_user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "an unnamed user"


def _list_reports(session: Session, tenant_id: str) -> list[BuildReport]:
    from rag_assets.pipeline.generation_moves import report_builds

    return report_builds(session.build_reader_context(tenant_id))


def _find_report(session: Session, tenant_id: str, number: int) -> BuildReport:
    for report in _list_reports(session, tenant_id):
        if report.number == number:
            return report
    raise ConfigurationError(
        f"tenant {tenant_id!r} has no generation {number}",
        hint=f"run `rag-assets generations list {tenant_id}` to see its builds",
    )


def _print_serving_build(session: Session, tenant_id: str, *, as_json: bool) -> None:
    """Print the serving build, or raise an error if the wanted build cannot serve yet."""
    reports = _list_reports(session, tenant_id)
    serving = next(report for report in reports if report.state == "SERVING")
    wanted_build = next((report for report in reports if report.wanted), serving)
    if wanted_build.number != serving.number:
        raise RagAssetsError(
            f"generation {wanted_build.number} of {tenant_id} does not answer yet: "
            f"{format_count(wanted_build.behind or 0, 'document')} not yet up to date",
            hint=(
                f"run `rag-assets sync {tenant_id}` to continue; it publishes the build when "
                "it is up to date"
            ),
        )
    if as_json:
        print_json({"tenant": tenant_id, **asdict(serving)})
        return
    pinned = ", pinned" if serving.pinned else ""
    say(f"Generation {serving.number} of {tenant_id} answers{pinned}.")


def _build_row(report: BuildReport) -> tuple[object, ...]:
    differs = "; ".join(report.differs)
    return (
        report.number,
        f"{report.state} (pinned)" if report.pinned else report.state,
        f"{report.since:%Y-%m-%d %H:%M}",
        differs if report.state != "SERVING" else "",
        f"{report.documents:,} of {report.of_documents:,}",
        _format_entries(report),
        "" if report.per_second is None else f"{report.per_second:,.1f}/s",
        "" if report.remaining_seconds is None else duration(report.remaining_seconds),
        _format_cost(report),
        _format_checks(report),
        report.index,
    )


def _format_entries(report: BuildReport) -> str:
    if report.of_entries == report.entries:
        return f"{report.entries:,}"
    return f"{report.entries:,} of about {report.of_entries:,}"


def _format_checks(report: BuildReport) -> str:
    """Format the number of passed checks, such as "3 of 4"; "" without checks."""
    passed = sum(bool(check["passed"]) for check in report.checks)
    return f"{passed} of {len(report.checks)}" if report.checks else ""


def _format_cost(report: BuildReport) -> str:
    if report.planned is None or round(report.planned, 8) == round(report.spent, 8):
        return dollars(report.spent)
    return f"{dollars(report.spent)} of about {dollars(report.planned)}"


def _iter_facts(report: BuildReport) -> Iterator[tuple[str, object]]:
    yield "generation", report.number
    yield "state", report.state
    yield "differs from the serving build in", "; ".join(report.differs) or "nothing"
    yield "embedder", report.embedder
    yield "index", report.index
    yield "documents", f"{report.documents:,} of {report.of_documents:,}"
    yield "entries", _format_entries(report)
    if report.per_second is not None:
        yield "documents per second", f"{report.per_second:,.1f}"
    if report.remaining_seconds is not None:
        yield "time left", duration(report.remaining_seconds)
    yield "cost", _format_cost(report)
    yield "checks passed", _format_checks(report) or "not judged"
    dates: tuple[tuple[str, datetime | None], ...] = (
        ("opened", report.created_at),
        ("complete", report.completed_at),
        ("published", report.published_at),
        ("retired", report.retired_at),
        ("deleted after", report.removed_after),
    )
    for name, at in dates:
        if at is not None:
            yield name, f"{at:%Y-%m-%d %H:%M} UTC"


def _iter_remarks(report: BuildReport) -> Iterator[str]:
    if report.reason:
        yield f"held: {report.reason}"
    if report.pinned:
        at: Any = report.pinned.at
        yield f"pinned by {report.pinned.by}, {at:%Y-%m-%d %H:%M} UTC: {report.pinned.reason}"
    if report.behind and report.current and report.state != "BUILDING":
        yield f"{format_count(report.behind, 'document')} behind"
    if report.waiting:
        yield f"{format_count(report.waiting, 'document')} wait for a provider or a person"
    if report.not_writable and report.state == "SERVING":
        yield f"not brought up to date: {report.not_writable}"
