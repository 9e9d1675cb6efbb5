from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.search.gathering import merge_equal_texts
from rag_assets.search.near_copies import Wording, have_same_meaning
from rag_assets.storage.index.model import Candidate


def candidate(id_: str, text: str, uri: str) -> Candidate:
    return Candidate(id_, f"document of {uri}", "key", 1.0, uri, text)


def test_equal_texts_are_one_hit_that_names_every_document() -> None:
    found = merge_equal_texts(
        [candidate("1", "a", "x.md"), candidate("2", "b", "y.md"), candidate("3", "a", "z.md")]
    )
    assert [(d.candidate.id, d.also) for d in found] == [("1", ("z.md",)), ("2", ())]


def test_a_text_that_stands_twice_in_one_document_names_it_once() -> None:
    found = merge_equal_texts([candidate("1", "a", "x.md"), candidate("2", "a", "x.md")])
    assert [(d.candidate.id, d.also) for d in found] == [("1", ())]


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz")), max_size=12))
def test_the_first_of_each_text_stays_in_its_place_and_no_uri_is_lost(
    given_: list[tuple[str, str]],
) -> None:
    candidates = [candidate(str(n), text, uri) for n, (text, uri) in enumerate(given_)]
    found = merge_equal_texts(candidates)
    assert [d.candidate.text_key for d in found] == list(dict.fromkeys(t for t, _ in given_))
    for distinct in found:
        text = distinct.candidate.text_key
        uris = {uri for other, uri in given_ if other == text}
        assert {distinct.candidate.uri, *distinct.also} == uris
        assert len(distinct.also) == len(uris) - 1


def test_of_equal_texts_the_one_beside_another_hit_is_kept() -> None:
    def at(id_: str, document: str, ordinal: int, text: str) -> Candidate:
        return Candidate(id_, document, "key", 1.0, f"{document}.md", text, ordinal)

    candidates = [
        at("1", "a", 0, "x"),
        at("2", "b", 0, "x"),
        at("3", "b", 1, "y"),
        at("4", "a", 1, "y"),
    ]
    assert [d.id for d in merge_equal_texts(candidates)] == ["1", "4"]


ENGLISH = (
    "The warehouse accepts deliveries on weekdays at the northern gate. Drivers report to the"
    " office, show the delivery note and wait until somebody has checked the seal of the"
    " container. Pallets weigh 500 kg and are stored below the cranes. Damaged goods are"
    " photographed and returned with the same truck, and the supplier is told about them."
)


@pytest.mark.parametrize(
    "change",
    [
        ("\u0020", "\r\n\t"),
        ("The warehouse", "THE WAREHOUSE"),
        ("office, show", "office - show"),
        ("told about them.", "told about them. Thank you for your help."),
    ],
)
def test_texts_that_say_the_same_are_alike(change: tuple[str, str]) -> None:
    other = ENGLISH.replace(*change)
    assert other != ENGLISH
    assert have_same_meaning(Wording(ENGLISH), Wording(other))
    assert have_same_meaning(Wording(other), Wording(ENGLISH))


@pytest.mark.parametrize(
    "change",
    [
        ("500 kg", "600 kg"),
        ("500 kg", "500 g"),
        ("500 kg", "-500 kg"),
        ("and are stored", "and are not stored"),
        ("below", "above"),
        ("northern", "Hamburg"),
        ("checked", "unchecked"),
        ("somebody", "nobody"),
        ("with the same truck", "in March with the same truck"),
        ("with the same truck", "with the same three trucks"),
        (" and the supplier is told about them", ""),
        ("accepts deliveries", "rejects deliveries"),
        ("Damaged goods", "Partially damaged goods"),
        ("told about them.", "told about them. This is no longer so."),
        ("the office, show the delivery note and wait", "the gate, hand over all keys and leave"),
    ],
)
def test_texts_that_differ_in_what_counts_are_not_alike(change: tuple[str, str]) -> None:
    other = ENGLISH.replace(*change)
    assert other != ENGLISH
    assert not have_same_meaning(Wording(ENGLISH), Wording(other))
    assert not have_same_meaning(Wording(other), Wording(ENGLISH))


