"""Common words of many languages: they reveal a text's language, but do not help find passages.

The lists contain only closed classes of words (articles, pronouns, prepositions, conjunctions,
auxiliary verbs, question words), and were written for this program. Words that also name things are
left out.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, islice
from types import MappingProxyType
from typing import Final

_LISTS: Final = {
    "en": "a about am an and any are as at be been but by can could did do does for from had has"
    " have he her here him his how i if in into is it its itself may me might must my no"
    " nor not of off on or our ours shall she should so some such than that the their them"
    " then there these they this those to too us was we were what when where which who whom"
    " whose why will with would you your yours",
    "de": "aber alle allem allen aller alles als also am an auch auf aus bei beim bin bis bist"
    " da dabei dafür daher damit dann darf darum das dass davon dazu dein deine dem den"
    " denn der des dessen deren die dies diese diesem diesen dieser dieses dich dir doch du"
    " durch dürfen ein eine einem einen einer eines er es etwas euch euer für gab gegen"
    " gibt hab habe haben hat hatte hatten hier ich ihm ihn ihnen ihr ihre ihrem ihren"
    " ihrer im in ins ist ja jede jedem jeden jeder jedes kann kein keine keinen können"
    " könnte man mein meine meinem meinen mich mir mit muss müssen nach nicht noch nun nur"
    " ob oder ohne sehr seid sein seine seinem seinen seiner seit sich sie sind so soll"
    " sollen sollte sowie über um und uns unser unsere unter vom von vor wann war waren"
    " warum was wegen welche welchem welchen welcher welches wem wen wenn wer werde werden"
    " weshalb wessen wie wieso wieviel wir wird wo woher wohin womit wurde wurden würde"
    " würden während zu zum zur zwischen",
    "fr": "à a ai alors au aucun aucune auquel aussi aux avait avant avec avez avoir avons c car"
    " ce ceci cela celle celles celui ces cet cette ceux chaque chez comme comment d dans"
    " de depuis des donc dont du elle elles en est et étaient était étant été être eu eux"
    " fait faut ici il ils j je jusque l la laquelle le lequel les lesquelles lesquels leur"
    " leurs lors lorsque lui m ma mais me même mes moi mon n ne ni nos notre nous on ont ou"
    " où par parce pas pendant peut peuvent plus pour pourquoi puis qu quand que quel"
    " quelle quelles quels qui quoi s sa sans se sera ses si soit son sont sous sur t ta te"
    " tes toi ton tous tout toute toutes très tu un une vers vos votre vous y combien dois"
    " doit",
    "es": "a al algo alguna algunas alguno algunos ante antes así aunque bajo cada como cómo con"
    " cual cuál cuales cuáles cuando cuándo cuanta cuánta cuanto cuánto cuántos cuántas de"
    " del desde donde dónde dos durante e el él ella ellas ellos en entonces entre era eran"
    " es esa esas ese eso esos esta está estaba estado están estas este esto estos fue"
    " fueron ha había habían hace han hasta hay he la las le les lo los más me mi mientras"
    " mis muy ni no nos nosotros o os otra otras otro otros para pero poco por porque pues"
    " puede pueden que qué quien quién quienes quiénes se sea según ser si sí sido sin sino"
    " sobre son soy su sus también tan tanto te tener tengo tiene tienen tras tu tus u un"
    " una unas uno unos usted ustedes y ya yo debe debo",
    "it": "a ad agli ai al alla alle allo anche avere aveva c che chi ci cioè col come con"
    " contro cosa cui d da dagli dai dal dalla dalle dallo degli dei del della delle dello"
    " dentro deve devo di dopo dove e è ed era erano essere fa fra già gli ha hai hanno ho"
    " i il in io l la le lei li lo loro lui ma me mi mia mie miei mio né negli nei nel"
    " nella nelle nello no noi non nostra nostro o ogni oppure per perché però più po poi"
    " può possono prima qual quale quali quando quanta quante quanti quanto quella quelle"
    " quelli quello questa queste questi questo qui quindi se sei senza si sia sono stata"
    " state stati stato su sua sue sugli sui sul sulla sulle suo suoi te ti tra tu tua tuo"
    " tutti tutto un una uno vi voi vostra vostro",
    "pt": "a à ainda ao aos aquela aquele aquilo as às até cada com como cuja cujo da das de"
    " dela dele deles depois desde dessa desse desta deste deve do dos durante e é ela elas"
    " ele eles em enquanto entre era eram essa esse esta está estão estas estava este estes"
    " eu foi for foram há isso isto já lhe lhes lo mais mas me mesmo meu meus minha muito"
    " na nas não nem nessa nesse nesta neste no nos nós nossa nosso num numa o onde os ou"
    " para pela pelas pelo pelos pode podem por porque porquê posso qual quais quando"
    " quanta quanto quantos que quê quem são se sem ser seu seus sob sobre só sua suas"
    " também te tem têm tenho ter teve tinha toda todas todo todos tu um uma umas uns você"
    " vocês",
    "nl": "aan achter al alle als altijd andere ben bij binnen daar dan dat de deze die dit doe"
    " doen door dus een elk elke en er geen had hadden hebben hebt heb heeft hem het hier"
    " hij hoe hoeveel hun ik in is ja je jij jouw jullie kan kon kunnen kunt maar mag me"
    " meer men met mij mijn moet moeten na naar niet niets nog nu of om omdat onder ons"
    " onze ook op over sinds te tegen ten ter toch toen tot tussen u uit uw van vanaf veel"
    " voor waar waarom waarmee wanneer want waren was wat we welk welke werd werden wie wij"
    " wil worden wordt zal ze zelf zich zij zijn zo zonder zou zoals",
    "da": "af alle alt anden at da de dem den denne der deres det dette dig din dine disse dog"
    " du efter eller en end er et for fordi fra få får før gennem ham han hans har havde"
    " have hende hendes her hos hun hvad hvem hver hvilke hvilken hvilket hvis hvor hvordan"
    " hvorfor hvornår i ikke ind ingen ja jeg jer jeres kan kun kunne man mange med meget"
    " mellem men mig min mine mit må mod ned når og også om op os over på sammen selv sig"
    " sin sine sit skal skulle som så sådan til ud uden under var ved vi vil ville vor være"
    " været",
    "no": "alle alt annen at av da de deg dei deim dem den denne der dere deres det dette di din"
    " disse ditt du eg ein eit eller en enn er et etter for fordi fra før får gjennom ha"
    " hadde han hans har hennes her hos hun hva hvem hver hvilke hvilken hvilket hvis hvor"
    " hvordan hvorfor når i ikke ikkje ingen inn ja jeg kan korleis kva kven kvar kun kunne"
    " man mange med meg meget mellom men min mine mitt må mot ned noe noen nå og også om"
    " opp oss over på sammen seg selv sin sine sitt skal skulle som så til under uten var"
    " ved vi vil ville være vært vår ut",
    "sv": "alla allt att av bara blev bli blir da de dem den denna deras dess dessa det detta"
    " dig din dina ditt du där då efter eller en er ett från får för genom ha hade han hans"
    " har henne hennes hon honom hos hur här i icke in ingen innan inte ja jag kan kunde"
    " man med mellan men mig min mina mitt mot mycket många måste ned nej ner ni nu någon"
    " något några när och också om oss på samma sedan sig sin sina sitt ska skall skulle"
    " som så sådan till under upp ut utan vad var vara varför varit varje varken vars vart"
    " vem vems vi vid vilka vilken vilket vill vår våra vårt än är åt över",
    "fi": "ei eivät en että ennen hän häntä hänen he heidän ja jo joka joita jolla jolloin jos"
    " joskus jossa josta jota jotka jotta kaikki kanssa kautta keitä ken kenen kenelle"
    " keskellä ketkä kun kuin kuinka kuka kumpi kunnes kuten me meidän mihin mikä miksi"
    " mikäli millainen milloin minkä minne minun minä missä mistä mitkä mitä mitäs miten"
    " mukaan mutta myös ne niiden niin niitä noin nuo nyt näin nämä näitä ole olen olet"
    " olevan oli olisi olivat olla olleet ollut on onko ovat paljon pitää se sekä sen"
    " siellä sitten siinä siitä sillä sinä sitä tai te teidän tuo tämä tämän tässä tästä"
    " tätä vaan vai vaikka varten voi voidaan voin voivat voiko yli ilman",
    "hu": "a abban ahhoz ahogy ahol aki akik akkor alatt amely amelyek amelyet ami amit amíg"
    " annak arra arról az azok azon azt azután be belül benne bár csak de e egy egyes ehhez"
    " ekkor el ellen előtt elég en ennek erre ez ezek ezen ezt fel felé hány hanem ha hogy"
    " hogyan hol honnan hova hová igen illetve ill is ismét itt jól ki kik kívül kell"
    " kellett közben között közül le lehet lehetett lesz lett ma maga meg mely melyek"
    " melyik mennyi mert mi miért mikor milyen minden mint mit mivel még már nagyon ne"
    " nekem nem nincs olyan ott pedig rá s saját sem szerint számára ő ők őket össze te"
    " tehát több ugyanis után utána vagy vagyok van vannak volna volt voltak által át és"
    " így úgy",
    "ro": "a acea aceasta această aceea acei aceia acel acela acele acelea acest acesta aceste"
    " acestea acestei acestor acestui acești ai al ale am ar are as asupra atunci au avea"
    " avem aveți avut ca care cărei căror cărui către ce cea cei cel cele celor cine cineva"
    " cu cum când cât câte câți da dacă dar de deci decât deși despre din dintre doar după"
    " e ea ei el ele eram era erau este eu face fără fi fie fiecare fost ți i iar îi îl în"
    " înainte între își îmi la le li lor lui mai mea mei mele mi mult mulți ne nici nimic"
    " niște noi nostru nu o ori pe pentru peste poate pot prin printre să sa sale sau său"
    " săi se și sînt sunt sub te toate tot toți trebuie tu un una unde unei unele unor unui"
    " unul va vă voi vor vreo",
    "ca": "a això al als amb aquell aquella aquells aquest aquesta aquestes aquests així cada"
    " com d de del dels des doncs durant el ella elles ells els en entre era eren és es"
    " està estan fins ha han havia hem hi i jo l la les li llavors lo meu meva més molt no"
    " nosaltres o on per perquè però pot qual quals quan quant quants que què quin quina"
    " quines quins qui s sense ser seu seus seva seves si sobre són sota també te té tenen"
    " tot tots un una unes uns van va vam vosaltres",
    "pl": "a aby albo ale ani bardzo bez bo być był była było były będzie będą co czego czemu"
    " czy czyli dla dlaczego do gdy gdzie gdyż go i ich ile im inne inny iż ja jak jaka"
    " jaki jakie jakich jako je jednak jego jej jest jestem jeśli jeżeli już każdy kiedy"
    " kto kogo komu która które którego której który których którym którzy lub ma mają mam"
    " może można mi mnie moja mój musi my na nad nam nas nasz nie niej nich nim niż o od on"
    " ona one oni oraz po pod podczas ponieważ poza przed przez przy są się skąd swoje ta"
    " tak taki także tam te tego tej ten to tu twój ty tych tylko tym u w we wam wszystkie"
    " wszystko więc z za ze że żeby",
    "cs": "a aby ale ani ano asi až bez bude budou by byl byla byli bylo být co což či dnes do"
    " ho i ja já jak jaká jaké jaký jako je jeho jej její jejich jen jenž ještě ji jí jím"
    " jiné již jsem jsme jsou jste k kam každý kde kdo kdy když ke která které kterého"
    " který kterou kteří kolik ku ma mají mám máte me mě mezi mi mít mně mnou můj může musí"
    " my na nad nám nás naše ne nebo nebyl není než nic o od ode on ona oni ono pak po pod"
    " podle pokud pro proč proto protože před přes při s se si sice své svůj ta tak také"
    " tam te ten tedy tento této to toho tohle tom tomu tu ty u už v vám vás váš ve více"
    " však všechno vy z za ze zda že",
    "sk": "a aby aj ak ako aká aké aký ale alebo ani až bez bol bola boli bolo by byť cez čo či"
    " do ho i ich im ja je jeho jej k kam každý kde kedy keď kto ktorá ktoré ktorého ktorý"
    " ktorú ku koľko ma majú mám má môj môže musí my na nad nám nás náš nie nič o od on ona"
    " oni ono po pod podľa pre prečo pretože pri s sa si som sme ste sú svoj ta tak takže"
    " tam ten tento to toho tom tu ty u už v vám vás vo však vy z za zo že",
    "tr": "acaba ama ancak arada aslında ayrıca bana bazı belki ben benden beni benim beri bile"
    " bir biri birkaç biz bizden bize bizi bizim bu buna bunda bundan bunlar bunların bunu"
    " bunun çok çünkü da daha de değil diye dolayı en eğer gibi göre hangi hatta hem hep"
    " hepsi her hiç hiçbir için ile ise işte kaç kadar karşı kendi kendine kendisi ki kim"
    " kimden kime kimi kimin mi mı mu mü nasıl ne neden nedir nelerdir nerede nereden"
    " nereye neresi niçin niye o olan olarak oldu olduğu olduğunu olması olmaz olsa olup"
    " olur ona ondan onlar onların onu onun öyle oysa pek sadece sanki sen senin siz sizin"
    " sonra şey şu tarafından tüm var vardı ve veya ya yani yaptığı yapılan yok yoksa zaten"
    " hangisi kimdir midir mıdır mudur müdür vardır",
    "id": "ada adalah agar akan aku anda antara apa apabila apakah atas atau bagaimana bagi"
    " bahwa banyak beberapa belum berapa bisa boleh bukan dalam dan dapat dari daripada"
    " demi dengan di dia dimana hal hanya harus hingga ia ini itu jika juga kami kamu kapan"
    " karena ke kepada ketika kita lagi lain lalu maka mana mengapa mereka namun oleh pada"
    " para paling saat saja sama sampai sangat saya sebagai sebelum sedang sejak seperti"
    " serta setelah siapa suatu sudah tak tanpa telah tentang terhadap tersebut tetapi"
    " tidak untuk yaitu yang",
    "vi": "ai bao bằng bị bởi các cái cả chỉ cho chưa có của cùng cũng đã"
    " đang đâu đây để đến đều đi điều do đó được gì hay hoặc hơn họ"
    " không khi là làm lại lên mà mỗi một mọi này nào nên nếu ngoài"
    " như những nhưng nó nhiều ở phải qua ra rằng rất rồi sao sau sẽ"
    " tại theo thì thế từ tôi trên trong trước tuy và vào vẫn vậy về"
    " vì với",
    "el": "αλλά αν ανά από αυτά αυτές αυτή αυτήν αυτό αυτοί αυτός αυτού αυτούς αυτών για γιατί"
    " δε δεν δηλαδή εάν εδώ εγώ εκεί εκείνη εκείνο εκείνος εμείς ένα έναν ένας ενός εν επί"
    " εσύ έχει έχουν έχω η ήδη ήταν θα και καθώς κάθε κάποια κάποιο κάποιος κατά κι μας με"
    " μέσα μετά μέχρι μη μην μια μία μιας μπορεί μπορώ μπορούν να ο οι όπως όπου όσο όταν"
    " ότι ούτε όχι παρά ποια ποιά ποιες ποιο ποιοι ποιος ποιόν ποιον ποιού ποιους ποιών"
    " πολύ πόσα πόσες πόση πόσο πόσοι πόσος πότε που πού πρέπει πριν προς πώς πως σαν σας"
    " σε στα στη στην στις στο στον στους στου των τα τη την της τι τις το τον του τους υπό"
    " ως ώστε είμαι είναι είχαν είχε οποία οποίες οποίο οποίοι οποίος οποίου οποίων ωστόσο"
    " χωρίς",
    "ru": "а без более бы был была были было быть в вам вами вас весь во вот все всего всех вы"
    " где да даже для до его ее её если есть еще ещё же за зачем и из или им ими их к как"
    " какая какие каким какими каких какого какое какой каком какому какую когда кого ком"
    " кому кто которая которого которой которую которые который которых куда ли либо мне"
    " меня мной мог могу могут может можно мой моя мы на над надо нам нас наш не него нее"
    " неё ней нет ни них но ну о об однако он она они оно от откуда перед по под после"
    " потому почему при про с сам себе себя сколько со так также такие такой там тебе тебя"
    " тем то тогда того тоже только том ты у уже чего чей чем через что чтобы чья эта эти"
    " этим этих это этого этой этом этот эту я",
    "uk": "а або але б без би був була були було бути в вам вас весь вже ви від він вона вони"
    " воно все всі всіх де до для є ж за замість з зі і із інших його її й їх як яка яке"
    " який якій якого якої яку які яких якщо коли кого кому котрий куди ли лише мені мене"
    " ми може можна можуть мій моя на над нам нас наш не него неї ні ніж них но ну о один"
    " однак от перед по під після при про скільки собі та так також такий там тебе те ти"
    " тільки то того тоді тому тут у хто це цей цього цієї ці цих ця чи чия чого чому через"
    " що щоб",
    "bg": "а ако ала без беше би бил била били било в вас ви във все всеки всички вие го да до"
    " докато е един една едно ето за защо защото и из или им има на над нас не него нея ни"
    " ние но някои о около от по под пред през при с са само се си след сте със също съм"
    " така такъв там те тези ти то това тогава този той тук тя у че чрез как каква какви"
    " какво какъв кога кого което които кой който колко коя която къде ли ме ми му мен може",
    "sr": "а али био била били било би бити да до за и из или им их ја је јер јесте каква какав"
    " како кад када ко кога коме који која које којег којој којих колико ли ме мене ми мој"
    " му на над након не него ни није о од он она они оно пре при са само се си сам смо су"
    " та те тај тако то тога у уз што шта где због",
    "ar": "أحد إذا إذ أن إن أنا أنت أنه إنه أنها إلا إلى التي الذي الذين"
    " اللذان أم أما أو أي أين أية بأن بعد بعض بل بما به بها بين تحت"
    " تلك تم تكون ثم حتى حول حيث حين خلال دون ذلك سوف ضد ضمن عليه"
    " عليها على عن عند عندما غير فقد في فيه فيها فيما قبل قد كان"
    " كانت كانوا كل كلا كم كما كيف لا لأن لدى لقد لكن لكي لم لما"
    " لماذا لن له لها لهم لو ليس ليست ما ماذا متى مثل مع من منذ منه"
    " منها هذا هذه هل هم هناك هنا هو هؤلاء هي و وقد ولا وما وهو وهي"
    " يكون يمكن",
    "fa": "آن آنها اگر از است اما او ای این اینکه با باید بر برای بود"
    " بودند بوده به بی تا توسط جز چرا چه چگونه چقدر چند چون چیست خود"
    " دارد دارند داشت در دو را روی زیر سپس شد شده شود کجا کدام کرد"
    " کرده کند کنند که کی کیست ما من می نیز نیست هر هستند هم همان"
    " همه همین هنوز هیچ و ولی یا یک",
    "he": "אבל או אולי אותה אותו אותם אז איך אין אינו אל אם אנחנו אני אף"
    " אשר את אתה אתם בגלל בין בלי גם האם הוא היא היה היו הייתה היכן"
    " הם הן הנה זאת זה זו יש כאשר כדי כי כל כמה כמו כן לא לאן לו לה"
    " להם לי לך למה לפי מאוד מאין מדוע מה מי מן מתי נגד על עד עם עוד"
    " פה רק של שלה שלהם שלו שלי שם תחת",
    "hi": "अगर अथवा अपना अपनी अपने अब आप इन इनका इनकी इनके इस इसका इसकी"
    " इसके इसने इसमें इससे इसे उन उनका उनकी उनके उनको उन्हें"
    " उन्होंने उस उसका उसकी उसके उसने उसमें उससे उसे एक एवं ऐसे और"
    " कब कभी कर करता करते करना करने कहा कहाँ कहां का कि किन किया किस"
    " किसका किसकी किसके किसने किसी किसे की कितना कितनी कितने कुछ के"
    " कैसे को कोई कौन कौनसा कौनसी क्या क्यों गई गए गया जब जहाँ जहां"
    " जा जाता जाती जाते जाने जिन जिस जिसका जिसकी जिसके जिसने जिसमें"
    " जिसे जैसे जो तक तथा तब तरह तो था थी थे दिया द्वारा न नहीं ना"
    " ने पर फिर भी मगर में मैं यदि यह यहाँ ये रहा रही रहे लिए लेकिन"
    " व वह वहाँ वाला वाली वाले वे वो सकता सकती सकते साथ से हम हर ही"
    " हुआ हुई हुए है हैं हो होता होती होते होना होने",
}
STOP_WORDS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {language: frozenset(words.split()) for language, words in _LISTS.items()}
)
"""Common words by ISO 639-1 code, in lower case."""
COMMON_WORDS: Final = STOP_WORDS["en"]

_SHARE: Final = 0.25
"""In a sentence, at least this share of the words are common words."""
_LEAST_FOREIGN: Final = 2
"""This many common words are evidence of a language other than English."""
_LEAST_WORDS: Final = 3
"""Minimum number of words in a sentence without common words."""
_LEAST_SIGNS: Final = 8
"""Minimum number of characters in a sentence in a script without spaces."""
_CERTAIN: Final = 0.8
"""Minimum probability at which a detected language is accepted. At this value, no English question
in the sets used to measure fusion is treated as another language."""
_SHORT: Final = 6
"""Minimum number of key words in plain letters to be treated like any other text. With fewer words,
names and words shared by several languages would decide the detected language."""
_CERTAIN_OF_SHORT: Final = 0.99
"""The minimum probability for fewer key words without common words of the language."""
_LAST_LATIN: Final = "\u024f"
_UNSPACED: Final = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]+"
)
SOUTHEAST_ASIAN: Final = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ecf\u0edc-\u0edf\u1000-\u103f\u104c-\u108f"
    "\u109a-\u109d\u1780-\u17d3\u17d7\u17dc\u17dd\ua9e0-\ua9ef\ua9fa-\ua9fe\uaa60-\uaa7f"
)
"""Letters, vowel signs and tone marks of Thai, Lao, Burmese and Khmer. These scripts do not
separate words."""
_SOUTHEAST_ASIAN: Final = re.compile(rf"[{SOUTHEAST_ASIAN}][{SOUTHEAST_ASIAN}\u200b-\u200d]*")
_KANA: Final = re.compile(r"[\u3041-\u30fa]")
_HAN_LANGUAGES: Final = frozenset({"zh", "ja"})
_SAMPLE: Final = 100
"""Number of words inspected in a long text."""
_WORD: Final = re.compile(r"[^\W_]+(?:[_.\-/:'’][^\W_]+)*")
# Python does not treat vowel signs of these scripts as letters.
_MARKED_WORD: Final = re.compile(
    rf"[\u0900-\u0963\u0966-\u0dff\u200c\u200d]+|{_SOUTHEAST_ASIAN.pattern}|{_WORD.pattern}"
)
_MARKED: Final = re.compile(rf"[\u0900-\u0dff{SOUTHEAST_ASIAN}]")
_ELISION: Final = re.compile(r"^(?:[cdjlmnst]|qu|dell|all|nell|dall|sull)['’](?=\w)")


def significant_words(query: str) -> str:
    """Return a query without the common words of its language; unchanged if all are common.

    Documents seldom contain questions. So a ranking by words would count `what` and `how` as rare
    and therefore important. A word in capitals, such as IT or US, is kept as a name.
    """
    words = _words(query)
    common = STOP_WORDS[_find_most_common_words(words) or "en"]
    significant = [word for word in words if _is_name(word) or _plain(word) not in common]
    return " ".join(significant) or query


def sentence_language(query: str) -> str | None:
    """Return the language of a query that is a sentence; None for key words, or if unknown.

    A sentence in English is a text in which at least a quarter of the words are common words. Other
    languages, such as Turkish with its suffixes, have short sentences without common words. For
    these, the detector of documents' languages decides if it is certain; otherwise the common words
    decide.
    """
    words = _words(query)
    language = _find_most_common_words(words)
    common = STOP_WORDS[language] if language else frozenset()
    if sum(_plain(word) in common for word in words) < _SHARE * len(words):
        language = None
    is_latin = _are_mostly_latin(words)
    if language == "en" and is_latin:
        return language
    # Imported here, because a process that never gets a question needs no detector.
    from rag_assets.ingest.parsing.languages import detect_text_language

    # Words in plain letters may be common words in other languages, as `go to` is in Polish.
    is_doubtful = language == "en" or (language is not None and query.isascii())
    is_short = query.isascii() and len(words) < _SHORT and "?" not in query
    guess = detect_text_language(
        query, is_guess=not is_short, min_probability=_CERTAIN, min_bytes=0
    )
    if is_doubtful and guess != language:
        language = None
    detected = _find_detected_language(query, words)
    if is_short and detected not in {None, "en", language}:
        detected = detect_text_language(query, min_probability=_CERTAIN_OF_SHORT)
    return language if detected == "en" and language is not None else detected or language


def is_english(query: str) -> bool:
    """Return whether a query is a sentence in English."""
    return sentence_language(query) == "en"


def is_certainly_english(query: str) -> bool:
    """Return whether a query is an English sentence, or key words that are certainly English."""
    language = sentence_language(query)
    if language is not None:
        return language == "en"
    from rag_assets.ingest.parsing.languages import detect_text_language

    return detect_text_language(query, min_probability=_CERTAIN, min_bytes=0) == "en"


def _find_detected_language(query: str, words: Sequence[str]) -> str | None:
    """Return the detected language of a sentence; None if it is not certain."""
    letters = sum(len(run) for run in _UNSPACED.findall(query))
    if len(words) < _LEAST_WORDS and letters < _LEAST_SIGNS:
        return None
    from rag_assets.ingest.parsing.languages import detect_text_language

    language = detect_text_language(query, min_probability=_CERTAIN)
    if language in _HAN_LANGUAGES:
        return "ja" if _KANA.search(query) else "zh"
    return language


def _are_mostly_latin(words: Sequence[str]) -> bool:
    letters = [letter for word in words for letter in word if letter.isalpha()]
    return 2 * sum(letter <= _LAST_LATIN for letter in letters) >= len(letters)


def prose_language(text: str) -> str | None:
    """Return the language of a text's common words; None if no language has two of them."""
    return _find_most_common_words([*islice(_iterate_words(text), _SAMPLE)], least=2)


