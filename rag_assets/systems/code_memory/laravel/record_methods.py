"""Results of Eloquent's own methods: a record, several records, a query, or none of these.

Names are in lower case.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

Form: TypeAlias = Literal["one", "query", "many"]
"""A class as an object, as a query for records, or as several objects."""

_ONE: Final = frozenset(
    {"create", "createorfirst", "createquietly", "find", "findor", "findorfail", "findornew"}
    | {"first", "firstor", "firstorcreate", "firstorfail", "firstornew", "firstwhere"}
    | {"forcecreate", "getmodel", "getrelated", "make", "newmodelinstance", "sole"}
    | {"updateorcreate", "findsole", "findbyuuid"}
)
_MANY: Final = frozenset(
    {"all", "createmany", "cursor", "cursorpaginate", "findmany", "get", "lazy", "lazybyid"}
    | {"paginate", "simplepaginate", "getresults", "fastpaginate"}
)
_NEITHER: Final = frozenset(
    {"attach", "average", "avg", "count", "decrement", "delete", "detach", "doesntexist", "exists"}
    | {"forcedelete", "implode", "increment", "insert", "insertgetid", "max", "min", "pluck"}
    | {"sum", "sync", "syncwithoutdetaching", "toggle", "touch", "update", "upsert", "value"}
    | {"updateexistingpivot", "save", "savemany", "tosql", "chunk", "chunkbyid", "each", "toggle"}
    | {"aggregate", "explain", "dd", "dump", "truncate", "restore", "associate", "dissociate"}
)
_SAME_RECORD: Final = frozenset(
    {"append", "fill", "forcefill", "fresh", "load", "loadcount", "loadmissing", "makehidden"}
    | {"makevisible", "refresh", "replicate", "setattribute", "setrelation", "loadmorph"}
    | {"setconnection", "withoutrelations", "associate", "dissociate", "each"}
)
_BEGIN: Final = frozenset(
    {"distinct", "doesnthave", "groupby", "has", "inrandomorder", "join", "latest", "leftjoin"}
    | {"limit", "newquery", "offset", "oldest", "on", "onlytrashed", "orderby", "orderbydesc"}
    | {"query", "select", "selectraw", "skip", "take", "when", "with", "withavg", "withcount"}
    | {"withexists", "withmax", "withmin", "withonly", "withoutglobalscope"}
    | {"withoutglobalscopes", "withouttrashed", "withsum", "withtrashed", "lockforupdate"}
)
_OF_SEVERAL_ONE: Final = frozenset(
    {"find", "findorfail", "first", "firstorfail", "firstwhere", "last", "pop", "random", "shift"}
    | {"sole"}
)
_OF_SEVERAL_SAME: Final = frozenset(
    {"each", "except", "exceptids", "filter", "fresh", "keyby", "load", "loadcount"}
    | {"loadmissing", "only", "reject", "reverse", "shuffle", "skip", "slice", "sort"}
    | {"sortby", "sortbydesc", "sortdesc", "take", "tap", "unique", "values"}
    | {"where", "wherein", "wherenotin", "wherenotnull", "wherenull", "items", "getcollection"}
)


def form_after(form: Form, name: str) -> Form | None:
    """Return the form that an Eloquent method returns for its class; None for anything else.

    Args:
        form: of the receiver.
        name: of the method.
    """
    name = name.lower()
    if form == "many":
        return "one" if name in _OF_SEVERAL_ONE else "many" if name in _OF_SEVERAL_SAME else None
    if name in _ONE or (form == "one" and name in _SAME_RECORD):
        return "one"
    if name in _MANY:
        return "many"
    if name in _NEITHER:
        return None
    # Any other method of a query returns a query: there are many condition methods.
    is_begun = form == "query" or name in _BEGIN or name.startswith(("where", "orwhere"))
    return "query" if is_begun else None
