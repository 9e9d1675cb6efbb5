"""Words for numbers, months, scales and units, in the most common languages of passages.

A word that is missing here never makes a claim wrong: an unknown unit is not compared, and an
unknown number word is not read as a number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

Unit: TypeAlias = tuple[str, float]
"""A dimension, and the factor that converts a value to the dimension's base unit."""

_NUMBERS: Final = """
0 zero null zéro cero nul noll zerowy ноль
1 one once first ein eins eine einen einem einer erste ersten erster un une uno una um uma een
1 één ett en jeden один одна первый
2 two twice second secondly zwei zweimal zweite zweiten zweiter deux dos due dois duas twee två
2 dwa dwie два две второй
3 three third drei dritte dritten trois tres tre três drie trzy три третий
4 four fourth vier vierte vierten quatre cuatro quattro quatro fyra cztery четыре
5 five fifth fünf fünfte fünften cinq cinco cinque vijf fem pięć пять
6 six sixth sechs sechste seis sei zes sex seks sześć шесть
7 seven seventh sieben siebte sept siete sette sete zeven sju siedem семь
8 eight eighth acht achte huit ocho otto oito åtta osiem восемь
9 nine ninth neun neunte neuf nueve nove negen nio dziewięć девять
10 ten tenth zehn zehnte dix diez dieci dez tien tio dziesięć десять
11 eleven eleventh elf onze undici elva jedenaście одиннадцать
12 twelve twelfth dozen zwölf dutzend douze doce dodici doze twaalf tolv dwanaście двенадцать
13 thirteen dreizehn treize trece tredici treze dertien
14 fourteen vierzehn quatorze catorce quattordici catorze veertien czternaście четырнадцать
15 fifteen fünfzehn quinze quince quindici vijftien femton piętnaście пятнадцать
16 sixteen sechzehn seize dieciséis sedici dezesseis zestien
17 seventeen siebzehn diecisiete diciassette zeventien
18 eighteen achtzehn dieciocho diciotto achttien
19 nineteen neunzehn diecinueve diciannove negentien
20 twenty zwanzig vingt veinte venti vinte twintig tjugo dwadzieścia двадцать
21 veintiuno ventuno
30 thirty dreißig dreissig trente treinta trenta trinta dertig trettio trzydzieści тридцать
40 forty vierzig quarante cuarenta quaranta quarenta veertig fyrtio czterdzieści сорок
50 fifty fünfzig cinquante cincuenta cinquanta cinquenta vijftig femtio pięćdziesiąt пятьдесят
60 sixty sechzig soixante sesenta sessanta sessenta zestig sextio sześćdziesiąt шестьдесят
70 seventy siebzig septante setenta settanta zeventig sjuttio семьдесят
80 eighty achtzig quatrevingt quatrevingts ochenta ottanta oitenta tachtig восемьдесят
90 ninety neunzig nonante noventa novanta negentig девяносто
100 hundred hundert einhundert cent cien ciento cento cem honderd hundra sto сто
1000 thousand tausend eintausend mille mil duizend tusen tysiąc тысяча
"""

_MONTHS: Final = """
1 january jan januar jänner janvier janv enero gennaio gen janeiro januari styczeń stycznia
1 январь января
2 february feb februar février févr fevrier febrero febbraio fevereiro fev februari luty lutego
2 февраль февраля
3 march mar märz mrz mars marzo março maart marzec marca март марта
4 april apr avril avr abril abr aprile kwiecień kwietnia апрель апреля
5 may mai mayo maggio maio mei maj maja май мая
6 june jun juni juin junio giugno junho czerwiec czerwca июнь июня
7 july jul juli juillet julio luglio julho lipiec lipca июль июля
8 august aug août aout agosto augustus augusti sierpień sierpnia август августа
9 september sep sept septembre septiembre settembre setembro wrzesień września сентябрь сентября
10 october oct oktober okt octobre octubre ottobre outubro październik października октябрь
10 октября
11 november nov novembre noviembre novembro listopad listopada ноябрь ноября
12 december dec dezember dez décembre décembre diciembre dicembre dezembro grudzień grudnia
12 декабрь декабря
1 يناير
2 فبراير
3 مارس
4 أبريل
5 مايو
6 يونيو
7 يوليو
8 أغسطس
9 سبتمبر
10 أكتوبر
11 نوفمبر
12 ديسمبر
"""

