"""Credentials on command lines, in files like .netrc, in devices' settings, and in programs.

Examples are `--password X`, `-u user:X`, `mysql -pX`, `snmp-server community X` of routers,
switches, firewalls and wireless networks, and `login("jane", "X")`. A row of a table describes a
kind of line: the literals that anchor it, and a pattern with a group for the credential.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial

from rag_assets.privacy.secrets.names import find_value_kind
from rag_assets.privacy.secrets.placeholders import WORDS, is_placeholder
from rag_assets.privacy.secrets.rules import Anchor, Rule, build_rule
from rag_assets.privacy.secrets.spans import SecretSpan
from rag_assets.privacy.secrets.values import (
    ValueKind,
    is_bare_password,
    is_cell_secret,
    is_secret_value,
)

_RULE = "command-line-secret"
_WORD = r"(?:\"(?P<double>[^\"\r\n]{3,256})\"|'(?P<single>[^'\r\n]{3,256})'|(?P<bare>[^\s\"'`;|&<>,)]{3,256}))"
_FLAG = re.compile(r"--?(?P<name>[A-Za-z][\w-]{1,48})(?:=|[ \t]{1,4}|:)" + _WORD)
_USER = re.compile(
    r"(?:-u|-U|--user|--userpwd|--proxy-user|--auth|--basic|-a|--credentials|--creds|--login)(?:=|[ \t]{0,3})"
    r"(?P<quote>[\"']?)(?:(?P<user>[\w.@+\\-]{0,64}):|[\w.@+\\-]{1,64}%)(?P<bare>(?:(?!&\w{1,6};)[^\s\"'`<>|]){3,256})(?P=quote)"
)
_USER_QUOTED = re.compile(
    r"(?:-u|-U|--user|--userpwd|--proxy-user|--auth|-a)(?:=|[ \t]{0,3})"
    r"(?:[\w.@+\\-]{0,64}[:%](?:\"(?P<within>[^\"\r\n]{3,256})\"|'(?P<inside>[^'\r\n]{3,256})')"
    r"|\"[^\"\s:]{0,64}:(?P<double>[^\"\r\n]{3,256})\"|'[^'\s:]{0,64}:(?P<single>[^'\r\n]{3,256})')"
)
_CLIENTS = re.compile(
    r"\b(?:curl|wget|http|https|httpie|xh|hurl|ab|siege|smbclient|rpcclient|crackmapexec|svn|lftp)\b"
)
_ATTACHED = re.compile(r"-p" + _WORD)
_DATABASES = re.compile(
    r"\b(?:mysql|mysqldump|mysqladmin|mysqlimport|mysqlsh|mariadb|mariadb-dump|mydumper|xtrabackup"
    r"|innobackupex|mysqlcheck|mongo|mongosh|mongodump|mongorestore|mongoimport|mongoexport)\b"
)
_PASSED = re.compile(
    r"\b(?:sshpass|(?:docker|podman|az|oc|nerdctl|buildah|skopeo|crane|helm registry)[ \t]+login|plink|pscp|putty|redis-cli|ldapsearch|ldapadd|ldapmodify"
    r"|ldapwhoami|kinit|sqlcmd|psexec|cqlsh|sqlplus|snmpwalk|ipmitool|influx|rabbitmqadmin|nats)\b"
)
_SPACED = re.compile(r"-(?:p|P|a|w|A|pw|passin|passout)[ \t]{1,4}(?:pass:)?" + _WORD)
_PASS = re.compile(r"(?:pass|password):" + _WORD)
_NETRC = re.compile(r"password[ \t\r\n]+" + _WORD)
_LOGIN = re.compile(
    r"(?:^|[ \t\n])(?:machine[ \t\n]+\S+|default)[ \t\n]+login[ \t\n]+\S+[ \t\n]+(?:account[ \t\n]+\S+[ \t\n]+)?\Z"
)
_PGPASS = re.compile(
    r":(?:\d{2,5}|\*):[\w.*-]{1,64}:[\w.*@-]{1,64}:(?P<bare>[^\s:\"'`<>|*()]{4,128})(?=[\s\"'`<>|*).]|$)"
)
_HOST = re.compile(r"(?<![\w:/.-])[\w.*-]{1,255}\Z")
_BATCH = re.compile(r"htpasswd[ \t]+-\w*b\w*[ \t]+\S+[ \t]+\S+[ \t]+" + _WORD)
_SECURE_STRING = re.compile(r"(?i:convertto-securestring)[ \t]+(?:-String[ \t]+)?" + _WORD)
_CREDENTIAL = re.compile(r"(?i:networkcredential)\([ \t]*[^,()\n]{1,80},[ \t]*" + _WORD)
_CISCO = re.compile(
    r"(?i:(?:enable|username[ \t]\S+(?:[ \t]privilege[ \t]\d+)?)[ \t](?:password|secret)[ \t](?:\d[ \t])?)(?P<bare>\S{4,128})"
)
_CHPASSWD = re.compile(
    r"echo[ \t]+[\"']?[\w.-]+:(?P<bare>[^\s\"'|]{4,128})[\"']?[ \t]*\|[ \t]*(?:sudo[ \t]+)?chpasswd"
)
_STDIN = re.compile(
    r"echo[ \t]+(?:-n[ \t]+)?"
    + _WORD
    + r"[ \t]*\|[^\n|]{0,80}--(?:password|passphrase|token)-?(?:stdin|fd)"
)
# A value that is followed by further words is part of a sentence, not of a command.
_ENDS = re.compile(
    r"[\"'`)]{0,2}[ \t]*(?:$|[\r\n\\|&;>`]|--?\w|\S*[./@:=]\S|\S+[ \t]*(?:$|[\r\n]))"
)
_PORTS = re.compile(r"[\d.:-]*:?\d+(?:-\d+)?(?:/(?:tcp|udp))?")
_BEFORE_FLAG = " \t\r\n\"'`([{=,|*_<>"
_MAX_COMMAND_CHARACTERS = 400
_PREFIXES_WITHOUT_VALUE = ("ask-", "no-", "disable", "require-", "prompt-", "show-", "generate-")
_GROUPS = ("within", "inside", "double", "single", "bare")


def _find_flags(text: str, anchors: Sequence[Anchor]) -> Iterator[SecretSpan]:
    """Find the values of flags that are named like a credential: `--password X`."""
    done = 0
    for anchor in anchors:
        if anchor.start < done or (anchor.start and text[anchor.start - 1] not in _BEFORE_FLAG):
            continue
        match = _FLAG.match(text, anchor.start)
        if match is None or match["name"].lower().startswith(_PREFIXES_WITHOUT_VALUE):
            continue
        kind = find_value_kind(match["name"])
        if kind is None:
            continue
        done = match.end()
        if kind not in {ValueKind.PASSWORD, ValueKind.KEY}:
            continue
        span = _accept(match, is_password=kind is ValueKind.PASSWORD)
        if span is not None:
            yield span


def _find_users(text: str, anchors: Sequence[Anchor]) -> Iterator[SecretSpan]:
    """Find X in `-u user:X` of HTTP clients."""
    for anchor in anchors:
        if anchor.start and not (
            text[anchor.start - 1].isspace() or text[anchor.start - 1] in "\"'`("
        ):
            continue
        match = _USER_QUOTED.match(text, anchor.start) or _USER.match(text, anchor.start)
        if match is None:
            continue
        start, end = _get_span(match)
        value = text[start:end]
        line = text[text.rfind("\n", 0, anchor.start) + 1 : anchor.start]
        known = _CLIENTS.search(line) is not None or _CLIENTS.search(
            text[max(0, anchor.start - 300) : anchor.start]
        )
        if is_placeholder(value) or value.isdigit() or "://" in value or value.startswith("//"):
            continue
        if known or is_bare_password(value):
            yield SecretSpan(start, end, _RULE)


def _find_attached(text: str, anchors: Sequence[Anchor]) -> Iterator[SecretSpan]:
    """Find X in `-pX` and `-p X` of programs that take a password this way."""
    for anchor in anchors:
        if not anchor.start or not text[anchor.start - 1].isspace():
            continue
        line = text[max(text.rfind("\n", 0, anchor.start) + 1, anchor.start - 400) : anchor.start]
        if _DATABASES.search(line):
            match = _ATTACHED.match(text, anchor.start) or _SPACED.match(text, anchor.start)
        else:
            match = _SPACED.match(text, anchor.start) if _PASSED.search(line) else None
        if match is None:
            continue
        span = _accept(match, is_known=True)
        if span is not None and not text[span.start : span.end].isdigit():
            yield span


def _accept_in_netrc(match: re.Match[str]) -> SecretSpan | None:
    is_login = _LOGIN.search(match.string[max(0, match.start() - 160) : match.start()])
    return _accept(match) if is_login else None


def _accept_in_pgpass(match: re.Match[str]) -> SecretSpan | None:
    """Return X in `host:port:database:user:X`, as in .pgpass."""
    value = match["bare"]
    if not _HOST.search(match.string, max(0, match.start() - 256), match.start()):
        return None
    if is_placeholder(value) or value.isdigit():
        return None
    return SecretSpan(*match.span("bare"), "pgpass-password")


def _accept_in_command(match: re.Match[str]) -> SecretSpan | None:
    """Return the credential in a command; None if its value is a placeholder."""
    span = _accept(match, is_known=True)
    is_written = span is not None and may_be_real_value(match.string[span.start : span.end])
    return span if is_written else None


def _accept(
    match: re.Match[str],
    *,
    is_password: bool = True,
    is_strict: bool = True,
    is_known: bool = False,
) -> SecretSpan | None:
    """Return the span of the value in a match; None if the value is not a credential.

    Args:
        is_strict: whether only a credential is possible at this position.
        is_known: whether the program takes a credential there, so that the text is not a sentence.
    """
    start, end = _get_span(match)
    value = match.string[start:end]
    while end > start and value[-1] in ".)]}*_~\\" and not value[:-1].endswith(value[-1]):
        value, end = value[:-1], end - 1
    if (
        is_placeholder(value)
        or "://" in value
        or _PORTS.fullmatch(value)
        or value.startswith(("-", "/", "./", "~/", "@", "file:", "("))
    ):
        return None
    if not is_password:
        good = len(value) > 5 and any(map(str.isdigit, value))  # noqa: PLR2004
    elif is_strict:
        good = is_known or not value.isalpha() or _ENDS.match(match.string, end) is not None
    else:
        good = is_secret_value(ValueKind.PASSWORD, value, is_quoted=False)
    return SecretSpan(start, end, _RULE) if good else None


def _get_span(match: re.Match[str]) -> tuple[int, int]:
    group = next(g for g in _GROUPS if g in match.re.groupindex and match[g] is not None)
    return match.span(group)


_FLAG_PROGRAMS: Sequence[tuple[str, str, str]] = (
    # the anchor; programs that take a credential after it; the text between program and credential
    (" -k ", r"openssl(?:\.exe)?[ \t]+(?:enc|aes|des|camellia|aria|bf|rc)", r"-k[ \t]{1,4}"),
    (" -p", r"7z[aarz]?(?:\.exe)?|rar|unrar|7zz", r"-p"),
    (" -P ", r"unzip|zip|7z|zipcloak|ipmitool|sqlcmd|bcp", r"-P[ \t]{1,4}"),
    (" -c ", r"snmp\w{3,9}|onesixtyone", r"-c[ \t]{1,4}"),
    (" -A ", r"snmp\w{3,9}", r"-A[ \t]{1,4}"),
    (" -X ", r"snmp\w{3,9}", r"-X[ \t]{1,4}"),
    (" /rp ", r"schtasks(?:\.exe)?", r"/rp[ \t]{1,4}"),
    (" /p ", r"schtasks(?:\.exe)?|wmic|psexec", r"/p[ \t]{1,4}"),
    (" /p:", r"\w{0,4}freerdp\w?|mstsc|rdesktop", r"/p:"),
)
_LINE_PATTERNS: Sequence[tuple[str, str]] = (
    # anchors, separated by commas; the pattern from an anchor to the value
    ("net use", r"net[ \t]+use[ \t]+[^\r\n]{1,120}?/user:\S{1,64}[ \t]+" + _WORD),
    (
        "net use",
        r"net[ \t]+use[ \t]+(?:[A-Za-z*]:?[ \t]+)?\\\\[^\s]{1,120}[ \t]+(?!/)"
        + _WORD
        + r"(?=[ \t]+/)",
    ),
    (
        "net user ",
        r"net[ \t]+user[ \t]+[\w.$-]{1,64}[ \t]+(?![/*])" + _WORD + r"(?=[ \t]*(?:/|[\r\n]|$))",
    ),
    (
        "echo ",
        r"echo[ \t]+(?:-n[ \t]+)?"
        + _WORD
        + r"[ \t]*\|[ \t]*(?:sudo[ \t]+-S\b|su\b|kinit\b|cryptsetup\b|passwd\b|openssl\b|gpg\b|smbpasswd\b)",
    ),
    (
        "wpa_passphrase ",
        r"wpa_passphrase[ \t]+(?:\"[^\"\r\n]{1,64}\"|'[^'\r\n]{1,64}'|\S{1,64})[ \t]+" + _WORD,
    ),
    ("rabbitmqctl ", r"rabbitmqctl[ \t]+(?:add_user|change_password)[ \t]+\S{1,64}[ \t]+" + _WORD),
    ("operator unseal", r"operator[ \t]+unseal[ \t]+" + _WORD),
    (
        "lftp ",
        r"lftp[ \t]+(?:-e[ \t]+\S{1,64}[ \t]+)?-u[ \t]+[\w.@-]{1,64},(?P<bare>[^\s\"']{4,128})",
    ),
    ("send ", r"send(?:[ \t]+--)?[ \t]+\"(?P<double>[^\"\s\\]{4,128})\\r\""),
    (
        "restic ,borg ,rclone ",
        r"(?:restic|borg|rclone)[ \t][^\r\n]{0,160}?--password-command[ =][\"']?echo[ \t]+" + _WORD,
    ),
    (
        "smbclient",
        r"smbclient[ \t][^\r\n]{0,160}?-U[ \t]*[\"']?[\w.\\/-]{1,64}%(?P<bare>[^\s\"']{4,128})",
    ),
    ("configure set", r"configure[ \t]+set[ \t]+aws_secret_access_key[ \t]+" + _WORD),
    ("config set //", r"config[ \t]+set[ \t]+//\S{1,120}:_authToken[ \t]+" + _WORD),
    ("auth.", r"auth\.\w{0,24}[Pp]assword=" + _WORD),
)


def _find_secrets_in_flags(
    programs: re.Pattern[str], value: re.Pattern[str], text: str, anchors: Sequence[Anchor]
) -> Iterator[SecretSpan]:
    """Find the values of a flag that means a credential only on command lines of some programs."""
    for anchor in anchors:
        at = anchor.start + 1
        low = max(0, at - _MAX_COMMAND_CHARACTERS)
        begin = max(text.rfind("\n", low, at) + 1, low)
        match = value.match(text, at) if programs.search(text, begin, at) else None
        span = _accept(match) if match is not None else None
        if span is not None and may_be_real_value(text[span.start : span.end]):
            yield span


def may_be_real_value(value: str) -> bool:
    """Return whether a command's value may be real, unlike `mypassword` or `COMMUNITY`."""
    if value.isdigit() or value.isupper():
        return False
    lowered = value.lower()
    return not (
        value.isalpha() and any(word in lowered for word in ("pass", "secret", "word", "key"))
    )


