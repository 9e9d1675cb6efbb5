"""Figures in a text: numbers, quantities, dates and times, normalized from all notations.

A number may be written as 1,234.5, 1.234,5, 1 234,5 or 1'234.5; a date as 2026-03-15, 15.03.2026,
March 15, 2026 or 15 de marzo de 2026; a quantity as 90 minutes or 1.5 h. An ambiguous figure has
several readings. A claim is rejected only if no reading fits its passage.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Final, TypeAlias

from rag_assets.search.sentences import Numbers, blank_addresses, blank_hosts, normalize_characters
from rag_assets.search.words import (
    HAN_NUMBER,
    MONTHS,
    ORDINAL_ENDS,
    SCALES,
    UNITS,
    Unit,
    parse_word_values,
)

Date: TypeAlias = tuple[int | None, int | None, int | None]
"""Year, month and day, as far as written."""

_MONTH: Final = "|".join(sorted(map(re.escape, MONTHS), key=len, reverse=True))
_OF: Final = r"(?:(?:de|of|di|del|den)\s)?"
_END: Final = r"(?:st|nd|rd|th|er|o|a|\.)?"
_DATES: Final = (
    re.compile(
        r"(?<![\d.])(?P<year>\d{4})(?:\s?[年년]\s?|[-/.])(?P<month>\d{1,2})(?:\s?[月월]\s?|[-/.])"
        r"(?P<day>\d{1,2})(?:\s?[日일]|(?!\d))"
    ),
    re.compile(r"(?P<year>\d{4})\s?[年년]\s?(?P<month>\d{1,2})\s?[月월]"),
    re.compile(r"(?<!\d)(?P<month>\d{1,2})\s?[月월]\s?(?P<day>\d{1,2})\s?[日일]"),
    re.compile(
        r"(?<![\d.,/-])(?P<first>\d{1,2})(?P<sign>[./-])(?P<second>\d{1,2})(?P=sign)"
        r"(?P<year>\d{4}|\d{2})(?![\d/-]|\.\d)"
    ),
    re.compile(
        rf"(?<![\d.,])(?P<day>\d{{1,2}}){_END}\s?{_OF}(?P<name>{_MONTH})(?!\w)\.?"
        rf"(?:,?\s{_OF}(?P<year>\d{{4}})(?!\d))?"
    ),
    re.compile(
        rf"(?<!\w)(?P<name>{_MONTH})\.?\s(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?![\d:]|[.,]\d)"
        r"(?:,?\s(?P<year>\d{4})(?!\d))?"
    ),
    re.compile(rf"(?<!\w)(?P<name>{_MONTH})\.?,?\s{_OF}(?P<year>\d{{4}})(?!\d)"),
)
_MONTH_ALONE: Final = re.compile(rf"(?<!\w)(?P<name>{_MONTH})(?!\w)")
_MONTH_OR_WORD: Final = frozenset({"march", "may", "mars", "august"})
"""Month names in lower case that may also be other words. In a claim they count as months only with
a capital."""
_WRITTEN_MONTH: Final = re.compile(r"(?<=[a-z,] )(?:March|May|August)(?!\w)")
_ARABIC_SIGNS: Final = {0x066B: ".", 0x066C: ","}
_TIME: Final = re.compile(
    r"(?<![\d.,:])(?P<hour>\d{1,2})(?:(?P<sign>[:.]|\s?h\s?)(?P<minute>\d{2})(?P<seconds>:\d{2})?)?"
    r"(?:\s?(?P<half>[ap])\.?m\b\.?|\s?(?P<clock>uhr|o'clock))?(?![\d:]|\.\d)"
)
_NUMBER: Final = re.compile(
    r"\d{1,3}(?: \d{3}){1,8}(?:[.,]\d{1,9})?(?![\d.,]\d|\d)|\d{1,30}(?:[.,'’_]\d{1,30}){0,20}"
)
_WORD: Final = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_UNIT_AFTER: Final = re.compile(
    r"[\s-]{0,2}(?P<unit>km/h|us\$|°[cf]?|[%‰€$£¥₹₽]|[^\W\d_]{1,20}[23]?)(?![\d])"
)
_BETWEEN: Final = re.compile(r"\s[^\W\d_]{4,20}(?=\s)")
_SIGN_BEFORE: Final = re.compile(r"(?:us\$|[€$£¥₹₽]|(?<![^\W\d_])[a-z]{3})\s?\Z")
_LOOKBACK_CHARACTERS: Final = 6
_MAX_UNSPACED_UNIT_CHARACTERS: Final = 3
_ITEM: Final = re.compile(r"\A[\s>*+•-]*(?:\d{1,3}[.)](?=\s))?|(?<!\w)\(\d{1,2}\)(?=\s)")
_MINUTES_OF_HALF_A_DAY: Final = 720
_HOURS, _MINUTES = 24, 60
_MONTHS, _DAYS = 12, 31
_CENTURY: Final = 2_000
_MAX_NAME_CHARACTERS: Final = 40
_MAX_FIGURES: Final = 300
"""Maximum number of different figures that are compared in a sentence."""
_SUFFIX: Final = re.compile(r"[^\W\d_][^\W_]{0,40}")
_GROUP: Final = 3


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with its unit: all possible values and units if they are ambiguous.

    `units` is empty for an unknown unit.
    """

    values: frozenset[str]
    units: frozenset[Unit] = frozenset()

    @property
    def in_base_units(self) -> frozenset[tuple[str, str]]:
        """Return pairs of a dimension and a value in its base unit."""
        return frozenset(
            (dimension, _format_value(float(value) * factor))
            for dimension, factor in self.units
            for value in self.values
        )


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure that a claim states.

    Attributes:
        quantities: possible readings of the number, such as 1.234 as one thousand or as one; the
            passage must have all quantities of one reading.
        dates: the dates that it may mean; the passage must have one of them.
        minutes: the times that it may mean, in minutes of the day; the passage must have one of
            them.
        literal: a name with digits, such as gpt-4, or a version; the passage must have it.
    """

    written: str
    quantities: tuple[tuple[Quantity, ...], ...] = ()
    dates: frozenset[Date] = frozenset()
    minutes: frozenset[int] = frozenset()
    literal: str | None = None


@dataclass(frozen=True, slots=True)
class Figures:
    """All figures of a passage, with every possible value of an ambiguous figure.

    Attributes:
        values, bare: numbers with any unit or none, and those without a known unit.
        measured: values with a unit, in base units.
    """

    values: frozenset[str] = frozenset()
    bare: frozenset[str] = frozenset()
    measured: frozenset[tuple[str, str]] = frozenset()
    dates: frozenset[Date] = frozenset()
    minutes: frozenset[int] = frozenset()
    text: str = ""

    @classmethod
    def parse(cls, text: str) -> Figures:
        """Return the figures of a passage, with every possible value."""
        folded = _fold_text(text)
        remaining_text, dates = _extract_dates(folded)
        dates_found = [date for _, readings in dates for date in readings]
        dates_found += [
            (None, MONTHS[month["name"]], None) for month in _MONTH_ALONE.finditer(remaining_text)
        ]
        minutes = {
            minute
            for _, readings in _find_times(remaining_text, whole_hours=True)
            for minute in readings
        }
        quantities = [
            q
            for quantity in _find_quantities(remaining_text)
            for reading in quantity.quantities
            for q in reading
        ]
        quantities += _find_number_words(remaining_text)
        parts = {_format_value(part) for date in dates_found for part in date if part is not None}
        parts |= {_format_value(part) for part in _iter_parts_of_times(remaining_text)}
        return cls(
            frozenset().union(parts, *(q.values for q in quantities)),
            frozenset().union(parts, *(q.values for q in quantities if not q.units)),
            frozenset().union(*(q.in_base_units for q in quantities)),
            frozenset(dates_found),
            frozenset(minutes),
            folded,
        )

    @classmethod
    def merge(cls, parts: Sequence[Figures]) -> Figures:
        """Combine the figures of several passages."""
        return cls(
            frozenset[str]().union(*(part.values for part in parts)),
            frozenset[str]().union(*(part.bare for part in parts)),
            frozenset[tuple[str, str]]().union(*(part.measured for part in parts)),
            frozenset[Date]().union(*(part.dates for part in parts)),
            frozenset[int]().union(*(part.minutes for part in parts)),
            "\n".join(part.text for part in parts),
        )

    def contain(self, figure: Figure) -> bool:
        """Return whether these figures include at least one of the possible values of a figure."""
        if figure.literal is not None:
            return _compile_literal_pattern(figure.literal).search(self.text) is not None
        if figure.dates:
            return any(self._contain_date(date) for date in figure.dates)
        if figure.minutes & self.minutes:
            return True
        return any(all(map(self._contain_quantity, reading)) for reading in figure.quantities)

    def _contain_date(self, date: Date) -> bool:
        year, month, day = date
        return any(
            (month is None or month == other[1])
            and (day is None or day == other[2])
            and (
                year is None
                or year == other[0]
                or (other[0] is None and _format_value(year) in self.bare)
            )
            for other in self.dates
        )

    def _contain_quantity(self, quantity: Quantity) -> bool:
        if not quantity.units:
            return bool(quantity.values & self.values)
        if quantity.values & self.bare or quantity.in_base_units & self.measured:
            return True
        as_shares = {key for dimension, key in quantity.in_base_units if dimension == "ratio"}
        return bool(as_shares & self.bare)


def find_claimed_figures(text: str) -> Iterator[Figure]:
    """Yield a claim's figures, except addresses, and the numbers of items, telephones and cards."""
    folded = _ITEM.sub(_replace_with_blanks, blank_addresses(blank_hosts(_fold_text(text))))
    dialled = Numbers.parse(text).dialled
    remaining_text, dates = _extract_dates(folded)
    for written, readings in dates:
        yield Figure(written, dates=readings)
    named = [month["name"] for month in _MONTH_ALONE.finditer(remaining_text)]
    capital = {month[0].casefold() for month in _WRITTEN_MONTH.finditer(text)}
    for name in dict.fromkeys(named):
        if len(name) > _GROUP and (name not in _MONTH_OR_WORD or name in capital):
            yield Figure(name, dates=frozenset({(None, MONTHS[name], None)}))
    for figure in islice(dict.fromkeys(_find_figures(remaining_text)), _MAX_FIGURES):
        digits = re.sub(r"\D", "", figure.written)
        is_dialled = any(digits in number for number in dialled)
        if not (is_dialled and len(digits) > 1):
            yield figure