_SCALES: Final = """
1e2 hundred hundert
1e3 k thousand tausend tsd mille mil mila duizend tusen tysiące tysięcy тысяч тысячи тыс 千
1e4 万 萬
1e5 lakh lakhs
1e6 m mn mio million millions millionen millón millones milhão milhões milione milioni miljoen
1e6 miljoner milion miliony milionów миллион миллиона миллионов млн 百万
1e7 crore crores
1e8 亿 億
1e9 bn mrd milliarde milliarden milliard milliards miliardo miliardi miljard miljarder миллиард
1e9 миллиарда миллиардов млрд 十亿
1e9 billion billions
1e12 billion billions billionen billón billones trillion trillions bilione 兆
"""

_UNITS: Final = """
time .001 ms millisecond milliseconds millisekunde millisekunden milliseconde millisecondes
time .001 milisegundo milisegundos мс 毫秒
time 60 분
time 3600 시간
time 86400 일
time 604800 주
months 1 개월
months 12 년
time 1 s sec secs second seconds sek sekunde sekunden seconde secondes secondo secondi segundo
time 1 segundos seconden sekund sekunder сек секунда секунды секунд 秒
time 60 m min mins minute minutes minuten minuto minutos minuti minuut minut minuty minuter
time 60 minutter мин минута минуты минут 分钟 分
time 3600 h hr hrs hour hours std stunde stunden heure heures hora horas ora ore uur uren timme
time 3600 timmar godzina godziny godzin час часа часов 小时 時間
time 86400 d day days tag tage tagen jour jours día días dia dias giorno giorni dag dagen dagar
time 86400 dage dzień dni день дня дней 天 日
time 604800 wk wks week weeks woche wochen semaine semaines semana semanas settimana settimane
time 604800 weken vecka veckor tydzień tygodnie tygodni неделя недели недель 周 週間 星期
months 1 mo month months monat monate monaten mois mes meses mês mese mesi maand maanden månad
months 1 månader miesiąc miesiące miesięcy месяц месяца месяцев 个月 ヶ月 か月 カ月 ヵ月
months 12 yr yrs year years jahr jahre jahren ans année années año años ano anos anno anni jaar
months 12 jaren år rok lata lat год года лет 年
length .001 mm millimeter millimeters millimetre millimetres
length .01 cm centimeter centimeters centimetre centimetres zentimeter
length 1 m meter meters metre metres mètre mètres metro metros metri metern метр метра метров 米
length 1000 km kilometer kilometers kilometre kilometres kilometern kilomètre kilomètres
length 1000 kilómetro kilómetros chilometri километр километра километров 公里
length .0254 inch inches zoll
length .3048 ft foot feet
length 1609.344 mi mile miles meile meilen
area 1 m2 sqm qm
area 1000000 km2
volume .001 ml milliliter millilitre
volume 1 l liter liters litre litres litern litro litros litri литр литра литров 升
volume 1000 m3 cbm
mass .001 mg milligram milligrams milligramm
mass 1 g gram grams gramm gramme grammes gramo gramos grammi г
mass 1000 kg kilo kilos kilogram kilograms kilogramm kilogrammes кг 公斤
mass 1000000 t ton tons tonne tonnes tonnen toneladas тонн
mass 453.59237 lb lbs pound pounds
mass 28.349523125 oz ounce ounces
ratio .01 % percent pct prozent pourcent procent percento porcento процент процента процентов ％
ratio .001 ‰ promille
celsius 1 °c celsius
fahrenheit 1 °f fahrenheit
celsius 1 ° degree degrees grad degré degrés grados gradi graden
fahrenheit 1 ° degree degrees grad degré degrés grados gradi graden
eur 1 € eur euro euros евро
eur .01 cent cents ct
usd 1 $ us$ usd dollar dollars dólar dólares доллар доллара долларов 美元
usd .01 cent cents
gbp 1 £ gbp pound pounds pfund
jpy 1 ¥ jpy yen 円
cny 1 ¥ cny rmb yuan 元
chf 1 chf franken francs sfr
inr 1 ₹ inr rupee rupees
kronor 1 kr kronor kroner sek nok dkk
pln 1 zł pln złotych
rub 1 ₽ rub рублей рубля рубль
data .125 bit bits
data 1 b byte bytes octet octets
data 1000 kb kilobyte kilobytes ko
data 1024 kb kib kilobyte kilobytes
data 1e6 mb megabyte megabytes mo
data 1048576 mb mib megabyte megabytes
data 1e9 gb gigabyte gigabytes go
data 1073741824 gb gib gigabyte gigabytes
data 1e12 tb terabyte terabytes
data 1099511627776 tb tib
power 1 w watt watts
power 1000 kw kilowatt kilowatts
power 1e6 mw megawatt megawatts
energy 1 wh
energy 1000 kwh
voltage 1 v volt volts
voltage 1000 kv
current 1 a amp amps ampere
current .001 ma
frequency 1 hz hertz
frequency 1000 khz
frequency 1e6 mhz
frequency 1e9 ghz
pressure 100000 bar
pressure 100 mbar hpa
pressure 1 pa pascal
pressure 1000 kpa
pressure 1e6 mpa
pressure 6894.757 psi
speed 1 km/h kmh kph
speed 1.609344 mph
rotation 1 rpm
"""

