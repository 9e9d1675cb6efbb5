"""The subject of a question: its kind, and the names in it."""

from __future__ import annotations

import pytest

from rag_assets.systems.code_memory.retrieval.question_subject import (
    MAX_NAMES,
    find_question_kinds,
    find_question_names,
    join_words,
)

ASKED = {
    "Which endpoint takes an order?": {"route", "controller_method", "api_endpoint"},
    "What validates the address of a customer?": {"request"},
    "Who is allowed to cancel it?": {"policy"},
    "What works in the background?": {"job"},
    "Who is notified of a payment?": {"event", "listener"},
    "In which table is it stored?": {"table", "model"},
    "Since which migration are there columns for it?": {"migration", "table"},
    "How are totals rounded?": set(),
}


@pytest.mark.parametrize(("query", "types"), ASKED.items(), ids=list(ASKED))
def test_words_of_a_question_ask_for_kinds(query: str, types: set[str]) -> None:
    assert find_question_kinds(query).wanted_types == types


@pytest.mark.parametrize(
    ("query", "topic"),
    [
        (
            "Which endpoint cancels an order, what validates it, and who is allowed to?",
            "Which cancels an order what it and who is to",
        ),
        ("endpoints and tables", "and"),
        ("tables?", "tables?"),
        # Compounds are also written as in code.
        ("sign-in at Last.fm", "sign-in signin at Last.fm Lastfm"),
    ],
)
def test_words_that_ask_for_a_kind_are_no_topic_unless_they_are_all(query: str, topic: str) -> None:
    assert find_question_kinds(query).topic == topic


@pytest.mark.parametrize(("query", "tests"), [("Which tests cover it?", True), ("latest", False)])
def test_questions_about_tests_are_recognized(query: str, tests: bool) -> None:
    assert find_question_kinds(query).is_about_tests is tests


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("What controller serves route invoices.store and which table?", ("invoices.store",)),
        ("Which migrations altered table invoices?", ("invoices",)),
        ("what changed in the invoices table", ("invoices",)),
        ("who handles POST /invoices/{invoice}/send", ("POST /invoices/{invoice}/send",)),
        ("what is behind /admin/users?", ("/admin/users",)),
        ("where is `totals` set", ("totals",)),
        ("what does InvoiceController@store call", ("InvoiceController@store",)),
        ("who extends App\\Models\\Base?", ("App\\Models\\Base",)),
        ("what does app/Models/Invoice.php define", ("app/Models/Invoice.php",)),
        ("explain billing.models.Invoice.total", ("billing.models.Invoice.total",)),
        ("who queries invoice_lines", ("invoice_lines",)),
        ("File.ln_s!", ("File.ln_s!", "File.ln_s")),
        ("nil?", ("nil?", "nil")),
        ("~Table", ("~Table",)),
        ("db::Table::~Table()", ("db::Table::~Table",)),
        ("Slice::operator==", ("Slice::operator==",)),
        ("operator[]", ("operator[]",)),
        ("~/.profile", ()),
        ("FullTextSearch::[]", ("FullTextSearch::[]",)),
        ("Version#<=>", ("Version#<=>",)),
        ("[]=", ("[]=",)),
        ("db::List<Key,Order>::Node::next()", ("db::List::Node::next",)),
        ("20260128_add_users.rb", ("20260128_add_users.rb",)),
        ("app/(auth)/[...slug]/page.tsx", ("app/(auth)/[...slug]/page.tsx",)),
        ("app/(shop)/[[...path]]/page#Total", ("app/(shop)/[[...path]]/page#Total",)),
        ("internal/billing#Invoice.Total()", ("internal/billing#Invoice.Total",)),
        (".eslintrc.js", (".eslintrc.js",)),
        ("+page.svelte", ("+page.svelte",)),
        ("2.5.1", ()),
        ("Request#variant=", ("Request#variant=", "Request#variant")),
        ("How are invoices numbered?", ()),
        ("Why is it slow? See the docs, e.g. those of caching.", ()),
    ],
)
def test_names_are_found_as_they_are_written(query: str, names: tuple[str, ...]) -> None:
    assert find_question_names(query).names == names


@pytest.mark.parametrize(
    ("query", "relational"),
    [
        ("What controller serves route invoices.store and which model does it touch?", True),
        ("Which migrations created or altered table invoices?", True),
        ("What did previous runs change about InvoiceController?", True),
        ("which listeners does PaymentReceived have", True),
        ("How does InvoiceController round amounts?", False),
        ("Why was InvoiceController@store rewritten for performance?", False),
        ("Which controller serves it?", False),
    ],
)
def test_questions_for_relations_alone_are_recognized(query: str, relational: bool) -> None:
    assert find_question_names(query).is_relational is relational


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("UserController在哪里定义", "UserController"),
        ("getUser怎么用？", "getUser"),
        ("LoginFormの検証はどこ", "LoginForm"),
        ("「LoginForm」の検証", "LoginForm"),
        ("UserController는 어디에 있나요", "UserController"),
        ("invoices.store在哪里", "invoices.store"),
    ],
)
def test_a_name_before_words_without_a_blank_is_a_name_in_a_sentence(query: str, name: str) -> None:
    asked = find_question_names(query)
    assert asked.names == (name,)
    assert not asked.is_bare
    assert not asked.is_relational, "it may ask for anything"


def test_a_type_that_describes_a_name_asks_for_nothing() -> None:
    named = find_question_names("Which migrations altered table invoices?")
    assert named.wanted_types == {"migration"}
    asked = find_question_names("Which tables does InvoiceController touch?")
    assert "table" in asked.wanted_types


def test_given_names_come_first_and_names_are_limited() -> None:
    given = {"route_name": "a.b", "controller_class": "C", "table_name": "invoices"}
    asked = find_question_names("what about FooBar", **given)
    assert asked.names == ("a.b", "C", "table:invoices", "FooBar")
    many = " ".join(f"NameOf{number}" for number in range(100))
    assert len(find_question_names(many).names) == MAX_NAMES


@pytest.mark.parametrize(
    "query",
    ["a/" * 10_000, "A" * 20_000, "a." * 10_000, "`" * 20_000, "aA" * 10_000, "a_" * 10_000],
    ids=["slashes", "capitals", "dots", "quotes", "humps", "underscores"],
)
def test_long_questions_take_no_longer_than_their_length(query: str) -> None:
    assert len(find_question_names(query).names) <= MAX_NAMES


def test_no_name_has_a_zero_byte_which_no_database_takes() -> None:
    names = find_question_names("what is `a\x00b` in `c.d\x00`?").names
    assert not any("\x00" in name for name in names)


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("send reminder", "sendreminder"),
        (" on model creating ", "onmodelcreating"),
        ("exception middleware", "exceptionmiddleware"),
        ("sha256 of file", "sha256offile"),
        ("reminder", None),
        ("who sends it?", None),
        ("2 reminders", None),
        ("a b c d e f g h i", None),
    ],
)
def test_joined_words_form_the_name_of_a_definition(query: str, name: str | None) -> None:
    assert join_words(query) == name


def test_joined_words_precede_the_other_names_and_all_of_them_lead() -> None:
    asked = find_question_names("the invoices table").with_joined("theinvoicestable")
    assert asked.names == ("theinvoicestable", "invoices")
    assert asked.is_bare
