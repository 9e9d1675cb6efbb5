"""What the set is made of: credentials, contexts to put them into, samples with known spans."""

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
    """A credential as it is written down.

    Attributes:
        text: with what belongs to it, for example the URI around a password.
        spans: what of the text has to be masked, half open.
        may: what beside it may be masked as well: a user's name, the frame of a key.
        name: of a setting that would hold it, in capitals.
        label: what a person calls it.
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
        family: token: known by its own form. named: known by the name beside it. password: what
            a person chose. line: a URI, a command or a line of a file around a password.
            block: of several lines.
        make: a random one.
        whole_line: whether it stands on a line of its own wherever it occurs.
    """

    name: str
    family: Family
    make: Callable[[Random], Credential]
    whole_line: bool = False


Transform = Callable[[Credential, Random], Credential]
Applies = Callable[[Credential], bool]


@dataclass(frozen=True, slots=True)
class Context:
    """A place for a credential.

    Attributes:
        name: of the context, distinct in its half.
        template: text in which «X» is the credential, «NAME» and «name» its setting, «label» what
            it is called.
        transform: what becomes of the credential before: it is escaped, encoded, wrapped.
        applies: to which credentials; to all if it is None.
        media_type: the document is parsed as this first; None: it is scanned as plain text.
    """

    name: str
    template: str
    transform: Transform | None = None
    applies: Applies | None = None
    media_type: str | None = None

    def on_its_line(self) -> bool:
        """Whether nothing but blanks stand beside the credential on its line."""
        return any(line.strip() == "«X»" for line in self.template.split("\n"))

    def delimited(self) -> bool:
        """Whether something other than a blank says where the credential ends."""
        after = self.template.partition("«X»")[2][:2]
        return (
            after[:1] in {"", "\n", '"', "'", "`", "<", "|", "\t", "”", "“", "»"} or after == " |"
        )


@dataclass(frozen=True, slots=True)
class Sample:
    """A text of which it is known what has to be masked.

    Attributes:
        text: the text, or the source of a document of `media_type`.
        spans: of its credentials, half open, in order; empty for a clean text.
        kind: of credential, or "clean".
        context: the place it stands in, or where the clean text is from.
        half: whether anything may be tuned on it.
        media_type: what it is parsed as; None: it is scanned as it is.
        may: what may be masked or not: it counts neither way.
    """

    text: str
    spans: tuple[Span, ...]
    kind: str
    context: str
    half: Half
    media_type: str | None = None
    may: tuple[Span, ...] = field(default=())