def _fold_text(text: str) -> str:
    return normalize_characters(text).translate(_ARABIC_SIGNS)


def _find_figures(text: str) -> Iterator[Figure]:
    for written, readings in _find_times(text):
        yield Figure(written, minutes=readings)
    for run in HAN_NUMBER.finditer(text):
        values, units = parse_word_values(run[0]), _parse_unit(text, run.end())
        if units and min(values) > 1:
            yield Figure(run[0], ((Quantity(frozenset(map(_format_value, values)), units),),))
    text = _TIME.sub(
        lambda time: _replace_with_blanks(time) if _list_possible_minutes(time) else time[0], text
    )
    yield from _find_quantities(text)
    for word in _WORD.finditer(text):
        # A number word counts only with a unit. A mere count, as in "two ways, both", is often the
        # claim's own.
        values, units = parse_word_values(word[0]), _parse_unit(text, word.end())
        if values and units and min(values) > 1:
            quantity = Quantity(frozenset(map(_format_value, values)), units)
            yield Figure(word[0], ((quantity,),))


def _extract_dates(text: str) -> tuple[str, list[tuple[str, frozenset[Date]]]]:
    """Return a text without its dates; also each removed text, with the dates that it may mean."""
    dates: list[tuple[str, frozenset[Date]]] = []

    def take(match: re.Match[str]) -> str:
        readings = frozenset(_iter_possible_dates(match.groupdict()))
        if not readings:
            return match[0]
        dates.append((match[0], readings))
        return _replace_with_blanks(match)

    for pattern in _DATES:
        text = pattern.sub(take, text)
    return text, dates


