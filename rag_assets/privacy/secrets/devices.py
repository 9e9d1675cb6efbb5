"""Credentials in the configuration of routers, switches, firewalls and wireless networks.

A row of the table describes a kind of line: the literals that anchor it, and a pattern with a group
for the credential. The matched group is a credential unless it is a placeholder or a default such
as `public`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial

from rag_assets.privacy.secrets.placeholders import is_placeholder
from rag_assets.privacy.secrets.rules import Anchor, Rule
from rag_assets.privacy.secrets.spans import SecretSpan
from rag_assets.privacy.secrets.vocabulary import WORDS

_SHORTEST, _SHORTEST_WORD = 4, 6
_DEFAULTS = frozenset(
    [
        "public",
        "private",
        "cisco",
        "word",
        "string",
        "community",
        "encrypted",
        "text",
        "line",
        "hex",
        "ascii",
        "md5",
        "key-chain",
        "none",
        "local",
        "level",
        "host",
        "view",
        "read",
        "write",
        "snmptrap",
        "mystring",
    ]
)
_QUOTED = r"[\"']?(?P<value>[^\s\"';<>{}|\[\]]{4,256})"
_TYPE = r"(?:[0-9][ \t]+)?"
_LINE_LEFT = 200
_BLOCK_LINES = 6
_SERVER = re.compile(r"(?i:radius|tacacs\+?|aaa-server|server-private)\b")
_SETTING = re.compile(
    r"(?i:[#>$][ \t]*|\b(?:set|ip|ntp|crypto|ikev[12]|security|system|no|local|remote|interface)\b[^\n]*)\Z"
)
_WHOLE = re.compile(r"[\"']?;?[ \t]*(?:#.*)?(?:[\r\n]|$)")

_LINES: Sequence[tuple[str, str]] = (
    # anchors, separated by commas; the pattern that starts at an anchor
    ("snmp-server community ,snmp community ,snmp-agent community ",
     r"(?:snmp-server|snmp|snmp-agent)[ \t]community[ \t]+(?:(?:read|write|cipher|simple)[ \t]+)?" + _QUOTED),
    ("/snmp community", r"/snmp[ \t]community[ \t][^\n]{0,60}?\bname=" + _QUOTED),
    ("snmp-server host", r"snmp-server[ \t]host[ \t]\S+[ \t](?:(?:traps|informs)[ \t])?(?:version[ \t](?:1|2c)[ \t])" + _QUOTED),
    ("snmp-server user", r"snmp-server[ \t]user[ \t][^\n]{1,80}?[ \t]auth[ \t](?:md5|sha\d*)[ \t]" + _QUOTED),
    (" priv ", r"[ \t]priv[ \t](?:des|3des|aes)[ \t]?(?:\d{3}[ \t])?" + _QUOTED),
    ("radius-server,tacacs-server", r"(?:radius|tacacs)-server[ \t](?:host[ \t][^\n]{1,100}?[ \t])?key[ \t]+" + _TYPE + _QUOTED),
    ("server-key ", r"server-key[ \t]+" + _TYPE + _QUOTED),
    ("key-string ", r"key-string[ \t]+" + _TYPE + _QUOTED),
    ("pre-shared-key", r"pre-shared-key[ \t]+(?:(?:local|remote|ascii-text|hexadecimal|address[ \t]\S+[ \t]key|plain|cipher)[ \t]+)*" + _TYPE + _QUOTED),
    ("isakmp key", r"isakmp[ \t]key[ \t]+" + _TYPE + _QUOTED + r"(?=[ \t]+(?:address|hostname))"),
    ("authentication-key ", r"authentication-key[ \t]+(?:\d+[ \t]+md5[ \t]+)?" + _TYPE + _QUOTED),
    ("message-digest-key", r"message-digest-key[ \t]+\d+[ \t]+md5[ \t]+" + _TYPE + _QUOTED),
    ("vrrp ,standby ,glbp ", r"(?:vrrp|standby|glbp)[ \t]+\d+[ \t]+authentication[ \t]+(?:text[ \t]+|md5[ \t]+key-string[ \t]+)?" + _TYPE + _QUOTED),
    ("neighbor ", r"neighbor[ \t]+[\w.:-]{2,45}[ \t]+password[ \t]+" + _TYPE + _QUOTED),
    ("ppp ", r"ppp[ \t](?:chap|pap)[ \t][^\n]{0,60}?password[ \t]+" + _TYPE + _QUOTED),
    ("wpa-psk", r"wpa-psk[ \t]+(?:ascii|hex)[ \t]+" + _TYPE + _QUOTED),
    ("wpa2-pre-shared-key,wpa-pre-shared-key", r"wpa2?-pre-shared-key=" + _QUOTED),
    (" enc ", r"[ \t]ENC[ \t]" + r"[\"']?(?P<value>[A-Za-z0-9+/=]{16,256})"),
    ("enable ", r"enable[ \t](?:password|secret)[ \t]+(?:level[ \t]\d+[ \t]+)?" + _TYPE + _QUOTED),
    ("username ", r"username[ \t]\S{1,64}[ \t](?:privilege[ \t]\d+[ \t])?(?:password|secret)[ \t]+" + _TYPE + _QUOTED),
    ("encrypted-password ", r"encrypted-password[ \t]+" + _QUOTED),
)  # fmt: skip
"""Lines of Cisco IOS, Junos, FortiOS, RouterOS, Comware and the like."""


def _lines(pattern: re.Pattern[str], text: str, anchors: Sequence[Anchor]) -> Iterator[SecretSpan]:
    for anchor in anchors:
        found = pattern.match(text, anchor.start, anchor.end + _LINE_LEFT)
        if found is not None and is_device_secret(found) and _begins_line(text, anchor.start):
            yield SecretSpan(*found.span("value"), "device-secret")


def _begins_line(text: str, at: int) -> bool:
    """Return whether the line starts with only a prompt, a sign or other words of a setting."""
    low = max(0, at - _LINE_LEFT)
    begin = max(text.rfind("\n", low, at) + 1, low)
    before = text[begin:at]
    return not before.strip(" \t>*-`\"'#") or _SETTING.search(before) is not None


def is_device_secret(found: re.Match[str]) -> bool:
    """Return whether the value of a line is a credential; a value of letters must end the line."""
    value = found["value"].rstrip(".,:")
    if is_placeholder(value) or value.lower() in _DEFAULTS or value.lower() in WORDS:
        return False
    if not value.isalpha():
        return len(value) >= _SHORTEST and any(map(str.isalnum, value))
    ends = _WHOLE.match(found.string, found.end("value")) is not None
    return len(value) >= _SHORTEST_WORD and ends and not value.isupper()


_KEY = re.compile(r"[ \t]+key[ \t]+" + _TYPE + _QUOTED)


def _server_keys(text: str, anchors: Sequence[Anchor]) -> Iterator[SecretSpan]:
    """Find the indented `key X` below the line of a RADIUS or TACACS server."""
    for anchor in anchors:
        found = _KEY.match(text, anchor.start + 1, anchor.end + _LINE_LEFT)
        if found is None or not is_device_secret(found):
            continue
        at = anchor.start
        for _ in range(_BLOCK_LINES):
            begin = text.rfind("\n", max(0, at - _LINE_LEFT), at) + 1
            if not text[begin : begin + 1].isspace():
                if _SERVER.match(text, begin, at):
                    yield SecretSpan(*found.span("value"), "device-secret")
                break
            at = begin - 1


RULES: Sequence[Rule] = (
    *(
        Rule(tuple(anchors.split(",")), partial(_lines, re.compile(f"(?i:{pattern})")))
        for anchors, pattern in _LINES
    ),
    Rule(("\n key ", "\n  key ", "\n   key ", "\n    key ", "\n\tkey "), _server_keys),
)
