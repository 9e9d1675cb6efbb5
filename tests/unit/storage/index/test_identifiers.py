import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.common.hashing import sha256_hex
from rag_assets.ingest.parsing.media_types import SOURCE_CODE
from rag_assets.storage.index.terms import (
    ANALYSES,
    FORMER,
    TERMS_VERSION,
    build_forms,
    choose_analysis,
    compute_lexical_terms,
    list_words,
    parse_query_words,
    sum_word_weights,
)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("handleHTTPError", "handlehttperror handl http error"),
        ("snake_case_name", "snake_case_nam snake case name"),
        ("kebab-case", "kebab-cas kebab case"),
        ("rag_assets.hashing", "rag_assets.hash rag asset hash"),
        ("running runs", "run run"),
        ("v2", "v2 v 2"),
        ("338,000", "338,000 338000 338 000"),
        ("1.250.000,50 €", "1.250.000,50 1250000 1 250 000 50"),
        ("1,234.5", "1,234.5 1234 1 234 5"),
        ("12,50,000", "12,50,000 1250000 12 50 000"),
        ("338'000 (338’000)", "338'000 338000 338 000 338’000 338000 338 000"),
        ("10,5 2.10.3 1,2,3 1234,567", "10 5 2.10.3 2 10 3 1 2 3 1234 567"),
        (",".join(["101"] * 12), " ".join(["101"] * 12)),
        ("192.168.100.200:80", "192.168.100.200:80 192 168 100 200 80"),
        ("٣٣٨,٠٠٠", "338,000 338000 338 000"),
        ("Straße ÜBER été", "strasse uber ete"),
        ("Größe2 über-all", "grosse2 grosse 2 uber-al uber all"),
        ("文書", "文書"),
        ("— … !", ""),
        ("", ""),
        ("x" * 101, ""),
    ],
)
def test_words_whole_and_in_parts(text: str, terms: str) -> None:
    assert compute_lexical_terms(text) == terms


@pytest.mark.parametrize("query", ["HTTPError", "httpError", "http_error", "http errors"])
def test_an_identifier_is_found_in_any_spelling(query: str) -> None:
    stored = set(compute_lexical_terms("def handleHTTPError(request):").split())
    assert {"http", "error"} <= stored & set(compute_lexical_terms(query).split())


@pytest.mark.slow
@given(text=st.text(max_size=200))
def test_terms_are_lower_case_words_without_spaces(text: str) -> None:
    terms = compute_lexical_terms(text).split(" ")
    assert all(not any(c.isspace() for c in term) for term in terms)
    assert compute_lexical_terms(text) == compute_lexical_terms(text)
    assert all(len(term) <= 300 for term in terms)


@pytest.mark.parametrize(
    ("language", "texts"),
    [
        ("de", ["Häuser", "Haus", "Hauses", "HÄUSERN", "Haeuser"]),
        ("de", ["Straße", "Straßen", "Strasse", "STRASSEN"]),
        ("fr", ["prévoyance", "prevoyance", "PRÉVOYANCE"]),
        ("es", ["canciones", "canción", "CANCION"]),
        ("pl", ["żółty", "zolty"]),
        ("ru", ["отчёты", "отчеты", "отчетов", "ОТЧЁТ"]),
        ("el", ["εγγύηση", "εγγύησης", "ΕΓΓΥΗΣΗ", "εγγυηση"]),
        ("tr", ["kitaplar", "kitap", "kitapları"]),
        ("hr", ["књиге", "knjige", "knjiga"]),
        ("ar", ["الكِتاب", "الكتاب", "الكتـــاب", "كتاب"]),
        ("ar", ["أحمد", "احمد"]),
        ("ar", ["٢٠٢٤", "2024"]),
        ("fa", ["کتاب", "كتاب"]),
        ("fa", ["۱۲", "12"]),
        ("hi", ["क़लम", "कलम"]),
        ("hi", ["किताबें", "किताब"]),
        ("he", ["סֵפֶר", "ספר"]),
        ("vi", ["Tiếng", "tiếng"]),
        ("ja", ["ＡＰＩ", "api"]),
    ],
)
def test_spellings_and_forms_of_a_word_have_one_term(language: str, texts: list[str]) -> None:
    analysis = choose_analysis("", language)
    forms = {compute_lexical_terms(text, analysis) for text in texts}
    assert len(forms) == 1
    decomposed = [unicodedata.normalize("NFD", text) for text in texts]
    assert {compute_lexical_terms(text, analysis) for text in decomposed} == forms


def test_vietnamese_words_differ_by_their_diacritics() -> None:
    assert len({compute_lexical_terms(word, "vi") for word in ("ma", "má", "mà", "mạ")}) == 4


def test_a_korean_word_is_the_pairs_of_its_syllables() -> None:
    stored = compute_lexical_terms("학점인정은", "en").split()
    asked = [word for word in list_words("학점인정") if word in stored]
    assert asked == ["학점", "점인", "인정"]
    assert compute_lexical_terms("값", "en") == "값"


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("ยา", "เก็บยาไว้"),
        ("น้ำมัน", "ใช้น้ำมันใหม่"),
        ("เมือง", "ย้ายไปเมืองAthensแล้ว"),
        ("ວຽງຈັນ", "ນະຄອນຫຼວງວຽງຈັນ"),
        ("ភ្នំពេញ", "រាជធានី\u200bភ្នំពេញ។"),
        ("ရန်ကုန်", "မြို့တော်ရန်ကုန်မှာ"),
    ],
)
def test_a_word_is_found_where_nothing_separates_it(word: str, text: str) -> None:
    stored = compute_lexical_terms(text, "en").split()
    assert {part for part in list_words(word) if len(part) <= 3} <= {*stored}
    assert {*compute_lexical_terms(word, "en").split()} <= {*stored}
    assert not parse_query_words(word).title_words