def _iter_possible_dates(parts: Mapping[str, str | None]) -> Iterator[Date]:
    written_year = parts.get("year")
    year = None if written_year is None else int(written_year)
    if year is not None and len(written_year or "") == len("26"):
        year += _CENTURY
    for month, day in _iter_months_and_days(parts):
        if 1 <= month <= _MONTHS and (day is None or 1 <= day <= _DAYS):
            yield year, month, day


def _iter_months_and_days(parts: Mapping[str, str | None]) -> Iterator[tuple[int, int | None]]:
    first, second = parts.get("first"), parts.get("second")
    if first is not None and second is not None:
        # The first number may be the day or the month.
        yield int(second), int(first)
        yield int(first), int(second)
        return
    name, month, day = parts.get("name"), parts.get("month"), parts.get("day")
    number = MONTHS[name] if name is not None else int(month or 0)
    yield number, None if day is None else int(day)


def _find_times(text: str, *, whole_hours: bool = False) -> Iterator[tuple[str, frozenset[int]]]:
    for time in _TIME.finditer(text):
        if readings := _list_possible_minutes(time):
            yield time[0], readings
    if whole_hours:
        # 15 h and 15 heures are a time of the day as well as a quantity.
        for figure in _find_quantities(text):
            for quantity in (q for reading in figure.quantities for q in reading):
                if ("time", 3600.0) in quantity.units:
                    hours = (float(value) for value in quantity.values)
                    minutes = frozenset(int(60 * hour) for hour in hours if hour < _HOURS)
                    yield figure.written, minutes


