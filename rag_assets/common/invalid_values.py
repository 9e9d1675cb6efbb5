"""Texts for validation errors: the allowed values, and the kind of value received.

No text quotes a received string: it may be a credential. No text names a type of Python or shows a
regular expression.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core.core_schema import ErrorType

_Model = TypeVar("_Model", bound=BaseModel)


class InvalidFields(Exception):
    """Fields of a record or of a request are not valid.

    The errors have Pydantic's form, without values; each location starts with `body`.
    """

    def __init__(self, errors: Sequence[Mapping[str, Any]]) -> None:
        super().__init__(f"{len(errors)} fields are not valid")
        self.errors = errors


def invalid(field: str, problem: str) -> InvalidFields:
    """Return the error to raise for an invalid field; "body" stands for the whole body."""
    loc = ("body",) if field == "body" else ("body", field)
    return InvalidFields([{"type": "value_error", "loc": loc, "msg": problem}])


def validate_values(model: type[_Model], values: Any) -> _Model:
    """Validate values and return them as a model; the error contains no value."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)
        raise InvalidFields(
            [{**detail, "loc": ("body", *detail["loc"])} for detail in details]
        ) from None


PATTERNS: Final[Mapping[str, str]] = {
    r"\S": "it must contain a visible character",
    r"^[^\x00]*$": "it must not contain the character U+0000",
    r"^[^\x00]+$": "it must not be empty or contain the character U+0000",
    r"^[^\x00]*[^\x00\s][^\x00]*$": (
        "it must contain a visible character, and not the character U+0000"
    ),
    r"^[^\x00]*[^\s\x00][^\x00]*$": (
        "it must contain a visible character, and not the character U+0000"
    ),
    r"^[^\x00-\x1f\x7f]*$": "it must be one line without control characters",
    r"^[^\x00-\x1f\x7f]+$": "it must be one line without control characters, and not empty",
    r"^[^\x00-\x1f\x7f-\x9f]+$": "it must be one line without control characters, and not empty",
    r"^[^\x00-\x1f\x7f]*[^\s\x00-\x1f\x7f][^\x00-\x1f\x7f]*$": (
        "it must be one line with a visible character, and without control characters"
    ),
    r"^[^\x00-\x1f\x7f\uFFFD]+$": ("it must be UTF-8 without control characters, and not empty"),
    r"^[\x21-\x7e]+$": "it must consist of visible ASCII characters without spaces",
    "^[!-#%-~][!-~]*$": (
        "it must consist of visible ASCII characters without spaces, and not begin with $"
    ),
    "^[a-z_]+$": "it may contain only the letters a-z in lower case, and _",
    "^[a-z0-9._-]+$": "it may contain only a-z in lower case, digits, and . _ -",
    r"^[a-z0-9]+([._-][a-z0-9]+)*$": (
        "it may contain only a-z in lower case, digits, and single . _ - between them"
    ),
    "^[A-Za-z][A-Za-z0-9_-]*$": (
        "it must begin with a letter A-Z, and may contain only A-Z, a-z, digits, and _ -"
    ),
    "^[A-Za-z0-9][A-Za-z0-9_-]*$": (
        "it must begin with a letter or digit, and may contain only A-Z, a-z, digits, and _ -"
    ),
    "^[A-Za-z0-9][A-Za-z0-9_.-]*$": (
        "it must begin with a letter or digit, and may contain only A-Z, a-z, digits, and _ . -"
    ),
    r"^[A-Za-z0-9][A-Za-z0-9._:@-]*$": (
        "it must begin with a letter or digit, and may contain only A-Z, a-z, digits, and . _ : @ -"
    ),
    r"^[A-Za-z0-9._:/@-]+$": "it may contain only A-Z, a-z, digits, and . _ : / @ -",
    r"^[A-Za-z0-9._-]{1,40}$": (
        "it must be 1 to 40 characters long, of A-Z, a-z, digits, and . _ -"
    ),
    r"^[A-Za-z_]{3,40}$": "it must be 3 to 40 letters A-Z, or _",
    r"^[^/\x00]+/[^/\x00]+/[^\x00]+$": (
        "it must have three parts that are separated by / and not empty"
    ),
    "^[0-9a-f]{32}$": "it must be an id: 32 hexadecimal digits in lower case",
    "^[0-9a-f]{64}$": "it must be a SHA-256: 64 hexadecimal digits in lower case",
    "^([0-9]{1,17})-([0-9a-f]{32})$": "it must be the value of `next` from the previous page",
}
"""The description of each pattern in a request field."""

