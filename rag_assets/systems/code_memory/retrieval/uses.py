"""Uses by name: places that name a definition, divided into certain and possible uses.

The catalog stores the names in each file with their lines, but not the definitions that they refer
to. These are resolved on request from the imports of the file, the definitions with the same name
and the enclosing class. If that does not decide, the place is a possible use of each definition.
"""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, TypeAlias

from rag_assets.common.batches import batched
from rag_assets.ingest.sources.model import parse_path
from rag_assets.systems.code_memory.catalog.found_relations import FoundNameUses, FoundSymbol
from rag_assets.systems.code_memory.languages.tags import get_language_family, load_tag_languages
from rag_assets.systems.code_memory.reading import get_language_of_type
from rag_assets.systems.code_memory.retrieval.nodes import EVIDENCE_NAMES, PREFIXES, Node, Relation
from rag_assets.systems.code_memory.retrieval.view import MAX_IMPLEMENTATIONS, RelationView
from rag_assets.systems.code_memory.sources.repositories.names import find_repository_type
from rag_assets.systems.code_memory.symbols.model import NameUse, NameUses, UseKind, parse_uses
from rag_assets.systems.code_memory.symbols.names import ELSEWHERE, FILE, fold_name, split_name
from rag_assets.systems.code_memory.symbols.naming import get_name_style
from rag_assets.systems.code_memory.symbols.source_types import is_test

MAX_ROWS: Final = 4_000
"""Maximum number of rows (the uses of one name in one file) to read for one question."""
MAX_FILES: Final = 400
"""Maximum number of files with definitions to read, to find the definition around a use."""
MAX_TARGETS: Final = 60
"""Maximum number of definitions to look up at once."""
MAX_CANDIDATES: Final = 20
"""Number of definitions of one name above which possible uses of the name are only counted."""
_SOURCES_AT_ONCE: Final = 50
"""Number of definitions whose relations are read at once; more could exceed the view's limit."""

StatedUse: TypeAlias = tuple[str, int, str]
"""URI, line and name of a use that a relation states."""

_RELATIONS: Final[Mapping[UseKind, str]] = {
    "definition": "defines",
    "implementation": "extends",
    "call": "calls",
    "type": "uses",
    "import": "imports",
    "mention": "mentions",
    "comment": "mentions",
}
"""The name of the relation for each kind of use."""
_ORDER: Final = [*_RELATIONS]
_MENTION_KINDS: Final = frozenset({"mention", "comment"})
_CONFIDENCE: Final = {"name": 0.8, "scip": 1.0}
"""Confidence of certain uses, by `how` of their relation."""
WHY_BY_SCIP: Final = EVIDENCE_NAMES["scip"]
"""Why a use is certain if a SCIP index resolves the name at its place."""
_RARE_NAME: Final = re.compile(r"[a-z0-9][A-Z]|\w_\w|[?!]$|^[A-Z]")
"""Matches names that rarely occur in libraries too: names of several words, and names of types."""


@dataclass(frozen=True, slots=True)
class Use:
    """A place that uses, or may use, a definition.

    Attributes:
        target: the name of the definition.
        name: the name as written.
        receiver: the last name before the dot; "" without a receiver.
        within: the innermost definition that contains the use; None at the top level of a file.
        why: why the use is certain; "" if it is only possible.
        candidates: number of definitions to which the name may refer.
    """

    target: str
    name: str
    kind: UseKind
    receiver: str
    uri: str
    line: int
    repository: str
    within: FoundSymbol | None
    why: str
    candidates: int

    @property
    def source(self) -> str:
        """Return the node that contains the use: the definition around it, or else the file."""
        return FILE + self.uri if self.within is None else self.within.name

    @property
    def relation(self) -> Relation:
        """Return the use as a relation from its source to its target."""
        kind = _RELATIONS[self.kind]
        if kind != "mentions" and is_test(parse_path(self.uri)):
            kind = "tests"
        how = "scip" if self.why == WHY_BY_SCIP else "name" if self.why else "possible"
        return Relation(
            *(kind, self.source, self.target, how),
            confidence=_CONFIDENCE.get(how) or 1 / max(1, self.candidates + 1),
            uri=self.uri,
            line_start=self.line,
            line_end=self.line,
            evidence=f"{self.receiver}.{self.name}" if self.receiver else self.name,
        )