_SHORTEST, _SHORTEST_WORD = 4, 6
_DEFAULTS = frozenset(
    """public private cisco word string community encrypted text line hex ascii md5 key-chain none
    local level host view read write snmptrap mystring""".split()  # noqa: SIM905
)
_QUOTED = r"[\"']?(?P<value>[^\s\"';<>{}|\[\]]{4,256})"
_TYPE = r"(?:[0-9][ \t]+)?"
_MAX_LINE_CHARACTERS = 200
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


def _find_device_lines(
    pattern: re.Pattern[str], text: str, anchors: Sequence[Anchor]
) -> Iterator[SecretSpan]:
    for anchor in anchors:
        match = pattern.match(text, anchor.start, anchor.end + _MAX_LINE_CHARACTERS)
        if match is not None and is_device_secret(match) and _is_line_start(text, anchor.start):
            yield SecretSpan(*match.span("value"), "device-secret")


def _is_line_start(text: str, at: int) -> bool:
    """Return whether only a prompt, a sign or words of a setting precede an offset on its line."""
    low = max(0, at - _MAX_LINE_CHARACTERS)
    begin = max(text.rfind("\n", low, at) + 1, low)
    before = text[begin:at]
    return not before.strip(" \t>*-`\"'#") or _SETTING.search(before) is not None


