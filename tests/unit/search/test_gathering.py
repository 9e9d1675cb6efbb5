from dataclasses import replace
from itertools import pairwise
from random import Random
from unittest.mock import Mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rag_assets.search import gathering, near_copies
from rag_assets.search.gathering import (
    MAX_PARTS,
    are_adjoining,
    are_overlapping,
    get_document_id,
    group_items,
    merge_equal_texts,
    merge_near_copies,
    merge_passages,
    spread_documents,
)
from rag_assets.search.near_copies import Wording, have_same_meaning
from rag_assets.search.progress import Passage
from rag_assets.storage.index.model import SYMBOL, Candidate

TEXT = "One two three.\n\nFour five six.\nSeven eight nine.\n\nTen eleven."


def passage(
    start: int,
    end: int,
    ordinal: int = 0,
    *,
    document: str = "a",
    version: str = "1",
    **more: object,
) -> Passage:
    fields = {
        "text": TEXT[start:end], "start": start, "end": end, "ordinal": ordinal, "heading_path": [],
        "source_type": "file", "line_start": TEXT[:start].count("\n") + 1,
        "line_end": TEXT[:end].count("\n") + 1, **more,
    }  # fmt: skip
    id_ = f"{document}{version}{ordinal}"
    candidate = Candidate(id_, document, version, 1.0, f"files/{document}.md", id_, ordinal)
    return Passage(candidate, (), fields)


@given(
    st.lists(st.integers(0, len(TEXT)), min_size=4, max_size=12, unique=True),
    st.randoms(use_true_random=False),
)
def test_merged_overlapping_passages_are_the_whole_text(cuts: list[int], chance: Random) -> None:
    edges = sorted(cuts)
    parts = [passage(a, c, n) for n, (a, c) in enumerate(zip(edges, edges[2:], strict=False))]
    chance.shuffle(parts)
    groups = group_items(parts, get_document_id, are_adjoining, max_groups=99)
    assert sum(map(len, groups)) == len(parts)
    for group in groups:
        found = merge_passages(group)
        start, end = found.fields["start"], found.fields["end"]
        assert len(group) <= MAX_PARTS
        assert found.fields["text"] == TEXT[start:end]
        assert found.id == group[0].id
        assert found.fields["line_end"] == TEXT[:end].count("\n") + 1
        assert len(group) == 1 or [*found.parts] == sorted(
            group, key=lambda one: one.fields["start"]
        )


def test_merge_keeps_the_line_ends_between_passages() -> None:
    parts = passage(0, 14, 0), passage(16, 30, 1), passage(31, 48, 2)
    assert merge_passages(parts).fields["text"] == TEXT[:48]


@pytest.mark.parametrize(
    "other",
    [
        passage(16, 30, 1, version="2"),
        passage(16, 30, 1, document="b"),
        passage(16, 30, 2),
        passage(16, 30, 1, sheet="Costs"),
        passage(16, 30, 1, source_type="block"),
        passage(16, 30, 1, metadata={SYMBOL: "App\\Pump"}),
        passage(16, 30, 1, text="Four five."),
        passage(10, 30, 1, text="x" * 20),
        passage(50, 61, 1),
    ],
)
def test_passages_with_something_between_them_are_not_adjoining(other: Passage) -> None:
    assert not are_adjoining(passage(0, 14), other)
    assert not are_adjoining(other, passage(0, 14))


def test_only_a_common_text_overlaps() -> None:
    assert are_adjoining(passage(0, 14), passage(16, 30, 1))
    assert not are_overlapping(passage(0, 14), passage(16, 30, 1))
    assert are_overlapping(passage(0, 20), passage(16, 30, 1))


def test_passages_are_adjoining_if_the_same_documents_hold_both() -> None:
    first, second = passage(0, 14), passage(10, 30, 1)
    copied = replace(second, also=("u", "v"))
    for of in (are_adjoining, are_overlapping):
        assert not of(first, copied)
        assert of(replace(first, also=("v", "u")), copied)


def test_merge_names_headings_that_all_parts_have_in_common() -> None:
    first = passage(0, 14, 0, heading_path=["A", "B"], page=1, block_id=["x"], block_starts=[0])
    second = passage(16, 30, 1, heading_path=["A", "C"], page=2, block_id=["y"], block_starts=[16])
    copies = [Passage(one.candidate, ("u", "v"), one.fields) for one in (second, first)]
    found = merge_passages(copies)
    assert found.also == ("u", "v")
    assert (found.fields["heading_path"], found.fields["page"]) == (["A"], 1)
    assert (found.fields["block_id"], found.fields["block_starts"]) == (["x", "y"], [0, 16])
    assert found.fields["ordinal"] == 1, "of the best one"