@dataclass(frozen=True, slots=True)
class FoundUses:
    """The certain uses of definitions, by file and line, and the possible ones, most likely first.

    At least `omitted` places and definitions were not read.
    """

    certain: tuple[Use, ...] = ()
    possible: tuple[Use, ...] = ()
    omitted: int = 0


NO_USES: Final = FoundUses()


class _Target(NamedTuple):
    """A definition whose uses are searched for.

    Attributes:
        name, owner: the last parts of its name, and of the name of the definition that contains it.
        holder: the qualified name of the type that contains it; "" if there is none.
        stem: the name by which imports refer to its file.
        family: the family of its language; see get_language_family.
    """

    node: Node
    name: str
    owner: str
    holder: str
    stem: str
    family: str


@dataclass(slots=True)
class _FileUses:
    """A file with its uses of the requested names."""

    row: FoundNameUses
    names: dict[str, NameUses] = field(default_factory=dict)

    @property
    def language(self) -> str:
        return get_language_of_type(find_repository_type(parse_path(self.row.uri)) or "")

    def has_import_of(self, name: str) -> bool:
        """Return whether an import in this file names `name`."""
        uses = self.names.get(name)
        return uses is not None and any(use.kind == "import" for use in uses.uses)


def find_uses_of_nodes(
    view: RelationView, nodes: Iterable[Node], *, stated: Collection[Relation] = ()
) -> FoundUses:
    """Return the uses of definitions by name; other nodes are ignored.

    Args:
        stated: known relations; uses on the same lines are omitted, and equal calls in one
            definition are certain.
    """
    sought = [sought_target for node in nodes if (sought_target := _build_target(node)) is not None]
    targets = sought[:MAX_TARGETS]
    target_names = dict.fromkeys(target.name for target in targets)
    if not target_names:
        return FoundUses()
    others = dict.fromkeys(name for target in targets for name in (target.owner, target.stem))
    other_names = [name for name in others if name and name not in target_names]
    rows, is_cut = view.find_name_uses([*target_names], other_names, MAX_ROWS)
    uses = _UseResolver(view, targets, _group_by_file(rows), stated).resolve()
    return replace(uses, omitted=uses.omitted + len(sought) - len(targets) + int(is_cut))


