"""The parts of the set: credentials, contexts for them, and samples with known spans."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Literal

Half = Literal["tuning", "held_out"]
Family = Literal["token", "named", "password", "line", "block"]
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Credential:
    """A credential in its written form.

    Attributes:
        text: with its surroundings, for example the URI around a password.
        spans: half-open spans of the text that must be masked.
        may: spans that may be masked too: a user's name, the frame of a key.
        name: of a setting that would hold it, in capitals.
        label: the term that a person uses for it.
    """

    text: str
    spans: tuple[Span, ...]
    may: tuple[Span, ...] = ()
    name: str = "API_KEY"
    label: str = "API key"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of credential.

    Attributes:
        name: of the kind.
        family: token: recognized by its own form. named: recognized by the name before it.
            password: chosen by a person. line: a URI, a command or a line of a file with a
            password. block: of several lines.
        make: returns a random credential of this kind.
        whole_line: whether it always has a line of its own.
    """

    name: str
    family: Family
    make: Callable[[Random], Credential]
    whole_line: bool = False


Transform = Callable[[Credential, Random], Credential]
Applies = Callable[[Credential], bool]


@dataclass(frozen=True, slots=True)
class Context:
    """A text around a credential.

    Attributes:
        name: of the context, unique in its half.
        template: text in which «X» is the credential, «NAME» and «name» its setting, «label» its
            term.
        transform: escapes, encodes or wraps the credential before it is inserted.
        applies: whether a credential fits; if None, all do.
        media_type: the type as which the document is parsed; None: it is scanned as plain text.
    """

    name: str
    template: str
    transform: Transform | None = None
    applies: Applies | None = None
    media_type: str | None = None

    def on_its_line(self) -> bool:
        """Return whether only white space surrounds the credential on its line."""
        return any(line.strip() == "«X»" for line in self.template.split("\n"))

    def delimited(self) -> bool:
        """Return whether the credential is followed by a delimiter other than a space."""
        after = self.template.partition("«X»")[2][:2]
        return (
            after[:1] in {"", "\n", '"', "'", "`", "<", "|", "\t", "”", "“", "»"} or after == " |"
        )


@dataclass(frozen=True, slots=True)
class Sample:
    """A text with known credentials.

    Attributes:
        text: the text, or the source of a document of `media_type`.
        spans: half-open spans of its credentials, in order; empty for a clean text.
        kind: of credential, or "clean".
        context: the name of its context, or the origin of a clean text.
        half: tuning or held_out.
        media_type: the type as which it is parsed; None: it is scanned as plain text.
        may: spans that may be masked or not, which count neither way.
    """

    text: str
    spans: tuple[Span, ...]
    kind: str
    context: str
    half: Half
    media_type: str | None = None
    may: tuple[Span, ...] = field(default=())
