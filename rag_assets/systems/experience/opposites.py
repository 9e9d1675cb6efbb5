"""Word lists for comparing solutions: opposites, negations, numbers, units and synonyms."""

from __future__ import annotations

from collections.abc import Mapping


def _split_words(words: str) -> frozenset[str]:
    return frozenset(words.split())


_PAIRS = """
enable activate / disable deactivate
add include append keep insert / remove drop delete exclude omit skip strip leave ignore
allow permit accept grant whitelist / deny forbid reject refuse block ban revoke blacklist
increase raise higher more widen grow extend / decrease reduce lower less fewer shrink shorten
before prior / after afterwards
show expose reveal visible / hide conceal hidden invisible
always / never
on / off
in / out
up / down
first / last
begin start open / end stop close finish
push send upload export write publish emit / pull receive download import read consume fetch
lock / unlock
attach mount bind connect / detach unmount unbind disconnect
register subscribe / deregister unregister unsubscribe
encrypt / decrypt
encode escape serialize / decode unescape deserialize
compress pack zip / decompress unpack unzip extract
merge join combine inline / split separate divide
server backend / client frontend browser
source producer sender / target consumer receiver destination
sync synchronous synchronously blocking / async asynchronous asynchronously
eager eagerly early upfront sooner / lazy lazily late later deferred
parallel concurrently concurrent / serial serially sequential sequentially
public external / private internal
global shared common / local own separate individual
static fixed constant / dynamic variable floating
strict strictly / lenient loose loosely relaxed tolerant
manual manually / automatic automatically
ascending oldest / descending newest latest
min minimum least / max maximum most
small smaller short shorter narrow tighter / large larger big bigger long longer wide
early earlier / late later
newer / older
strict stricter / loose looser
all every each everyone any whole entire / some certain selected few part partly
until till / while when once
fast faster quick / slow slower
old former previous / new next current
left / right
top / bottom
above over / below under beneath
inside within / outside beyond
head front / tail rear
horizontal horizontally / vertical vertically
row / column
parent / child children
primary master leader / replica secondary standby follower slave
hot warm / cold
online / offline
production live / staging development test
success succeed pass / failure fail
true yes / false no
null empty absent / present
same identical / different other another
once / repeatedly twice
all every each everything everyone any / none nothing nobody
soft / hard
relative / absolute
positive plus / negative minus
odd / even
inclusive / exclusive
mutable / frozen immutable
upgrade / downgrade
promote / demote
commit / rollback abort
forward / backward back reverse
persist persistent durable / ephemeral temporary transient
trust / distrust
loud verbose / quiet silent
request / response answer
input / output
upstream / downstream
unit / integration
thread / process
day / night
sign verify / strip
install / uninstall
together / apart
broad / specific
cache / bypass
optional / required mandatory
throw / catch swallow
with / without
if when / unless
"""
OPPOSITES: tuple[tuple[frozenset[str], frozenset[str]], ...] = tuple(
    (_split_words(one), _split_words(other))
    for one, _, other in (pair.partition(" / ") for pair in _PAIRS.strip().split("\n"))
)
"""Pairs of groups of words with opposite meanings."""

NEGATING_PREFIXES = ("un", "in", "im", "ir", "il", "dis", "de", "non", "a", "mis", "anti")

SCOPES: Mapping[str, frozenset[str]] = {
    "not": _split_words(
        "not no never none nothing nobody cannot neither nor avoid stop"
        " nicht kein keine keinen nie niemals pas jamais aucun nunca ningún niet geen nooit"
    ),
    "without": _split_words("without lacking ohne sans sin zonder"),
    "except": _split_words("except excepting excluding but unless apart"),
    "only": _split_words("only alone solely exclusively merely just"),
    "instead": _split_words("instead rather"),
    "off": _split_words("off"),
}
"""Words that negate or restrict the words after them, by kind."""

HINGES: Mapping[str, frozenset[str]] = {
    "before": _split_words("before until till"),
    "after": _split_words("after once"),
    "instead": _split_words("instead rather than over"),
    "then": _split_words("then"),
    "from": _split_words("from"),
    "to": _split_words("to into"),
    "if": _split_words("if when while unless"),
}
"""Words, by kind, around which the text before and the text after must not be swapped."""

NUMBERS: Mapping[str, str] = {
    word: str(number)
    for number, word in enumerate(
        ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    )
    if word != "one"  # often a pronoun
} | {"twice": "2", "double": "2", "thrice": "3", "triple": "3", "half": "0.5", "halve": "0.5"}

UNITS: Mapping[str, str] = {
    word: unit
    for unit, words in {
        "ms": "ms millisecond milliseconds",
        "s": "s sec second seconds",
        "min": "min mins minute minutes minutely",
        "h": "h hour hours hourly",
        "d": "d day days daily nightly",
        "w": "week weeks weekly",
        "mon": "month months monthly",
        "q": "quarter quarters quarterly",
        "y": "year years yearly annually annual",
        "B": "byte bytes",
        "K": "kb kib kilobyte kilobytes",
        "M": "mb mib megabyte megabytes",
        "G": "gb gib gigabyte gigabytes",
        "%": "percent percentage",
        "px": "px pixel pixels",
    }.items()
    for word in words.split()
}
"""Units of time and size, by the words for them."""

FUNCTION_WORDS = _split_words(
    "a an the this that these those its it their his her our your my i we you they he she them us"
    " is are was were be been being has have had do does did will would can could should must may"
    " might of by with for to at as and or so too also which who whom whose what how each every per"
    " till until into onto upon than there here from about over on in only both same such own all"
    " any some more other another then when once if while where during before after let get make"
    " gets made makes one"
)
"""Words whose replacement does not change the meaning; opposites are compared before these."""

_GROUPS = """
create make build produce generate add put introduce provide offer establish set include use
add put use write have give insert place provide
fetch load get retrieve obtain request take query
delete remove drop erase purge discard strip clear
show display present render print
check verify validate test examine inspect compare look ensure assert confirm
store save keep hold persist record remember preserve retain leave
send emit post deliver transmit
start begin launch run execute invoke call
stop end halt finish terminate close
register attach add bind
return answer respond response reply give
pass hand give supply provide
defer delay postpone
compute calculate derive determine
refuse reject deny decline
use employ apply utilise utilize using via
alter change modify edit adapt adjust
fix repair correct mend solve resolve
configure set setup
wait await
increase raise bump extend grow
reduce lower decrease shrink cut
limit cap restrict bound
retry repeat
wrap enclose surround put
pin fix freeze lock
move shift relocate transfer
replace swap substitute exchange
split divide break partition
merge combine join
log record write
list enumerate report
picture image photo screenshot
mail email message
folder directory
former previous prior past last
error failure exception fault
setting configuration config option
job task run
customer client user person people human
server host machine node
screen page view
release rollout deployment deploy
repository repo
dependency package library
documentation docs doc
address url link
parameter argument
signal heartbeat
shared common
immediately instantly
automatically automatic automated
big large huge
small little tiny
several multiple many
wrong bad invalid incorrect faulty
correct right valid proper
"""
SYNONYMS: tuple[frozenset[str], ...] = tuple(map(_split_words, _GROUPS.strip().split("\n")))
"""Groups of synonyms, for comparing solutions to one problem."""