class _UseResolver:
    """A resolver of uses: it decides which definition the name at each place refers to."""

    def __init__(
        self,
        view: RelationView,
        targets: Sequence[_Target],
        files: Sequence[_FileUses],
        stated: Collection[Relation],
    ) -> None:
        self._targets, self._files = targets, files
        self._stated: set[StatedUse] = set()
        self._evidence: dict[tuple[str, str], list[str]] = defaultdict(list)
        for relation in stated:
            self._stated.add(
                (relation.uri, relation.line_start, _get_last_part(relation.target, relation.uri))
            )
            self._evidence[relation.source, relation.target].append(relation.evidence)
        read = files[:MAX_FILES]
        self._omitted = len(files) - len(read)
        self._symbols: dict[str, list[FoundSymbol]] = defaultdict(list)
        for symbol in view.list_definitions([file.row.uri for file in read]):
            self._symbols[symbol.uri].append(symbol)
        self._candidates: dict[tuple[str, str, str], set[str]] = defaultdict(set)
        self._by_file: dict[tuple[str, str], dict[str, set[str]]] = defaultdict(dict)
        names = {target.name for target in targets}
        for file in read:
            family = get_language_family(file.language)
            for symbol in self._symbols[file.row.uri]:
                last = _get_last_part(symbol.name, symbol.uri)
                if last in names:
                    self._candidates[file.row.source, family, last].add(symbol.name)
                    of_name = self._by_file[file.row.source, last]
                    of_name.setdefault(symbol.uri, set()).add(symbol.name)
        self._owners: dict[tuple[str, str, str], dict[str, set[str]]] = {}
        self._one_method = self._find_implemented_methods(view)
        self._elsewhere = self._find_stated_targets(view)
        self._exact = self._find_scip_targets(view)

    def resolve(self) -> FoundUses:
        """Return all certain and possible uses of the targets."""
        certain: dict[StatedUse, Use] = {}
        possible: dict[StatedUse, Use] = {}
        omitted = self._omitted
        for target in self._targets:
            for file in self._files:
                if file.row.source != target.node.repository or target.name not in file.names:
                    continue
                places = file.names[target.name]
                omitted += places.omitted
                for place in places.uses:
                    use = self._resolve_use(target, file, place)
                    if use is not None:
                        key = use.uri, use.line, use.name
                        (certain if use.why else possible).setdefault(key, use)
        remaining_uses = [use for key, use in possible.items() if key not in certain]
        remaining_uses.sort(key=lambda use: (*self._get_rank_key(use), use.uri, use.line))
        ordered = sorted(certain.values(), key=lambda use: (use.uri, use.line))
        return FoundUses(tuple(ordered), tuple(remaining_uses), omitted)

    def _resolve_use(self, target: _Target, file: _FileUses, place: NameUse) -> Use | None:
        """Return the use of a target at a place; None if already known or of something else."""
        row = file.row
        if place.kind == "definition" or (row.uri, place.line, target.name) in self._stated:
            return None
        language = file.language
        is_program = language in load_tag_languages() or language in {"vue", "svelte"}
        is_foreign = is_program and get_language_family(language) != target.family
        if is_foreign and place.kind not in _MENTION_KINDS:
            return None
        first, last = target.node.line_start or 0, target.node.line_end or 0
        if row.uri == target.node.uri and first <= place.line <= last:
            return None
        at = row.uri, place.line, target.name
        exact = self._exact.get(at, set())
        others = exact or self._elsewhere.get(at, set())
        if others and target.node.name not in others:
            return None
        candidates = self._candidates[row.source, target.family, target.name]
        within = _find_innermost(self._symbols[row.uri], place.line)
        is_in_namesake = within is not None and _get_last_part(within.name, row.uri) == target.name
        if is_in_namesake and place.kind in _MENTION_KINDS and not place.receiver:
            return None  # The place is in the first line of another definition with this name.
        why = "" if is_foreign else self._explain_certainty(target, file, place, within, candidates)
        why = WHY_BY_SCIP if exact else why
        return Use(
            *(target.node.name, target.name, place.kind, place.receiver, row.uri, place.line),
            *(row.source, within, why, len(candidates) + (target.node.name not in candidates)),
        )

    def _explain_certainty(
        self,
        target: _Target,
        file: _FileUses,
        place: NameUse,
        within: FoundSymbol | None,
        candidates: Collection[str],
    ) -> str:
        """Return why a place is a certain use of a definition; "" if it is not certain."""
        if within is not None and self._is_repeated(target, place, within):
            return "repeated call"
        is_mention = place.kind == "mention" and _RARE_NAME.search(target.name) is not None
        if place.kind in _MENTION_KINDS and not (
            is_mention and file.language in load_tag_languages()
        ):
            return ""
        if self._is_named_after_class(place, target, file):
            return "receiver"
        if place.receiver in {"", "self"} and target.holder:
            inside = within is not None and is_within(within.name, target.holder)
            others = (candidate for candidate in candidates if candidate != target.node.name)
            if inside and not any(is_within(candidate, target.holder) for candidate in others):
                return "same class"
        near = self._explain_bare_name(target, file) if place.receiver == "" else ""
        return near or self._explain_single_name(target, file, place, candidates)

    def _explain_single_name(
        self, target: _Target, file: _FileUses, place: NameUse, candidates: Collection[str]
    ) -> str:
        """Return why a name can only mean this definition; "" if it may mean another one."""
        if place.receiver and _RARE_NAME.search(target.name) is None:
            return ""
        if not candidates or candidates == {target.node.name}:
            return "only definition"
        if (file.row.source, target.family, target.name) not in self._one_method:
            return ""
        owners = {_get_owner(candidate) for candidate in candidates}
        is_one = target.node.name in candidates and place.receiver not in owners
        return "only method" if is_one else ""

    def _is_named_after_class(self, place: NameUse, target: _Target, file: _FileUses) -> bool:
        """Return whether the receiver is the class, or a variable named only after it."""
        if not place.receiver or place.receiver == target.owner:
            return bool(place.receiver)
        receiver_name = fold_name(place.receiver)
        if place.kind != "call" or not receiver_name or receiver_name != fold_name(target.owner):
            return False
        key = file.row.source, target.family, target.name
        if key not in self._owners:
            # A common name has hundreds of candidates and thousands of places.
            of_name = self._owners[key] = defaultdict(set)
            for candidate in self._candidates[key]:
                of_name[fold_name(_get_owner(candidate))].add(candidate)
        return self._owners[key].get(receiver_name, set()) <= {target.node.name}

    def _is_repeated(self, target: _Target, place: NameUse, within: FoundSymbol) -> bool:
        """Return whether a call has the same text as a known call in the same definition."""
        evidence = self._evidence.get((within.name, target.node.name))
        if place.kind != "call" or not evidence:
            return False
        before = rf"\b{re.escape(place.receiver)}\W{{1,3}}" if place.receiver else "^"
        written_use = re.compile(rf"{before}{re.escape(target.name)}\b")
        return any(map(written_use.search, evidence))

    def _explain_bare_name(self, target: _Target, file: _FileUses) -> str:
        """Return why a name without receiver means this definition; "" if that is not certain."""
        uri = file.row.uri
        # The definitions with the last name of the target, by the URI of their file.
        places = self._by_file[target.node.repository, target.name]
        if target.node.uri is not None:
            places.setdefault(target.node.uri, set()).add(target.node.name)
        if uri == target.node.uri:
            return "same file" if len(places[uri]) == 1 else ""
        if target.holder and not target.name[:1].isupper():
            return ""  # A method of another class needs a receiver.
        if places.get(uri):
            return ""
        if any(map(file.has_import_of, filter(None, (target.name, target.stem, target.owner)))):
            imported = {uri for uri in places if file.has_import_of(_get_stem(uri))}
            if len(imported | {target.node.uri}) == 1:
                return "import"
        language = load_tag_languages().get(file.language)
        if language is not None and language.is_open_in_folder:
            folder = posixpath.dirname(uri)
            in_folder = [uri for uri in places if posixpath.dirname(uri) == folder]
            if in_folder == [target.node.uri] and len(places[in_folder[0]]) == 1:
                return "same package"
        return ""

    def _find_implemented_methods(self, view: RelationView) -> set[tuple[str, str, str]]:
        """Return those keys of `_candidates` that stand for one method and its implementations."""
        several = {
            key: names
            for key, names in self._candidates.items()
            if 1 < len(names) <= 1 + MAX_IMPLEMENTATIONS
        }
        methods = [(source, name) for (source, *_), names in several.items() for name in names]
        edges = view.find_implementations(methods, "out") if methods else []
        followed = {(edge.source, edge.stated_of, edge.target) for edge in edges}
        implemented = set()
        for key, names in several.items():
            own = {end for source, base, end in followed if source == key[0] and base in names}
            if len(names - own) == 1:
                implemented.add(key)
        return implemented

    def _find_stated_targets(self, view: RelationView) -> dict[StatedUse, set[str]]:
        """Return the targets of known relations by place, to rule out other definitions there."""
        rare = {
            key: names for key, names in self._candidates.items() if len(names) <= MAX_CANDIDATES
        }
        known = {name for names in rare.values() for name in names}
        resolvable = {name for *_, name in rare}
        sources = {
            within.name
            for file in self._files[:MAX_FILES]
            for target in self._targets
            if target.name in resolvable
            for place in file.names.get(target.name, NameUses(())).uses
            if place.kind != "definition"
            and (within := _find_innermost(self._symbols[file.row.uri], place.line)) is not None
        }
        targets_by_place: dict[StatedUse, set[str]] = defaultdict(set)
        for some in batched(sorted(sources), _SOURCES_AT_ONCE) if len(known) > 1 else ():
            for edge in view.find_edges_of_names(some, "out").edges:
                if edge.target in known:
                    last = _get_last_part(edge.target, edge.uri)
                    targets_by_place[edge.uri, edge.line_start, last].add(edge.target)
        return targets_by_place

    def _find_scip_targets(self, view: RelationView) -> dict[StatedUse, set[str]]:
        """Return the targets that SCIP indexes state, by place; see ELSEWHERE."""
        known = {name for names in self._candidates.values() for name in names}
        names = {target.name for target in self._targets}
        nodes = sorted(known | {target.node.name for target in self._targets})
        nodes += [f"{ELSEWHERE}:{name}" for name in sorted(names)]
        targets_by_place: dict[StatedUse, set[str]] = defaultdict(set)
        for some in batched(nodes, _SOURCES_AT_ONCE):
            for edge in view.find_scip_edges(some):
                name = edge.target.removeprefix(f"{ELSEWHERE}:")
                last = name if name != edge.target else _get_last_part(name, edge.uri)
                targets_by_place[edge.uri, edge.line_start, last].add(edge.target)
        return targets_by_place

    def _get_rank_key(self, use: Use) -> tuple[int, int, int]:
        """Return a sort key for possible uses; the most likely uses have the smallest keys."""
        owner, receiver = _get_owner(use.target), fold_name(use.receiver)
        folded = fold_name(owner)
        is_alike = bool(receiver and owner) and (receiver in folded or folded in receiver)
        return int(use.kind in _MENTION_KINDS), int(not is_alike), _ORDER.index(use.kind)