def test_spread_gives_places_to_documents_that_are_near_alone() -> None:
    near = [("a", 9.0), ("a", 8.9), ("a", 8.8), ("a", 8.7), ("a", 8.0), ("b", 7.5), ("c", 6.0)]
    assert shown(near) == "aabaaac"
    far = [(name, score if name == "a" else score - 4) for name, score in near]
    assert shown(far) == "aaaaabc"
    assert shown([("a", 3.0), ("a", 2.0), ("a", 1.0)]) == "aaa"
    assert shown([]) == ""


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 1)), max_size=9),
    st.floats(0.01, 100),
    st.floats(-5, 5),
)
def test_spread_keeps_the_order_of_each_document_whatever_the_scale(
    items: list[tuple[str, float]], factor: float, shift: float
) -> None:
    items = sorted(((name, round(score, 3)) for name, score in items), key=lambda one: -one[1])
    numbered = list(enumerate(items))
    found = spread_documents(numbered, lambda one: one[1][0], [score for _, (_, score) in numbered])
    assert sorted(found) == numbered
    for name in "abc":
        places = [at for at, (of, _) in found if of == name]
        assert all(one < other for one, other in pairwise(places))


def shown(items: list[tuple[str, float]]) -> str:
    return "".join(
        name for name, _ in spread_documents(items, lambda one: one[0], [s for _, s in items])
    )


def test_of_equally_good_copies_the_newer_one_is_shown() -> None:
    old = passage(0, 30, document="a", modified_at="2024-01-01T00:00:00+00:00")
    new = passage(0, 30, document="b", modified_at="2025-01-01T00:00:00+00:00")
    [same] = merge_near_copies([old, new], {old.id: 1.0, new.id: 1.0})
    assert (same.candidate.uri, same.also) == ("files/b.md", ("files/a.md",))
    [better] = merge_near_copies([old, new], {old.id: 1.0, new.id: 0.9})
    assert (better.candidate.uri, better.also) == ("files/a.md", ("files/b.md",))
    dated = passage(0, 30, document="c", title="Edition 2026")
    assert merge_near_copies([old, dated], {}) == [old, dated]


WORDS = [f"word{chr(97 + at % 26)}{chr(97 + at // 26)}" for at in range(400)]


@pytest.mark.parametrize("most_in_pairs", [0, 200])
def test_copies_share_a_place_whatever_their_number_and_edits(
    monkeypatch: pytest.MonkeyPatch, most_in_pairs: int
) -> None:
    monkeypatch.setattr(gathering, "_MAX_COMPARED_IN_PAIRS", most_in_pairs)
    chance = Random(4)
    texts = [" ".join(chance.choices(WORDS, k=40)) for _ in range(20)]
    edited = [f"{text} {extra}" for text in texts for extra in ("", "!", "- -", "2", "not so")]
    passages = [passage(0, 30, at, document=str(at), text=text) for at, text in enumerate(edited)]
    chance.shuffle(passages)
    expected: list[Passage] = []
    for one in passages:
        wording = Wording(one.fields["text"])
        if not any(have_same_meaning(Wording(other.fields["text"]), wording) for other in expected):
            expected.append(one)
    found = merge_near_copies(passages, {})
    assert [one.id for one in found] == [one.id for one in expected]
    assert len(found) == 3 * len(texts), "alone with a figure, and with a negation"


def test_different_passages_are_not_compared_in_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = Random(5)
    texts = [" ".join(chance.choices(WORDS, k=60)) for _ in range(300)]
    texts += [f"{texts[0]} {number}" for number in range(300)]
    compared: list[int] = []

    def counted(one: Wording, other: Wording) -> bool:
        compared.append(1)
        return have_same_meaning(one, other)

    monkeypatch.setattr("rag_assets.search.gathering.have_same_meaning", counted)
    intersections = Mock(side_effect=near_copies.may_be_copies)
    monkeypatch.setattr(gathering, "may_be_copies", intersections)
    passages = [passage(0, 30, at, document=str(at), text=text) for at, text in enumerate(texts)]
    assert len(merge_near_copies(passages, {})) == len(texts)
    assert intersections.call_count + len(compared) < len(texts)


def candidate(id_: str, text: str, uri: str) -> Candidate:
    return Candidate(id_, f"document of {uri}", "key", 1.0, uri, text)


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz")), max_size=12))
@example([("a", "x"), ("b", "y"), ("a", "z")])
@example([("a", "x"), ("a", "x")])
def test_the_first_of_equal_texts_keeps_place_and_all_uris(given_: list[tuple[str, str]]) -> None:
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

    beside = [at("1", "a", 0, "x"), at("4", "a", 1, "y")]
    others = [at("2", "b", 0, "x"), at("3", "b", 1, "y")]
    found = merge_equal_texts([beside[0], *others, beside[1]])
    assert [d.id for d in found] == ["1", "4"]


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
