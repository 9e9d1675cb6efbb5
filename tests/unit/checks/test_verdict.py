from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import dagster as dg
import numpy as np
import pytest

from rag_assets.checks.dimensions import (
    IndexShape,
    ServingShape,
    build_index_verdict,
    build_vectors_verdict,
    find_vector_faults,
)
from rag_assets.checks.drift import build_states_verdict
from rag_assets.checks.isolation import build_verdict as verdict_of_isolation
from rag_assets.checks.isolation import find_fault
from rag_assets.checks.results import to_check_result
from rag_assets.checks.secrets import Gate, Leak, LeakingDocument, ScanCounts, find_leaks
from rag_assets.checks.secrets import build_verdict as verdict_of_secrets
from rag_assets.checks.thresholds import LAST_SEARCHES
from rag_assets.checks.thresholds import build_verdict as verdict_of_thresholds
from rag_assets.checks.verdict import Compared, Verdict
from rag_assets.common.formatting import format_count
from rag_assets.ingest.chunking.model import Chunk
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.pipeline.drift import IndexState
from rag_assets.pipeline.index_comparison import Drift
from rag_assets.privacy.secrets.spans import SecretSpan
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.storage.catalog.journal.events import Event
from rag_assets.storage.index.model import Owner, Presence, ScannedEntry, TenantView, entry_id
from rag_assets.storage.lake.model import ChunkSetRow
from tests.chunking import lines
from tests.rules import shared_scanner
from tests.unit.privacy.secrets import planted

KEY = dg.AssetCheckKey(dg.AssetKey("chunks"), "secrets")


def test_counted() -> None:
    assert format_count(1, "entry", "entries") == "1 entry"
    assert format_count(2_000, "entry", "entries") == "2,000 entries"
    assert format_count(0, "chunk") == "0 chunks"


def test_a_result_shows_expected_against_actual_and_fifty_offenders() -> None:
    verdict = Verdict(
        passed=False,
        description="60 wrong",
        compared=(Compared("wrong", 0, 60), Compared("uuid", "a", None)),
        columns=("document", "fault"),
        offenders=tuple((f"files/{n}.md", n) for n in range(60)),
        severity="WARN",
        notes={"data docs": "/data-docs/team/chunks/index.html", "rows": 3},
    )
    result = to_check_result(verdict, KEY)
    assert (result.passed, result.severity) == (False, dg.AssetCheckSeverity.WARN)
    metadata = result.metadata
    compared = metadata["expected and actual"]
    assert isinstance(compared, dg.TableMetadataValue)
    assert [dict(record.data) for record in compared.records] == [
        {"what": "wrong", "expected": "0", "actual": "60"},
        {"what": "uuid", "expected": "a", "actual": "none"},
    ]
    offenders = metadata["first offenders"]
    assert isinstance(offenders, dg.TableMetadataValue)
    assert len(offenders.records) == 50
    assert metadata["offenders"] == dg.MetadataValue.int(60)
    assert metadata["data docs"] == dg.MetadataValue.url("/data-docs/team/chunks/index.html")
    assert metadata["rows"] == dg.MetadataValue.int(3)


def test_a_failure_is_told_with_the_command_that_mends_it() -> None:
    mend = "`rag-assets sync TENANT --repair` restores it"
    verdict = Verdict(passed=False, description="files/TENANT.md is gone", compared=(), mend=mend)
    told = verdict.for_tenant("acme")
    expected = "files/TENANT.md is gone; `rag-assets sync acme --repair` restores it"
    assert told.description == told.for_tenant("acme").description == expected
    shown = to_check_result(told, KEY).metadata["remedy"]
    assert shown == dg.MetadataValue.text("`rag-assets sync acme --repair` restores it")
    well = Verdict(passed=True, description="all is well", compared=(), mend=mend)
    passed = well.for_tenant("acme")
    assert passed.description == "all is well"
    assert "remedy" not in to_check_result(passed, KEY).metadata


NOW = datetime(2026, 1, 1, tzinfo=UTC)


def chunk(ordinal: int, text: str, *headings: str) -> Chunk:
    return Chunk(ordinal, text, 0, len(text), 0, headings, 3, "0" * 64, lines(1, 1))


def find_marks(text: str) -> Sequence[SecretSpan]:
    at = text.find("S3CRET")
    return [SecretSpan(at, at + 6, "mark")] if at >= 0 else []


@pytest.mark.parametrize(
    ("title", "chunks", "expected"),
    [
        ("clean", (chunk(0, "clean", "clean"),), []),
        (None, (chunk(0, "clean"), chunk(1, "a S3CRET")), [("text", 1)]),
        ("S3CRET", (chunk(0, "clean"),), [("title", None)]),
        ("clean", (chunk(0, "a", "x", "S3CRET"), chunk(1, "b", "x")), [("heading", 0)]),
    ],
)
def test_leaks_are_found_wherever_text_is_kept(
    title: str | None, chunks: tuple[Chunk, ...], expected: list[tuple[str, int | None]]
) -> None:
    found = list(find_leaks(title, ChunkSetRow("k", "d", chunks), find_marks, lambda _piece: True))
    assert [(leak.where, leak.ordinal) for leak in found] == expected
    assert all(leak.rules == ("mark",) for leak in found)