def _list_possible_minutes(time: re.Match[str]) -> frozenset[int]:
    """Return the minutes of the day that a time may mean; empty if it is not a valid time."""
    hour, minute = int(time["hour"]), int(time["minute"] or 0)
    is_marked = bool(time["half"] or time["clock"])
    is_time = is_marked or (time["minute"] is not None and time["sign"] != ".")
    if not is_time or hour > _HOURS or minute >= _MINUTES:
        return frozenset()
    minutes = 60 * (hour % _HOURS) + minute
    if not time["half"]:
        return frozenset({minutes})
    half = minutes % _MINUTES_OF_HALF_A_DAY
    return frozenset({half + _MINUTES_OF_HALF_A_DAY * (time["half"] == "p")})


def _iter_parts_of_times(text: str) -> Iterator[int]:
    for time in _TIME.finditer(text):
        if _list_possible_minutes(time):
            yield from (int(part) for part in (time["hour"], time["minute"]) if part)


def _find_quantities(text: str) -> Iterator[Figure]:
    """Yield the numbers of a folded text with their units, and names that contain digits."""
    for number in _NUMBER.finditer(text):
        start, end = number.span()
        if (name := _find_name_around(text, start, end)) is not None:
            if name not in UNITS:
                yield Figure(name, literal=name)
            continue
        readings = _list_number_readings(number[0])
        if not readings:
            yield Figure(number[0], literal=number[0])
            continue
        yield Figure(
            number[0], tuple(_to_quantities(text, start, end, reading) for reading in readings)
        )


def _list_number_readings(written: str) -> list[list[frozenset[float]]]:
    """Return the possible readings of digits: each is a list of numbers with possible values.

    For example, "1 234" may be one number or two. A version like 3.11.7 has no reading.
    """
    if " " in written:
        joined = _list_number_readings(written.replace(" ", ""))
        return [
            *joined,
            [frozenset({value}) for part in written.split() for value in _iter_plain_values(part)],
        ]
    signs = re.findall(r"\D", written)
    groups = re.split(r"\D", written)
    values: set[float] = set()
    if not signs:
        values.add(float(written))
    elif len(set(signs)) == 1:
        if _is_grouped(groups):
            values.add(float("".join(groups)))
        if len(signs) == 1 and signs[0] in ".,":
            values.add(float(".".join(groups)))
    elif signs.count(signs[-1]) == 1 and len(set(signs)) == 2 and _is_grouped(groups[:-1]):  # noqa: PLR2004
        values.add(float(f"{''.join(groups[:-1])}.{groups[-1]}"))
    if values:
        return [[frozenset(values)]]
    if set(signs) == {","}:
        return [[frozenset({float(group)}) for group in groups]]
    return []


def _iter_plain_values(part: str) -> Iterable[float]:
    [[values]] = _list_number_readings(part)
    return values


def _is_grouped(groups: Sequence[str]) -> bool:
    """Return whether digits are in groups of three, or in Indian groups of two before the last."""
    first, *middle, last = groups if len(groups) > 1 else [*groups, "000"]
    inner = {len(group) for group in middle}
    return (
        1 <= len(first) <= _GROUP
        and first != "0"
        and len(last) == _GROUP
        and (inner <= {_GROUP} or inner == {2})
    )


