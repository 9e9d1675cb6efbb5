"""Figures and names in claims, in the notations of passages in several languages."""

import time

import pytest

from rag_assets.search.figures import Figures, find_claimed_figures
from rag_assets.search.names import NamedWords, find_missing_names


def missing_figures(claim: str, passage: str) -> list[str]:
    figures = Figures.parse(passage)
    return [one.written for one in find_claimed_figures(claim) if not figures.contain(one)]


def names_missing(claim: str, passage: str) -> list[str]:
    words = NamedWords(passage)
    return list(find_missing_names(claim, words, words))


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("It costs 1,234.50 euros.", "Der Preis ist 1.234,50 €."),
        ("It costs 1 234,5.", "1,234.5"),
        ("1'234.50 CHF", "CHF 1234.50"),
        ("It takes 90 minutes.", "It takes 1.5 hours"),
        ("The review is in March.", "2026-03-15"),
        ("It may take a march.", "It takes a walk."),
        ("١٬٢٣٤٫٥", "1,234.5"),
        ("2024년 3월 15일", "15 March 2024"),
        ("1 234,50 €", "1,234.50 euros"),
        ("10am-6pm", "10:00 to 18:00"),
        ("It takes 2 weeks", "two weeks"),
        ("It takes 14 days", "It takes two weeks"),
        ("On 15 March 2024", "2024-03-15"),
        ("March 15, 2024", "am 15. März 2024"),
        ("el 15 de marzo de 2024", "15.03.2024"),
        ("15/03/2024", "2024年3月15日"),
        ("3/15/2024", "15 March 2024"),
        ("in March 2024", "2024-03-15"),
        ("at 2:30 pm", "um 14:30 Uhr"),
        ("at 3 pm", "15 Uhr"),
        ("at 15:00", "3 p.m."),
        ("um 9 Uhr", "9:00"),
        ("30 %", "thirty percent"),
        ("2 million", "2,000,000"),
        ("2 Mio. Euro", "€2m"),
        ("45k users", "45,000 users"),
        ("GPT-4 is used", "we use gpt4"),
        ("version 3.11.7", "v3.11.7"),
        ("5 working days", "5 days"),
        ("30-day", "30 days"),
        ("1. The valve opens at 4 bar", "4 bar"),
        ("- 2) opens at 4 bar", "4 bar"),
        ("45小时", "共45小时"),
        ("四十五 小时 45 小时", "四十五小时"),
        ("forty-five minutes", "45 min"),
        ("fünfundvierzig Minuten", "45 Minuten"),
        ("3 to 5 days", "3–5 days"),
        ("2nd Monday", "second Monday"),
        ("FY2024", "FY 2024"),
        ("mid-2024", "in the middle of 2024"),
        ("ports 8443", "port 8443"),
        ("1,000", "one thousand"),
        ("12,34,567 rupees", "1234567"),
        ("٤٥ ساعة", "45"),
        ("on Monday, 15 March", "15.03.2024"),
        ("The crew pays 1 250 000 dollars", "$1,250,000"),
        ("call 555-0142", "555-0142"),
        ("45 m²", "45 sqm"),
        ("20 °C", "20 degrees"),
        ("$45", "45 dollars"),
        ("5 pounds", "£5"),
        ("there are two ways", "first this, then that"),
        ("v2", "version 2"),
        ("10:00–12:00", "10.00 Uhr bis 12.00 Uhr"),
        ("24 hours", "1 day"),
        ("1 year", "12 months"),
        ("May 2024", "05/2024 and may 2024"),
        ("in 1999", "1999"),
        ("starts on 2026-11-22 14:35", "2026-11-22T14:35"),
    ],
)
def test_a_figure_is_found_however_it_is_written(claim: str, passage: str) -> None:
    assert not missing_figures(claim, passage)


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("It takes 45 hours", "It takes 40 hours"),
        ("The review is in March.", "The review is in April."),
        ("La revue est en janvier.", "La revue est en juin."),
        ("45시간", "40시간"),
        ("45 minutes", "45 hours"),
        ("15 March 2024", "16 March 2024"),
        ("March 2024", "April 2024"),
        ("15 March 2024", "15 March 2023"),
        ("1.5 hours", "1.5 days"),
        ("2 million", "2 thousand"),
        ("$45", "€45"),
        ("3 pm", "3 am"),
        ("GPT-5", "GPT-4"),
        ("version 3.11.8", "3.11.7"),
        ("1,234.5", "12,345"),
        ("30 %", "3 %"),
        ("three days", "five days"),
        ("4.5 bar", "4 bar"),
        ("10 kg", "10 g"),
        ("15:00", "14:00"),
        ("45小时", "40小时"),
        ("2.000", "2.001"),
        ("fünf Tage", "drei Tage"),
        ("12 enero 2024", "12 de febrero de 2024"),
    ],
)
def test_a_figure_that_the_passage_does_not_have_is_missing(claim: str, passage: str) -> None:
    assert missing_figures(claim, passage)


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("The release manager is Ada.", "The release manager is Ada Lovelace."),
        ("It is approved by Mr Smith.", "It is approved by John Smith."),
        ("Each record has an ID there.", "Each record has an identifier there."),
        ("Ada approves it.", "Every rollback is approved by Ada."),
        ("Employees get 30 days.", "All staff at ACME get 30 days of leave."),
        ("The Release Manager approves a rollback.",
         "A rollback is approved by the release manager."),
        ("Die Freigabe erteilt Ada.", "Ada erteilt die Genehmigung."),
        ("Annas Team prüft das.", "Das Team von Anna prüft das."),
        ("The SLA is 4 hours.", "The service level agreement is 4 hours."),
        ("Each Monday the team meets.", "The team meets on Mon."),
        ("Elasticsearch stores it there.", "It is stored in Elastic Search."),
        ("Иван утверждает откат.", "Откат утверждается Иваном."),
        ("En Madrid se aprueba.", "La oficina de Madrid aprueba todo."),
        ("PostgreSQL stores the rows.", "Rows are in Postgres; PostgreSQL 18."),
        ("We use it. However, Ada objects to that.", "Ada objects to that"),
        ("Mitarbeiter erhalten dreißig Tage Urlaub im Jahr.",
         "Angestellte bekommen dreißig Tage Urlaub im Jahr."),
        ("This requires two approvals.", "It requires two approvals."),
        ("Berlin's office opens at nine.", "The Berlin office opens at nine."),
        ("L'équipe de Paris valide.", "Paris valide; l'équipe aussi."),
        ("de Nederlandse regels gelden hier", "De regels in Nederland gelden"),
    ],
)  # fmt: skip
def test_an_ordinary_word_is_no_missing_name(claim: str, passage: str) -> None:
    assert not names_missing(claim, passage)


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("The release manager is Bob.", "The release manager is Ada Lovelace."),
        ("Bob approves every rollback.", "Ada approves every rollback."),
        ("A rollback is approved by Bob Miller.", "A rollback is approved by Ada."),
        ("Jeder Rollback wird von Bob genehmigt.", "Jeder Rollback wird von Ada genehmigt."),
        ("Owner: Bob", "| x |\nOwner: Ada"),
        ("L'équipe de Lyon valide chaque retour.", "L'équipe de Paris valide chaque retour."),
        ("The office in Munich opens at nine.", "The office in Berlin opens at nine."),
        ("Откат утверждает Пётр.", "Откат утверждает Иван."),
        ("It runs on MySQL every night.", "It runs on PostgreSQL every night."),
        ("Der Leiter ist Theo Klein.", "Der Leiter ist Max Groß."),
        ("The rule of the WHO is binding.", "The rule of the company is binding."),
    ],
)
def test_a_name_that_the_passage_does_not_have_is_missing(claim: str, passage: str) -> None:
    assert names_missing(claim, passage)


@pytest.mark.parametrize(
    "piece", ["Ada ", "1 000 ", "1,", "12.03.", "a-1-", "May 1 ", "m2", "Ö'", "3h "]
)
def test_it_takes_no_time_to_speak_of_however_long_a_text_is(piece: str) -> None:
    text = piece * (20_000 // len(piece))
    started = time.process_time()
    missing_figures(text, text)
    names_missing(f"of {text}", text)
    assert time.process_time() - started < 3, piece