def test_a_heading_over_many_chunks_is_scanned_once() -> None:
    asked: list[str] = []

    def scan(text: str) -> Sequence[SecretSpan]:
        asked.append(text)
        return ()

    chunks = tuple(chunk(n, f"text {n}", "A", "B") for n in range(5))
    assert not list(find_leaks("title", ChunkSetRow("k", "d", chunks), scan, lambda _piece: True))
    assert asked.count("A") == asked.count("B") == 1
    assert len(asked) == 8


@pytest.mark.slow
def test_a_part_is_scanned_as_the_gate_scans_the_whole() -> None:
    text = "| field | type |\n|---|---|\n| password | hash-of-v1x9 |\n\nToken: " + planted.GITHUB
    gate = Gate(lambda: ParsedText(text, ()), shared_scanner())
    assert gate.confirms(planted.GITHUB)
    assert not gate.confirms("| field | type |")
    assert gate.confirms("what stands in no document of ours")


def test_what_was_withheld_upstream_does_not_fail() -> None:
    verdict = verdict_of_secrets([], ScanCounts(3, 20, 2, (("pem", 2),)))
    assert verdict.passed
    assert "2 chunks dropped" in verdict.description
    assert verdict.notes["rules of dropped chunks"] == "pem: 2"


def test_a_leak_fails_and_names_document_place_and_rules() -> None:
    leak = Leak("text", 4, ("aws", "pem"))
    leaking = LeakingDocument("id", "key", "files/a.md", (leak,))
    verdict = verdict_of_secrets([leaking], ScanCounts(1, 5))
    assert (verdict.passed, verdict.severity) == (False, "ERROR")
    assert verdict.offenders == (("files/a.md", "text", 4, "aws, pem"),)


def packed(*values: float) -> bytes:
    return np.array(values, "<f4").tobytes()


@pytest.mark.parametrize(
    ("raw", "fault"),
    [
        (packed(1, 0, 0), None),
        (packed(0.6, 0.8, 0), None),
        (packed(0.6, 0.8, 0.02), None),  # 1.0002: rounding of some provider
        (packed(0.6, 0.8, 0.1), "norm 1.005"),
        (packed(0, 0, 0), "norm 0"),
        (packed(float("inf"), 0, 0), "not finite"),
        (packed(float("nan"), 1, 0), "not finite"),
        (packed(1, 0), "2 dimensions"),
        (packed(1, 0, 0, 0), "4 dimensions"),
        (packed(1, 0, 0)[:-1], "2.75 dimensions"),
        (b"", "0 dimensions"),
    ],
)
def test_an_impossible_vector_is_reported_with_the_reason(raw: bytes, fault: str | None) -> None:
    good = packed(0, 1, 0)
    found = find_vector_faults(["good", "t", "also good"], [good, raw, good], 3)
    assert found == ({} if fault is None else {"t": fault})


def test_no_vectors_have_no_faults() -> None:
    assert find_vector_faults([], [], 384) == {}


def test_a_shared_vector_counts_once_and_names_every_document() -> None:
    faulty = [("files/a.md", "t", "norm 2"), ("files/b.md", "t", "norm 2")]
    verdict = build_vectors_verdict(faulty, 10, 0, 384)
    assert not verdict.passed
    assert verdict.compared[1].actual == 9
    assert [row[0] for row in verdict.offenders] == ["files/a.md", "files/b.md"]


SHAPE = IndexShape(1, "rag-index-3", 3, 3)
SERVING = ServingShape(dimensions=3, embedder_dimensions=3, current=True)


@pytest.mark.parametrize(
    ("shape", "serving", "fault"),
    [
        (SHAPE, SERVING, None),
        (SHAPE, None, None),
        (replace(SHAPE, mapped=4), SERVING, "mapped to 4"),
        (replace(SHAPE, mapped=None), SERVING, "no such index"),
        (replace(SHAPE, without_vector=("e1",)), SERVING, "entry e1 has no vector"),
        (SHAPE, replace(SERVING, embedder_dimensions=4),
         "its embedder makes vectors of 4 dimensions"),
        # Another embedder is configured: the next generation will have its dimensions.
        (SHAPE, replace(SERVING, embedder_dimensions=4, current=False), None),
    ],
)  # fmt: skip
def test_mapping_catalog_and_embedder_must_agree(
    shape: IndexShape, serving: ServingShape | None, fault: str | None
) -> None:
    verdict = build_index_verdict([shape], serving)
    assert verdict.passed == (fault is None)
    assert [row[2] for row in verdict.offenders] == ([] if fault is None else [fault])