def is_device_secret(match: re.Match[str]) -> bool:
    """Return whether a device's value is a credential; a word of letters must end its line."""
    value = match["value"].rstrip(".,:")
    if is_placeholder(value) or value.lower() in _DEFAULTS or value.lower() in WORDS:
        return False
    if not value.isalpha():
        return len(value) >= _SHORTEST and any(map(str.isalnum, value))
    ends = _WHOLE.match(match.string, match.end("value")) is not None
    return len(value) >= _SHORTEST_WORD and ends and not value.isupper()


_KEY = re.compile(r"[ \t]+key[ \t]+" + _TYPE + _QUOTED)


def _find_server_keys(text: str, anchors: Sequence[Anchor]) -> Iterator[SecretSpan]:
    """Find `key X` on an indented line below the line that defines a RADIUS or TACACS server."""
    for anchor in anchors:
        match = _KEY.match(text, anchor.start + 1, anchor.end + _MAX_LINE_CHARACTERS)
        if match is None or not is_device_secret(match):
            continue
        at = anchor.start
        for _ in range(_BLOCK_LINES):
            begin = text.rfind("\n", max(0, at - _MAX_LINE_CHARACTERS), at) + 1
            if not text[begin : begin + 1].isspace():
                if _SERVER.match(text, begin, at):
                    yield SecretSpan(*match.span("value"), "device-secret")
                break
            at = begin - 1