_ORDINAL_ENDS: Final = "st nd rd th er ère re eme ème e º ª o a x"


def _rows(table: str) -> Iterator[list[str]]:
    yield from (line.split() for line in table.strip().casefold().splitlines())


def _values(table: str) -> Mapping[str, frozenset[float]]:
    found: dict[str, frozenset[float]] = {}
    for value, *words in _rows(table):
        for word in words:
            found[word] = found.get(word, frozenset()) | {float(value)}
    return MappingProxyType(found)


def _units() -> Mapping[str, frozenset[Unit]]:
    found: dict[str, frozenset[Unit]] = {}
    for dimension, factor, *words in _rows(_UNITS):
        for word in words:
            found[word] = found.get(word, frozenset()) | {(dimension, float(factor))}
    return MappingProxyType(found)


NUMBERS: Final = _values(_NUMBERS)
"""Values of number words, in lower case."""
SCALES: Final = _values(_SCALES)
"""By word after a number, the factor that multiplies the number; `billion` is ambiguous."""
UNITS: Final = _units()
"""By name or symbol, the units it may stand for; `m` is ambiguous."""
MONTHS: Final[Mapping[str, int]] = MappingProxyType(
    {word: int(number) for number, *words in _rows(_MONTHS) for word in words}
)
ORDINAL_ENDS: Final = frozenset(_ORDINAL_ENDS.split())
"""Endings of a number that do not change its value: 2nd, 3x."""

_TENS = "|".join(word for word, of in NUMBERS.items() if min(of) in range(20, 100, 10))
_ONES = "|".join(word for word, of in NUMBERS.items() if min(of) in range(1, 20))
_COMPOUND = re.compile(rf"(?P<tens>{_TENS})(?:[-\s]|\s?(?:y|e|et|and)\s|-et-)?(?P<ones>{_ONES})")
_GERMAN_COMPOUND = re.compile(rf"(?P<ones>{_ONES})(?:und|en|ën)(?P<tens>{_TENS})")
_HAN_DIGITS: Final = dict(zip("零一二三四五六七八九〇两兩", [*range(10), 0, 2, 2], strict=True))
_HAN_SCALES: Final = {"十": 10, "百": 100, "千": 1_000}
HAN_NUMBER: Final = re.compile(r"[零〇一二两兩三四五六七八九十百千]{1,12}")


def word_values(word: str) -> frozenset[float]:
    """Return the numbers that a lower-case word stands for: forty-five, zwölf, 三十."""
    if (single := NUMBERS.get(word)) is not None:
        return single
    for pattern in (_COMPOUND, _GERMAN_COMPOUND):
        if (compound := pattern.fullmatch(word)) is not None:
            ones, tens = (min(NUMBERS[compound[name]]) for name in ("ones", "tens"))
            return frozenset({tens + ones})
    return frozenset({float(_han_value(word))}) if HAN_NUMBER.fullmatch(word) else frozenset()


def _han_value(word: str) -> int:
    total = digit = 0
    for sign in word:
        if sign in _HAN_SCALES:
            total += (digit or 1) * _HAN_SCALES[sign]
            digit = 0
        else:
            digit = digit * 10 + _HAN_DIGITS[sign]
    return total + digit
