"""Sentences that contradict their passage, and true ones that only look as if they did."""

import time
from dataclasses import dataclass

import pytest

from benchmarks.claims.__main__ import Claim, read_claims
from rag_assets.search.citations import CitationVerdict, enforce_citations, verify_citations
from rag_assets.search.contradictions import find_contradictions


@dataclass(frozen=True)
class Passage:
    text: str
    number: int = 1
    title: str | None = None
    heading_path: tuple[str, ...] = ()


def verdict(claim: str, passage: str) -> CitationVerdict:
    end = claim[-1]
    [sentence] = verify_citations(f"{claim[:-1]} [1]{end}", [Passage(passage)])
    return sentence.verdict


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("The gate is not closed at night.", "The gate is closed at night."),
        ("Guests have a key.", "Guests have no key."),
        ("Nobody may enter the yard.", "Everybody may enter the yard."),
        ("The pump stops after the test.", "The pump starts after the test."),
        ("The pump starts before the test.", "The pump starts after the test."),
        ("Members must pay a fee.", "Members may pay a fee."),
        ("Some doors are locked at night.", "All doors are locked at night."),
        ("Bags weigh at least 8 kg.", "Bags weigh at most 8 kg."),
        ("The hub calls the node.", "The node calls the hub."),
        ("Operators must open the valve by hand.", "Operators can also open the valve by hand."),
        ("Cats sleep free of charge in all rooms.", "Cats sleep free of charge in heated rooms."),
        ("Knives are not accepted with a permit.", "Knives are only accepted with a permit."),
        ("Repairs of the roof are paid by the buyer.",
         "Repairs of the roof are paid by the seller."),
        ("The lamp is red above 7 volts.", "The lamp is red below 7 volts and blue above it."),
        ("Reparaturen zahlt der Vermieter selbst.", "Reparaturen zahlt der Mieter selbst."),
        ("The upper lid is made of tin.", "The upper lid is made of zinc, the lower lid of tin."),
        ("The file is unencrypted.", "The file is encrypted."),
        ("It is served with onions.", "It is served without onions."),
        ("The shelf is above the line.", "The shelf is below the line."),
        ("Files over 20 MB are accepted.", "Files over 20 MB are rejected."),
        ("Access is granted unless the badge is valid.",
         "Access is granted if the badge is valid."),
        ("The job is tried five times.", "The job is tried three times."),
        ("Das Tor ist nachts nicht geschlossen.", "Das Tor ist nachts geschlossen."),
        ("Der Hof darf nach der Prüfung betreten werden.",
         "Der Hof darf vor der Prüfung betreten werden."),
        ("You can show the ticket at the gate.", "You must show the ticket at the gate."),
        ("Users may export the data.", "Users must export the data."),
        ("All employees receive a badge.", "Full-time employees receive a badge."),
        ("Alle Mitarbeiter erhalten einen Ausweis.",
         "Festangestellte Mitarbeiter erhalten einen Ausweis."),
        ("Le magasin est ouvert le dimanche.", "Le magasin est fermé le dimanche."),
        ("La entrada no es gratis para los socios.", "La entrada es gratis para los socios."),
        ("Гости имеют доступ к серверу.", "Гости не имеют доступа к серверу."),
        ("实习生享受年终奖金。", "实习生不享受年终奖金。"),
        ("学生は無料でコピー機を使えません。", "学生は無料でコピー機を使えます。"),
        ("يسمح بالتصوير داخل المبنى.", "لا يسمح بالتصوير داخل المبنى."),
    ],
)  # fmt: skip
def test_claim_contrary_to_its_passage_is_unsupported(claim: str, passage: str) -> None:
    assert verdict(claim, passage) == "unsupported"
    assert verdict(passage, passage) == "supported"


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("Access without a valid badge is denied.", "Access is granted only with a valid badge."),
        ("Guests who are not members cannot vote.", "Only members may vote."),
        ("Lisa bought the car from Tom.", "Tom sold the car to Lisa."),
        ("The tests have to pass before the release.", "The release comes after the tests pass."),
        ("The lamp is not off.", "The lamp is on."),
        ("Mails are enabled by default.", "Admins can disable them; mails are enabled by default."),
        ("Customers can cancel by phone.", "Customers can cancel online, by phone or by letter."),
        ("Users can export the data.", "Users must be able to export the data."),
        ("At the gate you can show the ticket on your phone.",
         "At the gate you must show the ticket, on your phone if you like."),
        ("All employees receive a badge.", "Full-time and part-time employees receive a badge."),
        ("Alle Mitarbeiter erhalten einen Ausweis.", "Unsere Mitarbeiter erhalten einen Ausweis."),
        ("The child gets a place.", "The parent gets a place for the child."),
        ("Dagster schedules jobs.", "Dagster is an orchestrator. The tool schedules jobs."),
        ("Each job has its own log.", "The log is not shared by jobs, so each job has its own."),
        ("Keep it below 25 degrees.", "Do not keep it above 25 degrees."),
        ("Whoever needs more than 40 cores asks.", "Use at most 40 cores; for more, ask."),
        ("Die Gebühr wird nicht erstattet.", "Die Gebühr ist fällig und wird nicht erstattet."),
        ("Den Mitarbeiter lobt der Chef.", "Der Chef lobt den Mitarbeiter."),
        ("Files up to 20 MB are accepted.", "At most 20 MB are sent; larger files are rejected."),
        ("The fee is refunded after 2 days.", "The fee is not refunded within 2 days."),
        ("Operators may open the valve by hand.", "Operators can open the valve by hand."),
        ("All 4 doors are locked.", "The 4 doors are locked."),
        ("Every door is locked at night.", "Each door is locked at night."),
        ("The buyer pays the seller.", "The seller is paid by the buyer."),
    ],
)  # fmt: skip
def test_claim_in_other_words_than_its_passage_is_supported(claim: str, passage: str) -> None:
    assert verdict(claim, passage) == "supported"