RULES: Sequence[Rule] = (
    *(
        Rule((anchor.lower(),), partial(_find_secrets_in_flags, re.compile(rf"(?<![\w-])(?:{programs})"), re.compile(flag + _WORD)))
        for anchor, programs, flag in _FLAG_PROGRAMS
    ),
    *(
        build_rule(re.compile(pattern), _accept_in_command, *anchors.split(","))
        for anchors, pattern in _LINE_PATTERNS
    ),
    Rule(("--", "-pass", "-store", "-key", "-token"), _find_flags),
    Rule(("-u ", "-u\"", "-u'", "--user", "--proxy-user", "-a ", "--auth", "--cred", "--login", "--basic", "-u"), _find_users),
    Rule((" -p", "\t-p"), lambda text, places: _find_attached(text, [Anchor(a.start + 1, a.end) for a in places])),
    Rule((" -a ", " -w "), lambda text, places: _find_attached(text, [Anchor(a.start + 1, a.end) for a in places])),
    build_rule(_NETRC, _accept_in_netrc, "password"),
    build_rule(_PGPASS, _accept_in_pgpass, ":5432:", ":*:", ":5433:", ":6432:"),
    build_rule(_PASS, _accept, "pass:", "password:"),
    build_rule(_BATCH, _accept, "htpasswd"),
    build_rule(_SECURE_STRING, _accept, "convertto-securestring"),
    build_rule(_CREDENTIAL, _accept, "networkcredential("),
    build_rule(_CISCO, partial(_accept, is_strict=False), "enable ", "username "),
    build_rule(_CHPASSWD, _accept, "echo "),
    build_rule(_STDIN, _accept, "echo "),
    *(
        Rule(tuple(anchors.split(",")), partial(_find_device_lines, re.compile(f"(?i:{pattern})")))
        for anchors, pattern in _LINES
    ),
    Rule(("\n key ", "\n  key ", "\n   key ", "\n    key ", "\n\tkey "), _find_server_keys),
)  # fmt: skip