OTHERS = {
    "German": (
        (
            "Das Lager nimmt an Werktagen Lieferungen am nördlichen Tor an. Fahrer melden"
            " sich im Büro, zeigen den Lieferschein und warten, bis jemand das Siegel des"
            " Containers geprüft hat. Paletten dürfen gestapelt werden. Die Frist beträgt"
            " 30 Tage nach Eingang der Rechnung."
        ),
        ("dürfen gestapelt", "dürfen nicht gestapelt"),
        ("30 Tage", "30 Wochen"),
        ("dürfen", "müssen"),
    ),
    "French": (
        (
            "L'entrepôt reçoit les livraisons les jours ouvrables à la porte nord. Les"
            " chauffeurs se présentent au bureau, montrent le bon de livraison et"
            " attendent que le sceau du conteneur soit vérifié. Les palettes peuvent être"
            " empilées. Le délai est de deux semaines."
        ),
        ("peuvent être", "ne peuvent être"),
        ("deux", "trois"),
        ("Le délai", "Jamais le délai"),
    ),
    "Russian": (
        (
            "Склад принимает поставки по рабочим дням у северных ворот. Водители приходят"
            " в контору, показывают накладную и ждут, пока пломбу контейнера проверят."
            " Поддоны можно ставить друг на друга до самого потолка. Срок оплаты"
            " составляет 30 дней со дня получения счёта."
        ),
        ("можно", "нельзя"),
        ("30 дней", "60 дней"),
        ("Поддоны можно", "Поддоны не можно"),
    ),
    "Turkish": (
        (
            "Depo iş günlerinde kuzey kapısında teslimat kabul eder. Sürücüler ofise"
            " gelir, irsaliyeyi gösterir ve konteyner mührü kontrol edilene kadar bekler."
            " Paletler üst üste konulmalıdır. Fatura geldikten otuz gün içinde ödeme"
            " yapılır ve makbuz ofise teslim edilir."
        ),
        ("konulmalıdır", "konulmamalıdır"),
        ("üst üste konulmalıdır", "üst üste değil konulmalıdır"),
    ),
    "Arabic": (
        (
            "يستقبل المستودع الشحنات في أيام العمل عند البوابة الشمالية. يتوجه السائقون"
            " إلى المكتب ويظهرون إشعار التسليم وينتظرون حتى يفحص أحد ختم الحاوية. يسمح"
            " بتكديس المنصات فوق بعضها في القاعة الكبيرة. مدة الدفع ثلاثون يوماً من"
            " استلام الفاتورة عند مكتب المحاسبة."
        ),
        ("يسمح", "لا يسمح"),
        ("الشمالية", "الجنوبية"),
    ),
    "Hindi": (
        (
            "गोदाम कार्य दिवसों पर उत्तरी द्वार पर माल स्वीकार करता है। चालक कार्यालय में"
            " जाते हैं और रसीद दिखाते हैं और मुहर की जाँच होने तक प्रतीक्षा करते हैं।"
            " पेटियों को एक दूसरे पर रखा जा सकता है। भुगतान की अवधि बिल मिलने के बाद ३०"
            " दिन की होती है।"
        ),
        ("जा सकता", "नहीं जा सकता"),
        ("३० दिन", "६० दिन"),
    ),
    "Chinese": (
        (
            "仓库在工作日于北门接收货物。司机到办公室登记，出示送货单，并等待工作人员检查集装箱的"
            "封条。托盘可以叠放在起重机旁边的区域。付款期限为收到发票之后三十天，损坏的货物由同一"
            "辆卡车退回。"
        ),
        ("可以", "不可以"),
        ("三十天", "六十天"),
        ("北门", "南门"),
    ),
    "Japanese": (
        (
            "倉庫は平日に北門で荷物を受け入れます。運転手は事務所に行き、納品書を見せて、係員がコ"
            "ンテナの封印を確認するまで待ちます。パレットは積み重ねることができます。支払期限は請"
            "求書の受領から30日です。"
        ),
        ("できます", "できません"),
        ("30日", "60日"),
    ),
    "Korean": (
        (
            "창고는 평일에 북문에서 화물을 받습니다. 운전사는 사무실에 가서 송장"
            "을 보여 주고 직원이 컨테이너의 봉인을 확인할 때까지 기다립니다."
            " 팔레트는 겹쳐 쌓을 수 있습니다. 지불 기한은 청구서를 받은 날부터"
            " 30일이며 파손된 화물은 같은 트럭으로 돌려보냅니다."
        ),
        ("있습니다", "없습니다"),
        ("30일", "60일"),
    ),
}


@pytest.mark.parametrize("language", OTHERS)
def test_figures_and_negations_keep_texts_apart_in_any_language(language: str) -> None:
    text, *changes = OTHERS[language]
    assert have_same_meaning(Wording(text), Wording(text.replace(" ", "\r\n")))
    for change in changes:
        other = text.replace(*change)
        assert other != text
        assert not have_same_meaning(Wording(text), Wording(other)), change
        assert not have_same_meaning(Wording(other), Wording(text)), change