def _find_most_common_words(words: Iterable[str], least: int = 1) -> str | None:
    """Return the language with the most common words among these; English wins a tie.

    A single word of plain letters is evidence only for English: `die`, `io` and `van` are common
    words in other languages.
    """
    by_word = _languages_by_word()
    common = [(word, those) for word in words if (those := by_word.get(_plain(word)))]
    counts = Counter(chain.from_iterable(those for _, those in common))
    best = max(counts.values(), default=0)
    if best < least:
        return None
    language = next(language for language in STOP_WORDS if counts[language] == best)
    if language == "en" or best >= _LEAST_FOREIGN:
        return language
    return None if all(word.isascii() for word, _ in common) else language


@cache
def _languages_by_word() -> Mapping[str, tuple[str, ...]]:
    languages: dict[str, list[str]] = {}
    for language, words in STOP_WORDS.items():
        for word in words:
            languages.setdefault(word, []).append(language)
    return {word: tuple(those) for word, those in languages.items()}


def _words(text: str) -> list[str]:
    return [*_iterate_words(text)]


def _iterate_words(text: str) -> Iterator[str]:
    pattern = _WORD
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
        if _MARKED.search(text):
            pattern = _MARKED_WORD
            text = _SOUTHEAST_ASIAN.sub(r" \g<0> ", text)  # a Latin word may be adjacent
    return (match.group() for match in pattern.finditer(text))


def _plain(word: str) -> str:
    word = word.lower()
    return _ELISION.sub("", word) if "'" in word or "’" in word else word


def _is_name(word: str) -> bool:
    return len(word) > 1 and word.isupper()