def find_uses_of_word(view: RelationView, name: str) -> FoundUses:
    """Return all occurrences of a word as possible uses, even if no definition has this name."""
    rows, is_cut = view.find_name_uses([name], [], MAX_ROWS)
    files = _group_by_file(rows)
    uses = [
        Use(
            *(name, name, use.kind, use.receiver, file.row.uri, use.line, file.row.source),
            *(None, "", 0),
        )
        for file in files
        for use in file.names[name].uses
    ]
    omitted = sum(file.names[name].omitted for file in files) + int(is_cut)
    programs = {file.row.uri for file in files if file.language in load_tag_languages()}

    def get_sort_key(use: Use) -> tuple[bool, bool, int, str, int]:
        is_other = use.uri not in programs
        return is_other, is_test(parse_path(use.uri)), _ORDER.index(use.kind), use.uri, use.line

    return FoundUses(possible=tuple(sorted(uses, key=get_sort_key)), omitted=omitted)


def _build_target(node: Node) -> _Target | None:
    """Return the target for a definition; None for any other node."""
    if node.uri is None or node.name.startswith((*PREFIXES, FILE, "route:")):
        return None
    name = _get_last_part(node.name, node.uri)
    if not name:
        return None
    holder = node.name[: -len(name)].rstrip(":.#\\/") if node.name.endswith(name) else ""
    language = get_language_of_type(find_repository_type(parse_path(node.uri)) or "")
    family = get_language_family(language)
    owner = _get_owner(node.name)
    holder = holder if owner[:1].isupper() else ""
    return _Target(node, name, owner, holder, _get_stem(node.uri), family)


