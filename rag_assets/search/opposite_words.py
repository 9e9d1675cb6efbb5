"""Words that negate, restrict or exclude one another, in the most common languages of passages.

Only certain cases are listed. A word that is missing here never makes a true claim wrong, since
unlisted words are not compared. Words are stemmed before they are compared, so only irregular forms
are listed separately.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final

STEMMERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "en": "english",
        "de": "german",
        "fr": "french",
        "es": "spanish",
        "it": "italian",
        "pt": "portuguese",
        "nl": "dutch",
        "ru": "russian",
        "ar": "arabic",
        "sv": "swedish",
        "da": "danish",
        "no": "norwegian",
    }
)
"""Stemmer names by language code."""
UNSPACED: Final = frozenset({"zh", "ja"})
"""Languages written without blanks between words."""

NEGATORS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "en": "not no never cannot can't nobody none nothing neither nor nowhere n't",
        "de": "nicht kein keine keinen keinem keiner keines nie niemals niemand nichts",
        "fr": "ne n pas jamais aucun aucune rien personne",
        "es": "no nunca jamás nadie nada ningún ninguno ninguna",
        "it": "non mai nessuno nessuna nessun niente nulla",
        "pt": "não nunca jamais ninguém nada nenhum nenhuma",
        "nl": "niet geen nooit niemand niets",
        "ru": "не нет ни никогда никто ничего нельзя",
        "ar": "لا لم لن ليس ليست غير",
        "sv": "inte ej aldrig ingen inget inga",
        "da": "ikke aldrig ingen intet",
        "no": "ikke aldri ingen intet",
        "zh": "不 没 没有 未 无 無 無法 无法 非 无需 不必 不得 不能 勿",
        "ja": "ない ません なく ず ぬ 無 不 なかった なければ",
    }
)
"""Words that negate their clause."""

RESTRICTORS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "en": "only without unless except until till before hardly barely rarely seldom instead"
        " rather than"
        " free lack lacks miss missing unable fail fails failed away otherwise prohibited forbidden"
        " banned avoid prevent prevents stop refuse longer yet least most more less both too"
        " else other",
        "de": "nur ohne außer bis bevor ehe kaum selten statt sondern frei fehlt fehlen verboten"
        " untersagt"
        " andere anderen verhindert mehr sonst noch weniger mindestens höchstens ausschließlich",
        "fr": "que qu sans sauf seulement uniquement jusqu avant presque guère interdit plus"
        " sinon encore"
        " moins mais manque",
        "es": "sin sólo solo solamente salvo excepto hasta antes apenas prohibido sino más menos"
        " todavía"
        " gratis falta",
        "it": "senza solo soltanto tranne eccetto fino prima vietato più meno ancora bensì",
        "pt": "sem só somente apenas exceto até antes proibido mais menos ainda senão",
        "nl": "zonder alleen slechts behalve tot voordat verboden meer minder nog maar",
        "ru": "без только кроме пока до запрещено лишь более менее больше меньше ещё бесплатно",
        "ar": "بدون دون ممنوع فقط إلا سوى حتى قبل يمنع أكثر أقل",
        "sv": "utan bara endast utom tills innan förbjudet mer mindre",
        "da": "uden kun undtagen indtil før forbudt mere mindre",
        "no": "uten bare unntatt inntil før forbudt mer mindre",
        "zh": "禁止 只 仅 除非 除了 之前 免费 另外",
        "ja": "禁止 だけ のみ しか まで 以外",
    }
)
"""Words next to which a negated phrase may mean the same as its opposite: not before, no more
than."""

CLAUSES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "en": "and but or nor which who that because since so while whereas when if unless until"
        " although though before after as",
        "de": "und aber oder sondern weil da denn dass wenn falls obwohl während bevor nachdem"
        " damit",
        "fr": "et mais ou qui que parce car si quand lorsque puisque alors donc",
        "es": "y e pero o que porque si cuando aunque mientras sino",
        "it": "e ma o che perché se quando mentre",
        "pt": "e mas ou que porque se quando enquanto",
        "nl": "en maar of die dat omdat als wanneer terwijl",
        "ru": "и а но или который которая которые что потому если когда пока",
        "ar": "لكن أو إذا لأن عندما ثم",
        "sv": "och men eller som att eftersom om när",
        "da": "og men eller som at fordi hvis når",
        "no": "og men eller som at fordi hvis når",
    }
)
"""Words that start another clause."""

_OPPOSITES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "en": """
            ~before prior preceding : after following afterwards
            ~more greater higher larger bigger longer faster heavier older earlier stronger better
              : fewer less lower smaller shorter slower lighter younger later weaker worse
            ~above over exceeds exceed exceeding : below under beneath
            increase increased rise rises rose risen rising grow grew grown growth gain gained
              : decrease decreased fall falls fell fallen falling drop dropped decline shrink shrank
              shrunk reduce reduced reduction loss
            add added append : remove removed delete deleted
            enable enabled activate activated : disable disabled deactivate deactivated
            ~on : off
            open opened opens : close closed closes shut
            begin begins began begun start started : end ended stop stopped finish finished
            beginning : end
            continue continued : stop stopped cease
            allow allowed permit permitted authorized : forbid forbade forbidden prohibit prohibited
              ban banned
            accept accepted approve approved : reject rejected refuse refused deny denied decline
            grant granted : revoke revoked withdraw withdrawn deny denied refuse refused
            include included including covered : exclude excluded excluding
            encrypt encrypted : decrypt decrypted unencrypted plaintext
            lock locked : unlock unlocked
            connect connected attach attached : disconnect disconnected detach detached
            ~buy buys bought purchase purchased : sell sells sold
            ~import imported : export exported
            ~upload uploaded : download downloaded
            ~send sends sent : receive receives received
            ~lend lent : borrow borrowed
            read reads : write writes wrote written
            enter entered : leave left exit exited
            arrive arrives arrived arrival : depart departs departed departure leave leaves
            pass passed passes succeed succeeded success : fail failed fails failure
            win wins won : lose loses lost
            public : private
            internal : external
            indoor indoors : outdoor outdoors
            optional voluntary : mandatory obligatory compulsory must
            ~may can could might : must
            automatic automatically : manual manually
            synchronous synchronously : asynchronous asynchronously
            positive : negative
            true : false
            valid : invalid
            active : inactive
            legal : illegal
            safe : unsafe dangerous
            first : last
            top : bottom
            upper : lower
            front : back rear
            left : right
            north northern : south southern
            east eastern : west western
            horizontal horizontally : vertical vertically
            inside : outside
            early : late
            early earlier earliest : late later latest
            hot warm : cold cool
            wet : dry
            male males : female females
            temporary temporarily : permanent permanently
            minimum minimal least : maximum maximal most
            shortest smallest lowest fewest slowest youngest
              : longest largest biggest highest most fastest oldest
            all every each always entire entirely whole : some several few sometimes partly most
            always : sometimes rarely seldom occasionally
            many much : few little
            half : double twice : triple
            daily : weekly : monthly : quarterly : yearly annually annual : hourly
            ~if : unless
            ~with : without
            monday mondays : tuesday tuesdays : wednesday wednesdays : thursday thursdays
              : friday fridays : saturday saturdays : sunday sundays
            morning mornings : afternoon afternoons : evening evenings : night nights
            dawn sunrise : dusk sunset
            spring : summer : autumn fall : winter
            red : green : blue : yellow : orange : black : white : grey gray : brown : purple""",
        "de": """
            ~bis : nach
            ~vor bevor : nach nachdem
            ~mehr höher größer länger schneller schwerer älter früher : weniger niedriger kleiner
              kürzer langsamer leichter jünger später
            ~über oberhalb : unter unterhalb
            steigt steigen stieg gestiegen erhöht erhöhen zunehmen zunahme wächst
              : sinkt sinken sank gesunken fällt fallen fiel gefallen senkt gesenkt abnehmen abnahme
            öffnet öffnen geöffnet offen : schließt schließen geschlossen
            erlaubt gestattet zulässig : verboten untersagt unzulässig
            beginnt beginnen begann begonnen beginn : endet enden endete ende
            aktiviert eingeschaltet : deaktiviert ausgeschaltet abgeschaltet
            ~darf dürfen kann können : must
            freiwillig optional : verpflichtend obligatorisch zwingend
            automatisch : manuell
            öffentlich : privat
            intern : extern
            ~mit : ohne
            gültig : ungültig
            alle jeder jede jedes sämtliche immer : einige manche wenige manchmal
            oben : unten
            links : rechts
            erste ersten : letzte letzten
            täglich : wöchentlich : monatlich : jährlich : stündlich
            mindestens : höchstens
            montag : dienstag : mittwoch : donnerstag : freitag : samstag sonnabend : sonntag""",
        "fr": """
            ~avant : après
            ~plus supérieur supérieure : moins inférieur inférieure
            augmente augmenter augmenté augmentation hausse : diminue diminuer diminué diminution
              baisse
            ouvert ouverte ouvre ouvrir : fermé fermée ferme fermer
            commence commencer début : finit finir termine terminer fin
            autorisé autorisée permis permise : interdit interdite défendu
            activé activée : désactivé désactivée
            ~peut peuvent : must
            facultatif facultative : obligatoire
            automatique automatiquement : manuel manuelle manuellement
            public publique : privé privée
            interne : externe
            ~avec : sans
            tous toutes chaque toujours : quelques certains certaines parfois
            premier première : dernier dernière
            lundi : mardi : mercredi : jeudi : vendredi : samedi : dimanche""",
        "es": """
            ~antes : después
            ~más mayor mayores superior : menos menor menores inferior
            aumenta aumentar aumentó aumento subió : disminuye disminuir disminuyó disminución bajó
            abierto abierta abre abrir : cerrado cerrada cierra cerrar
            empieza empezar comienza comenzar inicio : termina terminar acaba acabar fin
            permitido permitida : prohibido prohibida
            ~puede pueden : must
            opcional voluntario : obligatorio obligatoria
            automático automáticamente : manual manualmente
            público pública : privado privada
            interno interna : externo externa
            ~con : sin
            todos todas siempre : algunos algunas pocos
            mínimo mínima : máximo máxima
            primero primera : último última
            lunes : martes : miércoles : jueves : viernes : sábado : domingo""",
        "it": """
            ~prima : dopo
            ~più maggiore superiore : meno minore inferiore
            aumenta aumentare aumentato : diminuisce diminuire diminuito
            aperto aperta : chiuso chiusa
            consentito permesso : vietato proibito
            ~con : senza
            tutti tutte sempre : alcuni alcune
            minimo : massimo""",
        "pt": """
            ~antes : depois após
            ~mais maior superior : menos menor inferior
            aumenta aumentar aumentou : diminui diminuir diminuiu
            aberto aberta : fechado fechada
            permitido permitida : proibido proibida
            ~com : sem
            todos todas sempre : alguns algumas
            mínimo : máximo""",
        "nl": """
            ~voor voordat : na nadat
            ~meer hoger groter : minder lager kleiner
            stijgt stijgen gestegen : daalt dalen gedaald
            open geopend : gesloten dicht
            toegestaan : verboten
            ~met : zonder
            alle elke altijd : sommige enkele""",
        "ru": """
            ~до перед : после
            ~более больше выше старше : менее меньше ниже младше
            вырос выросла выросли увеличился увеличилась увеличить : снизился снизилась уменьшился
              уменьшилась уменьшить
            открыт открыта открыто : закрыт закрыта закрыто
            разрешено разрешён : запрещено запрещён
            ~с со : без
            все всегда каждый : некоторые иногда""",
        "ar": """
            ~قبل : بعد
            ~أكثر : أقل
            مسموح : ممنوع محظور
            مفتوح : مغلق""",
        "zh": """
            ~之前 以前 : 之后 以后
            增加 上升 提高 : 减少 下降 降低
            允许 可以 : 禁止
            开放 打开 开启 : 关闭 闭馆
            必须 : 可选
            所有 全部 : 部分 有些
            最多 至多 : 最少 至少""",
        "ja": """
            ~前に : 後に
            増加 上昇 : 減少 低下
            許可 : 禁止
            開館 : 閉館 休館
            有料 : 無料
            必須 : 任意
            すべて 全員 : 一部
            最大 : 最小""",
    }
)
"""Groups of words, one group per line, with sides separated by a colon. The sides of a group
exclude each other if both texts are about the same thing. With ~, the sides are converses: A
before B means B after A.
"""

_ROLES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "en": "tenant lessee : landlord lessor, buyer purchaser : seller vendor, employer :"
        " employee, lender : borrower, sender : recipient addressee, teacher : student pupil,"
        " doctor physician : patient, plaintiff : defendant, parent : child, landlord : lodger,"
        " client : server, insurer : insured policyholder, creditor : debtor, host : guest,"
        " licensor : licensee, publisher : subscriber, producer : consumer, source : target"
        " destination, primary : secondary, master : replica, upstream : downstream, fridge"
        " refrigerator : freezer, mother : father, son : daughter, brother : sister, husband :"
        " wife, input : output, debit : credit, supply : demand",
        "de": "mieter mieterin : vermieter vermieterin, käufer käuferin : verkäufer verkäuferin,"
        " arbeitgeber arbeitgeberin : arbeitnehmer arbeitnehmerin, absender : empfänger, gläubiger"
        " : schuldner, lehrer lehrerin : schüler schülerin, arzt ärztin : patient patientin,"
        " kläger klägerin : beklagte beklagter, eltern : kind kinder, quelle : ziel, mutter :"
        " vater, eingang : ausgang, soll : haben",
    }
)
"""Pairs of roles that nobody has in the same position at the same time; separated by commas."""

_DENYING: Final[Mapping[str, str]] = MappingProxyType(
    {
        "en": "reject rejection refuse refusal deny denial disable deactivate stop cease fail"
        " failure"
        " forbid forbidden prohibit ban exclude close lock revoke remove delete lose omit ignore"
        " skip"
        " expire off optional voluntary inactive empty",
        "de": "abgelehnt ablehnen verweigert verweigern gestoppt scheitert fehlgeschlagen gesperrt"
        " entfernt gelöscht verfällt geschlossen aus ausgeschaltet deaktiviert leer freiwillig",
        "fr": "refusé refuse rejeté rejette échoue échec supprimé arrêté expire fermé désactivé",
        "es": "rechazado rechaza denegado falla fallo eliminado detenido caduca"
        " cerrado desactivado",
        "it": "rifiutato negato fallisce eliminato scade",
        "pt": "recusado negado falha eliminado expira",
        "nl": "geweigerd afgewezen mislukt verwijderd verloopt",
        "ru": "отклонён отклонить отказано отказать удалён заблокирован истекает",
    }
)
"""Words with a negative meaning. Such a word may mean the same as the negation of something
else."""

_IRREGULAR: Final = """
write wrote written
keep kept
send sent
pay paid
hold held
make made
take took taken
give gave given
sell sold
buy bought
build built
find found
lose lost
begin began begun
show shown
know knew known
choose chose chosen
break broke broken
draw drew drawn
drive drove driven
eat ate eaten
fall fell fallen
grow grew grown
rise rose risen
speak spoke spoken
bring brought
teach taught
catch caught
meet met
lead led
feel felt
mean meant
spend spent
lend lent
say said
stand stood
win won
see saw seen
wear wore worn
shrink shrank shrunk
forbid forbade forbidden
withdraw withdrew withdrawn
"""
IRREGULAR: Final[Mapping[str, str]] = MappingProxyType(
    {word: base for base, *words in map(str.split, _IRREGULAR.split("\n")[1:-1]) for word in words}
)
"""Base forms of English verbs by irregular form, which a stemmer does not map to the base form."""

NECESSITY: Final = "must"
_NECESSARY: Final[Mapping[str, str]] = MappingProxyType(
    {
        "en": "must need needs needed required requires require necessary",
        "de": "muss müssen brauchen braucht nötig notwendig erforderlich",
        "fr": "doit doivent nécessaire requis requise",
        "es": "debe deben necesario necesaria requiere",
        "ru": "должен должна должны нужно надо необходимо",
    }
)
"""Words for a necessity. All of them are compared as one and the same word."""

LOW: Final = (
    "at least|no less than|not less than|no fewer than|more than|over|above|exceeding|minimum of"
    "|a minimum of|mindestens|wenigstens|mehr als|über|nicht weniger als|au moins|plus de"
    "|al menos|por lo menos|como mínimo|más de|mayores de|almeno|più di|pelo menos|mais de"
    "|minstens|meer dan|не менее|не меньше|более|больше|至少|超过|على الأقل|أكثر من"
)
HIGH: Final = (
    "at most|no more than|not more than|up to|less than|fewer than|under|below|maximum of|within"
    "|a maximum of|höchstens|maximal|bis zu|weniger als|unter|nicht mehr als|au plus|moins de"
    "|jusqu'à|como máximo|hasta|menos de|menores de|al massimo|fino a|meno di|no máximo|até"
    "|hoogstens|minder dan|не более|не больше|менее|меньше|до|最多|不超过|至多|على الأكثر|أقل من"
)
"""Alternatives of a pattern: words before a number that make it an upper bound."""
LOW_AFTER: Final = "or more|or above|or longer|oder mehr|ou plus|o más|o più|ou mais|of meer|以上"
HIGH_AFTER: Final = "or less|or fewer|or below|oder weniger|ou moins|o menos|o meno|of minder|以下"
"""Alternatives of a pattern: words after a number that make it an upper bound."""


_JOINS_WORDS: Final = "and or with between et ou avec entre y e o con tra fra com"
_EXCEPTIVES_WORDS: Final = (
    "except excepting unless but besides außer ausser sauf excepté excepto salvo menos tranne"
    " eccetto exceto behalve кроме"
)
_LACKING_WORDS: Final = "without ohne sans sin senza sem zonder без utan uden uten"
_QUANTIFIERS_WORDS: Final = (
    "one ones all every each always some few several many much most alle alles jeder jede jedes"
    " einige immer tous toutes chaque toujours quelques todos todas siempre algunos algunas все"
    " всегда"
)
_UNIVERSALS_WORDS: Final = (
    "all every each any alle alles jeder jede jedes tous toutes chaque todos todas cada tutti tutte"
    " ogni toda alla varje все каждый"
)
_RELATIVES_WORDS: Final = (
    "who which that whose der die das qui que che quien dat который которая которые"
)
_CONTRASTS_WORDS: Final = (
    "but whereas while aber sondern während mais pero mientras ma mas maar terwijl но а"
)
_ARTICLES_WORDS: Final = (
    "the a an le la les l un une des el los las unos unas una il lo gli i uno o os as um uma"
)
_DETERMINERS_WORDS: Final = (
    "the this that these those it its they their he she his her such both der die das dieser"
    " diese dieses es sie er le la les l ce cette ces il elle ils elles el los las este esta esto"
    " ello lo i gli questo questa o a os as de het deze dit он она оно они это этот эта эти"
    " my your our mein meine meinen dein deine deinen seine seinen seiner seinem unser unsere"
    " unseren unserer unserem euer eure euren ihre ihren ihrer ihrem mon mes notre nos votre vos"
    " leur leurs nuestro nuestra nuestros nuestras vuestro vuestra su sus nostro nostra nostri"
    " nostre vostro loro nosso nossa nossos nossas seu sua seus suas onze ons jullie наш наша наше"
    " наши ваш ваша ваше ваши"
)
_CONJUNCTIONS_WORDS: Final = "and und et y e en и och og"
JOINS: Final = frozenset(_JOINS_WORDS.split())
"""Words between two words whose order does not matter."""
EXCEPTIVES: Final = frozenset(_EXCEPTIVES_WORDS.split())
"""Words that make an exception, for which the opposite holds."""
LACKING: Final = frozenset(_LACKING_WORDS.split())
"""Words that say that something is missing."""
UNIVERSALS: Final = frozenset(_UNIVERSALS_WORDS.split())
"""Words that mean all of something."""
QUANTIFIERS: Final = frozenset(_QUANTIFIERS_WORDS.split())
"""Stop words that have opposites."""
RELATIVES: Final = frozenset(_RELATIVES_WORDS.split())
"""Words that start a relative clause, whose end cannot be recognized."""
CONTRASTS: Final = frozenset(_CONTRASTS_WORDS.split())
"""Words that start a contrast to the preceding words."""
ARTICLES: Final = frozenset(_ARTICLES_WORDS.split())
"""Articles, which may be replaced without a change of meaning."""
DETERMINERS: Final = frozenset(_DETERMINERS_WORDS.split())
"""Words that may introduce a different name of the same thing."""
CONJUNCTIONS: Final = frozenset(_CONJUNCTIONS_WORDS.split())
"""Words between kinds of something; together, these kinds may be all of it."""


_SCOPES: Final = """
excluding only
may might shall should can could will would before after until more less least over under
above below sometimes often rarely any allowed forbidden permitted prohibited
open closed on off in out up down first last with lower upper higher left right inside outside
weder noch nur
darf dürfen soll sollen sollte kann können vor nach bis mehr weniger über unter
selten manche erlaubt verboten zulässig unzulässig offen geschlossen an aus ein mit
ni seulement peut peuvent avant
après jusque plus moins parfois certains autorisé interdit ouvert fermé avec
solo sólo puede
pueden antes después hasta más permitido prohibido abierto cerrado
né soltanto deve devono può possono prima dopo
fino più meno sempre tutti alcuni permesso vietato aperto chiuso con
nem apenas pode podem depois até mais
alleen moet moeten mag mogen kan voor na tot meer
minder altijd soms gesloten met
bara måste får före efter mer mindre alltid
ingenting bare kun må før etter altid
nigdy żaden żadna bez tylko musi może przed po więcej mniej zawsze
není nikdy žádný jen musí může před více méně
только может могут до после больше меньше
запрещено разрешено можно
ні немає ніколи лише повинен може після
नहीं नही मत ना न बिना केवल পূর্বে না নয়
δεν μην μη όχι ποτέ χωρίς μόνο πρέπει μπορεί πριν μετά
değil yok hiç asla olmadan sadece önce sonra
không chẳng chưa đừng tidak bukan jangan belum tanpa hanya harus boleh
"""
"""Words that limit the scope of a sentence, and negations of languages that have no tables here."""


@cache
def turning_words() -> frozenset[str]:
    """Return words that invert a sentence or limit its scope, in all languages with blanks.

    Arabic is left out, because its words are attached to other words.
    """
    tables = (NEGATORS, _NECESSARY)
    of_tables = (table[code].split() for table in tables for code in {*table} - UNSPACED - {"ar"})
    closed = EXCEPTIVES | LACKING | QUANTIFIERS
    return closed.union(_SCOPES.split(), *of_tables)


@cache
def stemmer_of(language: str) -> Any:
    """Return the stemmer of a language; None if it has none."""
    import Stemmer

    return Stemmer.Stemmer(STEMMERS[language]) if language in STEMMERS else None


@cache
def stems_that_deny(language: str) -> frozenset[str]:
    """Return the stems of a language's words with a negative meaning."""
    stemmer, words = stemmer_of(language), _DENYING.get(language, "").split()
    return frozenset(stemmer.stemWords(words) if stemmer else words)