_REACH = 400
_ARGUMENT = re.compile(
    r"\s{0,40}(?:[A-Za-z_]\w*\s?=\s?)?(?:[bruBRU]?(?P<quote>[\"'])(?P<text>(?:(?!(?P=quote))[^\r\n\\]|\\.){0,256})(?P=quote)"
    r"|[^,()\"'\r\n]{0,120}(?:\([^()\r\n]{0,120}\))?)\s{0,40}(?P<end>[,)])"
)
_ADDRESS_OR_ALGORITHM = re.compile(
    r"[^@\s]+@[^@\s]+\.\w+|\w+://.*|sha\d+|hs\d+|utf-?8", re.IGNORECASE
)


def _find_argument(argument: int, text: str, anchors: Sequence[Anchor]) -> Iterator[SecretSpan]:
    for anchor in anchors:
        at = anchor.end
        for number in range(argument + 1):
            match = _ARGUMENT.match(text, at, anchor.end + _REACH)
            if match is None:
                break
            at = match.end()
            if number == argument and match["text"]:
                value = match["text"]
                good = is_secret_value(ValueKind.PASSWORD, value, is_quoted=True)
                if good and not _ADDRESS_OR_ALGORITHM.fullmatch(value):
                    yield SecretSpan(*match.span("text"), "argument-secret")
            if match["end"] == ")":
                break