_FORM: Final = "it does not have the form that this field requires: see the API's description"
_ALLOWED: Final[Mapping[str, str]] = {
    type_: text
    for text, types in {
        "there is no such field": "extra_forbidden",
        "this field is needed": "missing",
        "it is nested too deeply": "recursion_loop",
        "it is not JSON": "json_invalid",
        "it must be null": "none_required",
        "it must be true or false": "bool_type bool_parsing",
        "it must be a whole number": "int_type int_parsing int_from_float int_parsing_size",
        "it must be a number": "float_type float_parsing decimal_type decimal_parsing",
        "it must be a finite number": "finite_number",
        "it must be a string": "string_type string_sub_type bytes_type path_type",
        "it must be valid Unicode": "string_unicode",
        "it must be an array": (
            "list_type tuple_type set_type frozen_set_type iterable_type sequence_type"
        ),
        "it must be an object": (
            "dict_type mapping_type model_type model_attributes_type dataclass_type"
            " dataclass_exact_type"
        ),
        "it must not be empty": "too_short string_too_short",
        "it is too long: {max_length} characters at most": "string_too_long",
        "it has too many items: {max_length} at most": "too_long",
        "it must be {expected}": "literal_error enum",
        "it must be one of: {expected_tags}": "union_tag_invalid",
        "it must be greater than {gt}": "greater_than",
        "it must be {ge} or more": "greater_than_equal",
        "it must be less than {lt}": "less_than",
        "it must be {le} or less": "less_than_equal",
        "it must be a multiple of {multiple_of}": "multiple_of",
        'it must be a time with its zone, as in "2026-03-17T12:00:00Z"': (
            "datetime_type datetime_parsing datetime_from_date_parsing datetime_object_invalid"
            " timezone_aware"
        ),
        'it must be a date, as in "2026-03-17"': (
            "date_type date_parsing date_from_datetime_parsing"
        ),
        'it must be a UUID, as in "7f0c9a52-5d0e-4a30-9a55-5d3e0f7f7c11"': (
            "uuid_type uuid_parsing uuid_version"
        ),
        "it must be a URL": "url_type url_parsing url_scheme",
    }.items()
    for type_ in types.split()
}
"""The allowed values by the type of Pydantic's error."""
_VALUE_ERRORS: Final = frozenset(
    {*("greater_than", "greater_than_equal", "less_than", "less_than_equal"), "multiple_of"}
)
_LENGTH_ERRORS: Final = frozenset({"string_too_long", "too_long"})
_PYDANTIC_ERRORS: Final = frozenset(get_args(ErrorType))
_MODEL_ERRORS: Final = frozenset({"value_error", "assertion_error"})
_ERRORS_WITHOUT_TYPE: Final = frozenset(
    {"extra_forbidden", "missing", "recursion_loop", "json_invalid", "value_error"}
)


def allowed_texts() -> set[str]:
    """Return every text that allowed_value() can return, except texts that models define."""
    return {*_ALLOWED.values(), _FORM}


def allowed_value(error: Mapping[str, Any]) -> str:
    """Return a message with the values that are allowed where a Pydantic error occurred."""
    context = error.get("ctx", {})
    if error["type"] in _MODEL_ERRORS or error["type"] not in _PYDANTIC_ERRORS:
        # Return a model's own message, without Pydantic's prefix.
        return str(error["msg"]).removeprefix("Value error, ").removeprefix("Assertion failed, ")
    if error["type"] == "string_pattern_mismatch":
        return PATTERNS.get(context["pattern"], _FORM)
    if error["type"].startswith(("too_short", "string_too_short")):
        least = context.get("min_length", 1)
        return "it must not be empty" if least == 1 else f"it is too short: {least} at least"
    if error["type"] == "union_tag_not_found":
        return f"the field {context.get('discriminator', '')} is needed"
    allowed = _ALLOWED.get(error["type"], _FORM)
    return allowed.format_map({name: _format_number(value) for name, value in context.items()})


def sent_value(error: Mapping[str, Any]) -> str | None:
    """Describe the received value by its JSON kind, number or length; never quote a string.

    Return None if the error has no value, or the value's kind says nothing about the error.
    """
    if "input" not in error or error["type"] in _ERRORS_WITHOUT_TYPE:
        return None
    value = error["input"]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if error["type"] in _VALUE_ERRORS and is_number:
        return _format_number(value)
    if error["type"] in _LENGTH_ERRORS:
        return f"{len(value):,}" if hasattr(value, "__len__") else None
    return json_kind(value)


def json_kind(value: object) -> str:
    """Return the kind of a value in JSON's terms, such as "a number" or "an empty string"."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    kinds: tuple[tuple[type | tuple[type, ...], str, str], ...] = (
        ((int, float), "a number", "a number"),
        ((str, bytes), "a string", "an empty string"),
        (Mapping, "an object", "an empty object"),
        ((list, tuple, set, frozenset), "an array", "an empty array"),
    )
    for types, kind, empty in kinds:
        if isinstance(value, types):
            return kind if value else empty
    return "another value"


def _format_number(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


_YAML_TEXTS: Mapping[str, str] = {
    "it must be an array": "it must be a list",
    "it must be an object": "it must be a mapping",
    "it must be a string": "it must be a text",
}


def describe_problem(error: Mapping[str, Any]) -> str:
    """Describe a validation error by its location and allowed values, not its value."""
    # Keys of a mapping are untrusted text: their line ends and control characters must not enter a
    # message.
    path = ".".join(map(str, error["loc"])) or "configuration"
    where = "".join(character if character.isprintable() else "?" for character in path)
    allowed = allowed_value(error)
    return f"{where}: {_YAML_TEXTS.get(allowed, allowed)}"


def describe_first_problem(error: ValidationError) -> str:
    """Describe the first problem of a failed validation; see describe_problem."""
    return describe_problem(error.errors(include_url=False, include_input=False)[0])
