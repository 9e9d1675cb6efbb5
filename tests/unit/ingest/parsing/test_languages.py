import pytest

from rag_assets.ingest.parsing.languages import PROSE, _load_model, detect_language, parse_language
from rag_assets.ingest.parsing.media_types import MARKDOWN, SOURCE_CODE, SUFFIXES
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.ingest.parsing.registry import parse

SENTENCES = {
    "ar": "يجب على كل من يعمل في المستودع أن يقرأ تعليمات السلامة قبل بداية العمل في الصباح.",
    "cs": "Každý zaměstnanec skladu si musí před začátkem směny přečíst bezpečnostní pokyny.",
    "da": "Alle medarbejdere på lageret skal læse sikkerhedsreglerne, før de begynder arbejdet.",
    "de": "Wer im Lager arbeitet, muss vor Beginn der Schicht die Sicherheitshinweise lesen.",
    "el": "Όποιος εργάζεται στην αποθήκη πρέπει να διαβάσει τις οδηγίες πριν από τη βάρδια.",
    "en": "Whoever works in the depot has to read the safety instructions before the shift.",
    "es": "Quien trabaja en el almacén debe leer las instrucciones de seguridad antes del turno.",
    "fi": "Jokaisen varastossa työskentelevän on luettava turvallisuusohjeet ennen vuoroa.",
    "fr": "Toute personne qui travaille au dépôt doit lire les consignes avant son service.",
    "he": "כל מי שעובד במחסן חייב לקרוא את הוראות הבטיחות לפני תחילת המשמרת בבוקר.",
    "hi": "गोदाम में काम करने वाले हर व्यक्ति को पाली शुरू होने से पहले निर्देश पढ़ने चाहिए।",
    "it": "Chi lavora nel magazzino deve leggere le istruzioni di sicurezza prima del turno.",
    "ja": "倉庫で働く人は全員、作業を始める前に安全に関する説明書を必ず読んでください。",
    "ko": "창고에서 일하는 모든 사람은 근무를 시작하기 전에 안전 수칙을 읽어야 합니다.",
    "nl": "Iedereen die in het magazijn werkt moet voor de dienst de voorschriften lezen.",
    "pl": "Każdy, kto pracuje w magazynie, musi przed zmianą przeczytać zasady bezpieczeństwa.",
    "pt": "Quem trabalha no armazém deve ler as instruções de segurança antes do turno.",
    "ru": "Каждый, кто работает на складе, должен прочитать инструкцию перед началом смены.",
    "sv": "Alla som arbetar på lagret måste läsa säkerhetsreglerna innan skiftet börjar.",
    "tr": "Depoda çalışan herkes vardiya başlamadan önce güvenlik talimatlarını okumalıdır.",
    "uk": "Кожен, хто працює на складі, повинен прочитати інструкцію перед початком зміни.",
    "zh": "在仓库工作的每个人都必须在开始工作之前阅读安全说明,并且在表格上签名。",
}


def parsed(text: str, media_type: str = MARKDOWN) -> ParsedText:
    return parse(text.encode(), media_type)


@pytest.mark.parametrize("code", SENTENCES)
def test_a_sentence_is_enough(code: str) -> None:
    assert detect_language(parsed(SENTENCES[code])) == code


@pytest.mark.parametrize(
    "text",
    [
        "-",
        "Guten Morgen.",
        "12 345,67 / 98.76 = 0x7F3A --verbose https://example.com/a/b?c=d " * 3,
        " ".join([SENTENCES["de"], SENTENCES["en"], SENTENCES["fr"], SENTENCES["pl"]]),
        "Lorem xkcd qwrt zxcv bnmp hjkl dfgh wrtp mnbv kjhg trwq plmk vbnx zqwr hgfd ytrw",
    ],
    ids=["nothing", "short", "numbers", "mixed", "noise"],
)
def test_an_uncertain_language_is_none(text: str) -> None:
    assert detect_language(parsed(text)) is None


def test_code_and_front_matter_in_a_document_do_not_count() -> None:
    code = "for value in values: print('the value of this line is', value)\n" * 20
    text = f"---\ndescription: what is written here is for programs only\n---\n\n```\n{code}\n```\n"
    assert detect_language(parsed(f"{text}\n{SENTENCES['pl']}\n")) == "pl"
    assert detect_language(parsed(text)) is None


def test_the_sample_is_of_all_parts_of_a_document() -> None:
    english, german = [f"{SENTENCES[code]}\n\n" for code in ("en", "de")]
    assert detect_language(parsed(20 * german + english)) == "de"
    assert detect_language(parsed(english + 20 * german)) == "de"
    assert detect_language(parsed(10 * english + 10 * german)) is None


def test_short_headings_do_not_stand_for_what_is_below_them() -> None:
    headings = ("Cargo", "Load", "Transport", "Service", "Team", "Version", "Status", "Service")
    sections = [f"## {heading}\n\n{SENTENCES['nl']}\n" for heading in headings]
    assert detect_language(parsed("\n".join(sections))) == "nl"


def test_source_code_is_in_the_language_of_its_media_type() -> None:
    comment = f"# {SENTENCES['de']}\nprint(1)\n"
    assert detect_language(parsed(comment, SUFFIXES[".py"])) == "python"
    assert detect_language(ParsedText("", (), media_type=SUFFIXES[".cpp"])) == "c++"
    assert all(detect_language(ParsedText("", (), media_type=kind)) for kind in SOURCE_CODE)


def test_the_codes_of_filters_are_those_of_the_detector() -> None:
    labels, _ = _load_model().predict("harbour", k=-1, threshold=-1.0)
    codes = {label.removeprefix("__label__") for label in labels}
    assert {code for code in codes if len(code) == 2} == PROSE


@pytest.mark.parametrize(
    ("given", "named"), [("de", "de"), ("EN-GB", "en"), ("zh_Hant", "zh"), ("Python", "python")]
)
def test_a_language_is_named_in_any_case_and_by_its_tag(given: str, named: str) -> None:
    assert parse_language(given) == named


@pytest.mark.parametrize("given", ["German", "xx", "en GB", "", "deu"])
def test_a_language_that_no_document_can_have_is_refused(given: str) -> None:
    with pytest.raises(ValueError, match="ISO 639-1"):
        parse_language(given)