def _build_argument_rule(argument: int, *anchors: str) -> Rule:
    return Rule(anchors, partial(_find_argument, argument))


_INSERT = re.compile(
    r"insert[ \t]+(?:ignore[ \t]+)?into[ \t]+[\w.\"`\[\]]{1,128}\s{0,20}\((?P<columns>[^()]{1,2000})\)\s{0,20}"
    r"values\s{0,20}",
    re.IGNORECASE,
)
_TUPLE = re.compile(
    r"\s{0,20},?\s{0,20}\((?P<values>(?:'(?:[^'\n]|'')*'|[^()'\n]|\([^()'\n]*\)){1,4000})\)"
)
_VALUE = re.compile(r"\s*(?:'(?P<text>(?:[^'\n]|'')*)'|[^,']*)\s*(?:,|$)")
_IDENTIFIED = re.compile(
    r"identified[ \t]+(?:with[ \t]+\S+[ \t]+)?(?:by|as)[ \t]+(?:password[ \t]+)?"
    r"(?P<quote>[\"'`])(?P<text>[^\"'`\r\n]{3,256})(?P=quote)",
    re.IGNORECASE,
)
_MAX_ROWS = 10_000


def _find_in_insert_statements(text: str, anchors: Sequence[Anchor]) -> Iterator[SecretSpan]:
    done = 0
    for anchor in anchors:
        if anchor.start < done or (head := _INSERT.match(text, anchor.start)) is None:
            continue
        names = [find_value_kind(name.strip(' \t\r\n`"[]')) for name in head["columns"].split(",")]
        done = head.end()
        for _ in range(_MAX_ROWS if any(names) else 0):
            row = _TUPLE.match(text, done)
            if row is None:
                break
            done = row.end()
            for kind, value in zip(names, _find_values(text, *row.span("values")), strict=False):
                if kind is not None and value is not None:
                    start, end = value
                    if is_cell_secret(kind, text[start:end]):
                        yield SecretSpan(start, end, "assigned-secret")


def _find_values(text: str, start: int, end: int) -> Iterator[tuple[int, int] | None]:
    """Yield the span of each value in a row of values; None for a value that is not a string."""
    while start < end and (value := _VALUE.match(text, start, end)) and value.end() > start:
        yield value.span("text") if value["text"] is not None else None
        start = value.end()


def _accept_identified(match: re.Match[str]) -> SecretSpan | None:
    """Return X in `IDENTIFIED BY 'X'`."""
    if not is_secret_value(ValueKind.PASSWORD, match["text"], is_quoted=True):
        return None
    return SecretSpan(*match.span("text"), "assigned-secret")


STATEMENT_RULES: Sequence[Rule] = (
    _build_argument_rule(0, "hmac.new(", "fernet("),
    _build_argument_rule(1, "basicauth(", ".auth(", "auth=(", ".login(", "createhmac(", "jwt.encode(", "jwt.sign(",
            "jwt.verify(", "jwt.decode(", "networkcredential(", "usernamepassword("),
    _build_argument_rule(2, "getconnection(", "mysqli(", "new pdo(", "mysqldb.connect(", "sequelize("),
    Rule(("insert",), _find_in_insert_statements),
    build_rule(_IDENTIFIED, _accept_identified, "identified"),
)  # fmt: skip