def _group_by_file(rows: Iterable[FoundNameUses]) -> list[_FileUses]:
    """Return the files of rows in the same order; derived documents are left out."""
    files: dict[tuple[str, str], _FileUses] = {}
    for row in rows:
        file = files.setdefault((row.document_id, row.uri), _FileUses(row))
        file.names[row.name] = parse_uses(row.places)
    return [file for file in files.values() if file.language not in {"derived"}]


def is_within(name: str, holder: str) -> bool:
    """Return whether a name is `holder`, or the name of one of its members."""
    rest = name.removeprefix(holder)
    return name.startswith(holder) and rest[:1] in {"", ":", ".", "#", "\\"}


def _find_innermost(symbols: Sequence[FoundSymbol], line: int) -> FoundSymbol | None:
    around = [symbol for symbol in symbols if symbol.line_start <= line <= symbol.line_end]
    return min(
        around, key=lambda definition: definition.line_end - definition.line_start, default=None
    )


def _get_last_part(name: str, uri: str) -> str:
    if get_name_style(parse_path(uri)) == "none":
        return name.rpartition("::")[2]
    parts = split_name(name, folded=False)
    return parts[-1] if parts else ""


def _get_owner(name: str) -> str:
    parts = split_name(name, folded=False)
    return parts[-2] if len(parts) > 1 else ""


def _get_stem(uri: str) -> str:
    """Return the name by which imports refer to a file: for `index.ts`, the folder's name."""
    folder, name = posixpath.split(parse_path(uri))
    stem = name.partition(".")[0] or name
    return posixpath.basename(folder) if stem in {"__init__", "index", "mod"} else stem