@cache
def necessity_of(language: str) -> frozenset[str]:
    """Return a language's words for a necessity; all of them are compared as NECESSITY."""
    return frozenset(_NECESSARY.get(language, "").split())


@cache
def words_of(table: str, language: str) -> frozenset[str]:
    """Return a word list of a language: `negators`, `restrictors` or `clauses`."""
    tables = {"negators": NEGATORS, "restrictors": RESTRICTORS, "clauses": CLAUSES}
    return frozenset(tables[table].get(language, "").split())


@cache
def counterparts_of(language: str) -> Mapping[str, frozenset[str]]:
    """Return the stems of the counterparts of each role in a language."""
    stemmer, found = stemmer_of(language), dict[str, frozenset[str]]()
    for pair in _ROLES.get(language, "").split(","):
        sides = [frozenset(stemmer.stemWords(side.split())) for side in pair.split(":")]
        for side, other in zip(sides, reversed(sides), strict=True):
            for stem in side:
                found[stem] = found.get(stem, frozenset()) | other
    return found


@cache
def opposites_of(language: str) -> tuple[tuple[bool, tuple[frozenset[str], ...]], ...]:
    """Return a language's groups of opposites: whether the sides are converses, and their stems."""
    groups: list[str] = []
    for line in _OPPOSITES.get(language, "").strip().splitlines():
        # A line that is indented more deeply continues the previous line.
        text = line.removeprefix(" " * 12)
        if groups and text.startswith(" "):
            groups[-1] += text
        else:
            groups.append(text)
    stemmer = stemmer_of(language)

    def stems(side: str) -> frozenset[str]:
        words = [IRREGULAR.get(word, word) for word in side.split()]
        return frozenset(stemmer.stemWords(words) if stemmer else words)

    return tuple(
        (
            group.strip().startswith("~"),
            tuple(map(stems, group.strip().lstrip("~").split(":"))),
        )
        for group in groups
    )