def test_contrary_claim_is_marked_where_the_tenant_asks_for_it() -> None:
    passage = [Passage("The gate is closed at night.")]
    answer = "The gate is not closed at night [1]."
    marked = enforce_citations(answer, passage, mark=True)
    assert marked == "The gate is not closed at night [unsupported]."
    assert enforce_citations(answer, passage) == ""


@pytest.mark.parametrize("language", ["en", "across languages"])
def test_judged_claims_are_mostly_judged_rightly(language: str) -> None:
    def is_of(claim: Claim) -> bool:
        return "-" in claim.languages if language != "en" else claim.languages == "en"

    claims = [claim for claim in read_claims("developed") if is_of(claim)]
    true = [claim.check() != "unsupported" for claim in claims if claim.is_true]
    wrong = [claim.check() == "unsupported" for claim in claims if not claim.is_true]
    assert sum(true) >= 0.98 * len(true)
    assert sum(wrong) >= 0.85 * len(wrong)


def test_long_passages_of_listed_words_take_little_time() -> None:
    passage = "Not before all of it, never after more or less, unless none must stop. " * 300
    claim = "Not all of it must never stop before less or more of it, unless after none of it. "
    started = time.thread_time()
    verify_citations(f"{claim.strip()[:-1]} [1]. " * 20, [Passage(passage)])
    assert time.thread_time() - started < 5.0


_RUNS = {
    "letters": "x" * 100_000,
    "digits": "1" * 100_000,
    "Chinese signs": "界" * 100_000,
    "Chinese digits": "三" * 100_000,
    "letters and digits": "A1" * 50_000,
    "version": "1.1." * 20_000,
    "number words": "one" * 30_000,
    "short words": "x " * 50_000,
}


@pytest.mark.timeout(30)
@pytest.mark.parametrize("run", _RUNS.values(), ids=_RUNS.keys())
@pytest.mark.parametrize(
    ("claim", "stated", "language"),
    [
        ("Bags weigh at least 8 kg.", "Bags weigh at most 8 kg.", "en"),
        ("Bags weigh 8 kg or more.", "Bags weigh 8 kg or less.", "en"),
        ("行李至少8公斤。", "行李最多8公斤。", "zh"),
    ],
)
def test_long_runs_hide_no_contrary_bound(claim: str, stated: str, language: str, run: str) -> None:
    contrary = [*find_contradictions(claim, (stated,), language)]
    assert contrary
    assert [*find_contradictions(claim, (f"{stated}\n\n{run}",), language)] == contrary
    assert [*find_contradictions(claim, (run,), language)] == []
    assert {*find_contradictions(f"{claim[:-1]} {run}", (stated,), language)} <= {*contrary}


@pytest.mark.timeout(30)
@pytest.mark.parametrize("run", _RUNS.values(), ids=_RUNS.keys())
def test_citations_of_long_runs_of_signs_are_verified(run: str) -> None:
    passage = f"Bags weigh at most 8 kg.\n\n{run[:20_000]}"
    assert verdict("Bags weigh at least 8 kg.", passage) == "unsupported"
    assert verdict("Bags weigh at most 8 kg.", passage) == "supported"


@pytest.mark.timeout(30)
def test_claims_of_many_long_passages_are_verified() -> None:
    listed = "Not before all of it, never after more or less, unless none must stop. " * 80
    hits = [Passage(f"{listed} Gate {n} is closed at night.", n) for n in range(1, 21)]
    cites = f"[{', '.join(str(hit.number) for hit in hits)}]"
    claims = [f"Gate {n} is {('closed', 'open')[n % 2]} at night {cites}." for n in range(1, 21)]
    found = [sentence.verdict for sentence in verify_citations(" ".join(claims), hits)]
    assert found == ["unsupported", "supported"] * 10