def _to_quantities(
    text: str, start: int, end: int, reading: Sequence[frozenset[float]]
) -> tuple[Quantity, ...]:
    """Return the quantities of a reading. Scale and unit apply to its last number."""
    *others, last = reading
    after = _UNIT_AFTER.match(text, end)
    scaled = last
    if after is not None and (scales := SCALES.get(after["unit"])) is not None:
        scaled = frozenset(value * scale for value in last for scale in scales)
        # "5 m" may also mean 5 metres, and "3 mil" the plain number 3.
        if after["unit"] in UNITS:
            scaled |= last
        end = after.end()
    units = _parse_unit(text, end) or UNITS.get(after["unit"] if after else "", frozenset())
    # Add the unit of a preceding currency sign, since the m of €4.2m does not mean metres.
    units |= _find_currency_before(text, start)
    *plain, measured = (frozenset(map(_format_value, values)) for values in (*others, scaled))
    return (*map(Quantity, plain), Quantity(measured, units))


def _parse_unit(text: str, end: int) -> frozenset[Unit]:
    after = _UNIT_AFTER.match(text, end)
    if after is not None and (unit := _find_unit_word(after["unit"])) in UNITS:
        return UNITS[unit]
    if (between := _BETWEEN.match(text, end)) is None:
        return frozenset()
    # Skip one word, as in 5 working days.
    after = _UNIT_AFTER.match(text, between.end())
    return UNITS.get(after["unit"], frozenset()) if after is not None else frozenset()


def _find_unit_word(word: str) -> str:
    """Return the unit at the start of a word in a script without blanks; otherwise the word."""
    if word in UNITS or unicodedata.category(word[0]) != "Lo":
        return word
    beginnings = (word[:length] for length in range(_MAX_UNSPACED_UNIT_CHARACTERS, 0, -1))
    return next((prefix for prefix in beginnings if prefix in UNITS), word)


def _find_currency_before(text: str, start: int) -> frozenset[Unit]:
    sign = _SIGN_BEFORE.search(text, max(0, start - _LOOKBACK_CHARACTERS), start)
    return UNITS.get(sign[0].strip(), frozenset()) if sign is not None else frozenset()


def _find_name_around(text: str, start: int, end: int) -> str | None:
    """Return the name that digits are part of, such as gpt-4 or h2o; None for a number."""
    begin = start
    while begin > max(0, start - _MAX_NAME_CHARACTERS) and _continues_name(text[begin - 1]):
        begin -= 1
    before = text[begin:start].lstrip("-_")
    if before.endswith("-") and end - start == len("2026"):
        # For example mid-2026.
        before = ""
    name = before + text[start:end]
    # For example v2 and eur45.
    is_number = before == "v" or (before in UNITS and name not in UNITS)
    is_name = any(map(str.isalpha, before)) and not is_number
    suffix = _SUFFIX.match(text, end)
    after = "".join(takewhile(_continues_name, suffix[0] if suffix else ""))
    if after in UNITS or after in SCALES or after in ORDINAL_ENDS:
        after = ""
    return name + after if is_name or after else None


def _continues_name(sign: str) -> bool:
    """Return whether a character next to digits may continue a name.

    Letters of scripts without blanks do not: names in these scripts have no digits.
    """
    return sign in "-_" or (sign.isalnum() and unicodedata.category(sign) != "Lo")


def _find_number_words(text: str) -> Iterator[Quantity]:
    """Yield the numbers of a folded text that are written as words."""
    for word in _WORD.finditer(text):
        for part in {word[0], *word[0].split("-")}:
            if values := parse_word_values(part):
                yield Quantity(frozenset(map(_format_value, values)), _parse_unit(text, word.end()))
    for run in HAN_NUMBER.finditer(text):
        yield Quantity(
            frozenset(map(_format_value, parse_word_values(run[0]))), _parse_unit(text, run.end())
        )


def _compile_literal_pattern(name: str) -> re.Pattern[str]:
    """Return a pattern for a name that allows any punctuation or blanks between its parts."""
    parts = re.findall(r"\d+|[^\W\d_]+", name)[:20]
    return re.compile(r"(?<![^\W_])v?" + r"[\W_]{0,2}".join(map(re.escape, parts)) + r"(?!\d)")


def _format_value(value: float) -> str:
    return f"{value:.9g}"


def _replace_with_blanks(match: re.Match[str]) -> str:
    return " " * len(match[0])