def test_a_tenant_without_an_index_agrees() -> None:
    assert build_index_verdict([], None).passed


def state(drift: Drift, *, index: Presence = "present", alias: bool = True) -> IndexState:
    generation = Generation(1, "k", "rag-index-3", "u", "e", {}, 3, "SERVING", NOW, None)
    return IndexState(generation, index, alias, drift)


@pytest.mark.parametrize(
    ("found", "offender"),
    [
        (state(Drift(2, 2)), None),
        (state(Drift(2, 1, missing=("d",))), (1, "missing entries", "files/d.md")),
        (state(Drift(2, 2, altered=("d",))), (1, "altered entries", "files/d.md")),
        (state(Drift(2, 2, orphans=("e9",))), (1, "orphaned entry", "e9")),
        (state(Drift(2, 2, foreign=("e9",))), (1, "foreign entry", "e9")),
        (state(Drift(2, 2), index="missing"), (1, "index is missing", "rag-index-3")),
        (state(Drift(2, 2), index="replaced"), (1, "index was replaced", "rag-index-3")),
        (state(Drift(2, 2), alias=False), (1, "alias shows wrong entries", "rag-index-3")),
    ],
)
def test_each_kind_of_drift_fails(found: IndexState, offender: tuple[int, str, str] | None) -> None:
    verdict = build_states_verdict([found], {"d": "files/d.md"})
    assert verdict.passed == (offender is None)
    assert verdict.offenders == (() if offender is None else (offender,))
    assert verdict.severity == "ERROR"


def test_drift_during_a_write_is_a_warning() -> None:
    verdict = build_states_verdict([state(Drift(2, 1, missing=("d",)))], {}, writer_at_work=True)
    assert (verdict.passed, verdict.severity) == (False, "WARN")


OWNER = Owner("acme", 4, 1)


def entry(**changes: object) -> ScannedEntry:
    fields = ScannedEntry(
        id=entry_id(OWNER, "doc", "key", 0), tenant="acme", incarnation=4, generation=1,
        document_id="doc", index_key="key", ordinal=0, access_scope="public", correctly_routed=True,
        intact=True,
    )  # fmt: skip
    return replace(fields, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("found", "fault"),
    [
        (entry(), None),
        (entry(tenant="other"), "has the id of tenant 'other'"),
        (entry(correctly_routed=False), "is routed to another tenant"),
        (entry(incarnation=3), "belongs to an earlier tenant"),
        (entry(document_id="unknown"), "belongs to no document of the tenant"),
        (entry(access_scope="board"), "has the access scope 'board' instead of 'public'"),
        (entry(ordinal=1), "was not written for this tenant"),
        (entry(id=entry_id(Owner("other", 4, 1), "doc", "key", 0)), "was not written"),
        # Another build of the same tenant, and an entry that is the drift check's, violate nothing.
        (entry(generation=2, id=entry_id(Owner("acme", 4, 2), "doc", "key", 0)), None),
        (entry(intact=False), None),
    ],
)
def test_an_entry_violates_isolation_for_one_reason(found: ScannedEntry, fault: str | None) -> None:
    told = find_fault(found, "acme", 4, {"doc": "public"})
    assert told is None if fault is None else told is not None and told.startswith(fault)


def test_an_alias_that_shows_strangers_fails() -> None:
    alias = TenantView("rag-tenant-acme", restricted=True, tenants=("acme", "b"))
    verdict = verdict_of_isolation("acme", [], 3, alias)
    assert not verdict.passed
    assert verdict.offenders == (("rag-tenant-acme", "", "shows the tenant 'b'"),)
    assert verdict_of_isolation("acme", [], 3, replace(alias, tenants=("acme",))).passed
    assert verdict_of_isolation("acme", [], 0, None).passed


def test_times_are_compared_in_minutes_rounded_up() -> None:
    from rag_assets.checks.staleness import round_up_minutes

    assert [round_up_minutes(timedelta(seconds=s)) for s in (-5, 0, 1, 60, 61)] == [0, 0, 1, 1, 2]


def ended(*, chosen: int = 0, nearest: float | None = 0.4) -> Event:
    payload = {"chosen": ["c"] * chosen, "nearest": nearest}
    return Event(1, "rag_search_completed", NOW, payload)


@pytest.mark.parametrize(
    ("events", "passes"),
    [
        ([], True),
        ([ended()] * (LAST_SEARCHES - 1), True),
        ([ended()] * LAST_SEARCHES, False),
        ([ended(nearest=None)] * LAST_SEARCHES, False),
        ([*[ended()] * (LAST_SEARCHES - 1), ended(chosen=1)], True),
    ],
)
def test_fifty_searches_without_a_passage_are_a_warning(events: list[Event], passes: bool) -> None:
    verdict = verdict_of_thresholds(events, "acme")
    assert (verdict.passed, verdict.severity) == (passes, "WARN")
    assert ("thresholds measure acme" in verdict.mend) is not passes
