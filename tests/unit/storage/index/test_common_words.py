import pytest

from rag_assets.storage.index.common_words import (
    STOP_WORDS,
    find_prose_language,
    find_sentence_language,
    find_significant_words,
)
from rag_assets.storage.index.terms import parse_query_words


@pytest.mark.parametrize(
    ("query", "left"),
    [
        ("What should a client do about TBK-4092?", "client TBK-4092"),
        ("How do I reset the lock_timeout of IT in the US?", "reset lock_timeout IT US"),
        ("Wie lange dauert die Probezeit?", "lange dauert Probezeit"),
        ("Wo steht, was WER in der Not tut?", "steht WER Not tut"),
        ("À quoi sert l'assurance ?", "sert l'assurance"),
        ("¿Cuánto cuesta la licencia?", "cuesta licencia"),
        ("Какой порядок возврата товара?", "порядок возврата товара"),
        ("Ποια είναι η εγγύηση;", "εγγύηση"),
        ("वारंटी की अवधि क्या है?", "वारंटी अवधि"),
        ("ที่นี่ใช้API กี่ปี", "ที่นี่ใช้ API กี่ปี"),
        ("សៀវភៅ\u200bថ្មី ၂၀၂၄ မြို့တော်", "សៀវភៅ\u200bថ្មី ၂၀၂၄ မြို့တော်"),
        ("what is this and how", "what is this and how"),
        ("die casting machine", "die casting machine"),
        ("io error", "io error"),
        ("van rental policy", "van rental policy"),
        ("?!", ""),
    ],
)
def test_common_words_are_dropped(query: str, left: str) -> None:
    assert " ".join(word for _, word in find_significant_words(query)) == left


def test_a_ranking_by_words_searches_significant_words_only() -> None:
    words = parse_query_words("What does the handheld do?")
    assert [*words.terms] == [*words.title_words] == ["handheld"]


@pytest.mark.parametrize(
    ("query", "language"),
    [
        ("What does the vuln() function do?", "en"),
        ("How long may I stay in bed before I need a certificate?", "en"),
        ("Wie lange darf ich im Bett bleiben, bevor ich ein Attest brauche?", "de"),
        ("Сколько дней можно болеть без справки?", "ru"),
        ("¿Cuánto tiempo puedo quedarme en la cama?", "es"),
        ("Combien de temps puis-je rester au lit ?", "fr"),
        ("كم يوما يمكن أن أبقى في السرير؟", "ar"),
        ("valve pressure E-4711", None),
        ("Ventildruck E-4711", None),
        ("阀门泄漏", None),
        ("", None),
        ("Süper Kupa'yı hangi takım kazandı?", "tr"),
        ("Đội nào thắng giải bóng đá?", "vi"),
        ("Сколько стоит?", "ru"),
        ("ใครเป็นผู้เขียนหนังสือเล่มนี้", "th"),
        ("哪位演员因主演生病而代替出演神秘博士？", "zh"),
        ("集中豪雨が起こりやすい時期は？", "ja"),
        ("python go to next page", None),
        ("What does Kündigungsfrist mean?", "en"),
        ("Who was the mayor of Łódź and Iaşi?", "en"),
        ("lock_timeout des Servers", None),
        ("tenant landlord deposit", None),
        ("Notre Dame de Paris", None),
        ("Woher stammen diese Codenamen?", "de"),
        ("Wo steht die Frist", "de"),
    ],
)
def test_a_sentence_has_common_words_of_its_language(query: str, language: str | None) -> None:
    assert find_sentence_language(query) == language


def test_the_language_of_prose_is_that_of_most_common_words() -> None:
    german = "Die Ware wird geprüft. Danach gibt der Kunde sie frei, wenn er will."
    assert find_prose_language(german) == "de"
    assert find_prose_language(f"{german} The customer says OK.") == "de"
    assert find_prose_language("Lieferschein 4711") is None


def test_lists_hold_words_as_queries_are_compared_with_them() -> None:
    for language, words in STOP_WORDS.items():
        assert all(word == word.lower() for word in words), language
