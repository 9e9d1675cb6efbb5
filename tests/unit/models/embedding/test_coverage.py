import pytest

from rag_assets.models.embedding.coverage import UNREAD, assess_reading, covers_words
from rag_assets.models.embedding.local import OnnxEmbedder
from rag_assets.models.providers.local import DeterministicEmbedder

READ = (
    "How many weeks may the other parent stay at home?",
    "E-4021",
    "Wie viele Wochen darf der andere Elternteil zu Hause bleiben?",
    "¿Cuántas semanas puede quedarse en casa el otro progenitor?",
    "Diğer ebeveyn kaç hafta evde kalabilir?",
    "Người cha hoặc mẹ còn lại được nghỉ ở nhà bao nhiêu tuần?",
    "Ile tygodni może zostać w domu drugi rodzic? Zażółć gęślą jaźń",
    "The error Ошибка of the printer on the second floor",
    "what does ∑ mean, and what 42 €?",
)
UNREAD_QUESTIONS = (
    "كم أسبوعا يمكن للوالد الآخر البقاء في المنزل؟",
    "Сколько недель второй родитель может оставаться дома?",
    "Πόσες εβδομάδες μπορεί να μείνει στο σπίτι ο άλλος γονέας;",
    "दूसरे माता-पिता कितने सप्ताह घर पर रह सकते हैं?", "ผู้ปกครองอีกคนอยู่บ้านได้กี่สัปดาห์",
    "另一位家长可以在家待几周？", "다른 부모는 몇 주 동안 집에 있을 수 있습니까?",
    "כמה שבועות ההורה השני יכול להישאר בבית?",
)  # fmt: skip


@pytest.fixture(scope="module")
def shipped() -> OnnxEmbedder:
    return OnnxEmbedder()


@pytest.mark.parametrize("text", READ)
def test_latin_letters_are_read(shipped: OnnxEmbedder, text: str) -> None:
    assert covers_words(shipped, text)


@pytest.mark.parametrize("text", UNREAD_QUESTIONS)
def test_a_script_outside_the_vocabulary_is_unread(shipped: OnnxEmbedder, text: str) -> None:
    assert not covers_words(shipped, text)


def test_an_embedder_without_a_tokenizer_reads_all() -> None:
    assert all(covers_words(DeterministicEmbedder(), text) for text in UNREAD_QUESTIONS)


def test_the_unread_share_is_that_of_the_window(shipped: OnnxEmbedder) -> None:
    share = shipped.compute_unread_share(["Many words of plain English. " * 200])
    assert share is not None
    assert share < UNREAD / 10


def test_the_unread_share_without_letters_is_zero(shipped: OnnxEmbedder) -> None:
    assert shipped.compute_unread_share(["12 — 34", ""]) == 0


@pytest.mark.parametrize(
    ("text", "language", "reading"),
    [
        (READ[0], "en", "known"),
        (READ[2], "de", "foreign"),
        (READ[1], None, "known"),
        ("", None, "known"),
        (READ[4], None, "foreign"),
        (READ[5], None, "foreign"),
        ("北海道の中で本州の梅雨末期に大雨が降る事がある地域は", None, "foreign"),
        ("Zażółć gęślą jaźń", None, "foreign"),
        ("Where does Mr Müller keep the keys of the office?", None, "known"),
        (READ[7], None, "known"),
        ("Café opening hours", None, "known"),
        ("Müller invoice", None, "known"),
        ("naïve Bayes classifier", None, "known"),
        ("5 µm filter", None, "known"),
        ("α decay", None, "known"),
        ("Öffnungszeiten Café", None, "foreign"),
        ("Kündigungsfrist", None, "foreign"),
        ("如何使用 Elasticsearch API", None, "foreign"),
        (UNREAD_QUESTIONS[0], "ar", "unread"),
    ],
)
def test_a_language_that_the_model_card_does_not_name_is_foreign(
    shipped: OnnxEmbedder, text: str, language: str | None, reading: str
) -> None:
    assert shipped.languages == {"en"}
    assert assess_reading(shipped, text, language) == reading
    assert assess_reading(DeterministicEmbedder(), text, language) == "known"