def test_sequences_of_letters_keep_the_marks_of_their_words() -> None:
    assert compute_lexical_terms("ปีใหม่ 12", "en") == "ปีใ ีให ใหม หม่ ปี ีใ ให หม ม่ 12"
    assert list_words("ปีใหม่ ๑๒") == ["ปีใ", "ีให", "ใหม", "หม่", "12"]
    assert list_words("เมือง") == ["เมื", "มือ", "ือง"]
    assert list_words("໑໒ ၁၂ ១២") == ["12", "12", "12"]
    assert "ใช้" not in compute_lexical_terms("ใช", "en").split()


def test_a_query_has_the_letters_between_marks_that_entries_of_former_versions_have() -> None:
    assert "บของแพนเธอร" in list_words("ทีมรับของแพนเธอร์")
    assert max(map(len, compute_lexical_terms("ทีมรับของแพนเธอร์", "en").split())) == 3


def test_parts_of_words_count_for_less_than_words() -> None:
    assert sum_word_weights("lang=en guid guid") == 2
    assert sum_word_weights("lang=en 检查 查阀 阀门 api") == pytest.approx(3)
    thai = "lang=en " + compute_lexical_terms("ก" * 50 + " api", "en")
    assert sum_word_weights(thai) == pytest.approx((48 + 49) / 10 + 1)


@pytest.mark.parametrize("analysis", ANALYSES)
@pytest.mark.parametrize(
    "text",
    ["TBK-4092", "lock_timeout", "handleHTTPError", "Häuser", "отчёты", "v2.1", "किताबें", "가나다"],
)
def test_a_query_has_the_terms_of_texts_in_every_language(text: str, analysis: str) -> None:
    stored = compute_lexical_terms(text, analysis).split()
    of_analysis = {
        form
        for word in list_words(text)
        for form, analyses in build_forms(word).items()
        if analysis in analyses
    }
    assert of_analysis == {*stored}


def test_a_query_has_the_terms_of_entries_of_the_former_version() -> None:
    words = ["größen", "running", "학점인정은"]
    former = {form for word in words for form, of in build_forms(word).items() if FORMER in of}
    assert former == {"größen", "run", "학점인정은"}


@pytest.mark.parametrize(
    ("text", "language", "analysis"),
    [
        ("", "de", "de"),
        ("", "nb", "no"),
        ("", "sk", "plain"),
        ("", "zh", "en"),
        ("", "python", "en"),
        ("Die Ware wird geprüft, wenn der Kunde es will.", None, "de"),
        ("Rechnung 4711", None, "en"),
        ("Отчёт 4711", None, "ru"),
        ("阀门", None, "en"),
        ("", None, "en"),
    ],
)
def test_a_text_is_analyzed_in_its_language(text: str, language: str | None, analysis: str) -> None:
    assert choose_analysis(text, language) == analysis


def test_source_code_is_analyzed_in_english() -> None:
    names = {media_type.removeprefix("text/x-") for media_type in SOURCE_CODE}
    assert {choose_analysis("", name) for name in names} == {"en"}


def test_words_in_latin_letters_are_english_in_other_scripts() -> None:
    assert compute_lexical_terms("настройки backups", "ru") == "настройк backup"
    assert compute_lexical_terms("備份 backups", "en").endswith("backup")


SAMPLE = (
    "Häuser running handleHTTPError_v2 l'équipement canciones città lições straßen flickornas"
    " drenges talojen házakban cărților żółtymi městech kitapları отчёты књиге εγγυήσεις"
    " الكِتابُ کتاب‌ها किताबें գրքերը புத்தகங்கள் ספרים 학점인정은 パスワードの設定 阀门 ฝ่ายขาย ٢٠٢٤"
    " 338,000"
)


def test_terms_that_entries_have_do_not_change_without_another_version() -> None:
    terms = "\n".join(compute_lexical_terms(SAMPLE, analysis) for analysis in ANALYSES)
    assert (TERMS_VERSION, sha256_hex(terms.encode())[:16]) == (4, "4fb8b6f1e8a80fd4")


@pytest.mark.parametrize(
    ("question", "analysis"),
    [("می\u200cخواهم", "fa"), ("کتاب\u200cها را", "fa"), ("Vereins\u00adsatzung", "de")],
)
def test_a_joiner_within_a_word_of_a_question_splits_nothing(question: str, analysis: str) -> None:
    entry = set(compute_lexical_terms(question, analysis).split())
    assert parse_query_words(question, (analysis,)).forms <= entry


def test_terms_of_decomposed_text_are_those_of_text_as_typed() -> None:
    typed = "Café Zürich öffnet, Prüfung. 캘린더 학점인정 パスワードの設定ガイド Việt"
    decomposed = unicodedata.normalize("NFD", typed)
    assert decomposed != typed
    assert compute_lexical_terms(decomposed) == compute_lexical_terms(typed)
    assert list_words(decomposed) == list_words(typed)
