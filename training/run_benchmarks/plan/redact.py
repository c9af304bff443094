"""Which text is a secret by what it is assigned to: `..._TOKEN=...`, `Authorization: ...`, the user of a URL.

What is known of a run's own secrets, and hides their values wherever they stand, is in `secrets`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

from run_benchmarks.plan.token_forms import SIGNS_OF_TOKENS, TOKENS
from run_benchmarks.plan.url_users import (
    USER_OF_URL,
    USER_OF_WHOLE_URL,
    user_of_url,
    users_in,
    users_in_argument,
)
from utils.secret_names import NAME, NAME_IN_TEXT

HIDDEN = "***"
# No pattern here reads a part of a text more than a bounded number of times: a host's output is searched with them.
# Whatever a pattern here finds has one of these in it: most lines of a log have none, and need not be searched.
_SIGNS = (
    "@",
    "auth",
    "bearer",
    "cookie",
    "cred",
    "jwt",
    "key",
    "login",
    "pass",
    "pat",
    "psk",
    "secret",
    "psw",
    "pw",
    "_sk",
    "-sk",
    ".sk",
    "webhook",
    "sig=",
    "signature=",
    "token",
    "-u",
)

_SECRET_OPTION = re.compile(rf"--?{NAME}")
_BEARER = r"(?i:(?<![^\W_])authorization['\"]?\s*[=:]\s*['\"]?(?:[a-z]+ +)?|\bbearer +(?=\S{8}))"
# As options, shell variables and Python's dicts write it: NAME=value, 'NAME': 'value'.
_CLOSED = "['\"]?"
# It begins where the name does, so that a long line of such characters is looked at once. An engine's
# `--secret=id=NAME` names one, and holds none; nor does `hf_token:/run/hf_token`, a mount, or `token-server:10.0.0.1`.
_ASSIGNED = r"(?<![\w.-]){}\s*(?:=|(?<=['\"]):|:(?=[\s'\"]))\s*(?!\s|id=)"
# A value is in quotes (as a shell joins them, or open to the end), or ends before what closes a list or a sentence.
_QUOTED = r"(?:'[^']*'|\"(?:[^\"\\]|\\.)*\")+"
_VALUE = rf"{_QUOTED}|['\"].*|[^\s'\"](?:\S*[^\s,;)}}\]'\"])?"


def _assignments(name: str) -> re.Pattern[str]:
    """'NAME=a value in the quotes that the name is in', then the same without, then HTTP's header."""
    return re.compile(
        rf"(?P<quote>['\"])(?P<quoted>{_ASSIGNED.format(name)})(?P<inner>(?:(?!(?P=quote)).)*)"
        rf"(?P=quote)(?:{_QUOTED})?"
        rf"|(?P<plain>{_ASSIGNED.format(name + _CLOSED)})(?P<value>{_VALUE})"
        rf"|(?P<header>{_BEARER})(?P<credential>[^\s'\",}}]+)",
        re.DOTALL,
    )


_IN_TEXT = _assignments(NAME_IN_TEXT)
_WHOLE, _OF_COOKIE = re.compile(r"(?s)\A['\"]?(.+?)['\"]?\Z"), re.compile(r"=([^;\s]+)")
_GAP, _OF_KEY = r"(?:\s|\\[rn])", r"(?:[\w+/=]|-(?!-)){16,}"
_END_OF_KEY = rf"(?:{_GAP}*[\w+/=]{{1,64}}(?={_GAP}*-----))?"
# A private key, also on one line as JSON and shells write it: headers, then what is encoded.
_KEY = re.compile(
    r"(-----BEGIN [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----)"
    rf"((?:{_GAP}*(?:[\w-]{{1,20}}: [^\\\n]{{1,100}}(?={_GAP})|{_OF_KEY}))+{_END_OF_KEY})"
)
# What other programs print: what stands before a secret, the secret, and which parts of that are one by themselves.
_PRINTED = {
    re.compile(f"({before})({value})"): part
    for before, value, part in (
        # --password VALUE, and a Dockerfile's ENV NAME VALUE; an engine's --secret NAME holds none
        (
            r"(?<![\w.-])--?(?!-|secret[ \t]|[\w.-]*[_-](?:stdin|file|path|dir|fd|env)(?![\w.-]))"
            rf"{NAME_IN_TEXT}[ \t]+(?!id=|-)"
            rf"|\bENV[ \t]+{NAME_IN_TEXT}[ \t]+(?!=)",
            _VALUE,
            _WHOLE,
        ),
        # .netrc, on one line or several
        (
            r"\blogin[ \t]+\S{1,256}[ \t]+password[ \t]+|(?m:^)[ \t]*password[ \t]+(?=\S+[ \t]*(?m:$))",
            r"\S+",
            _WHOLE,
        ),
        # sshpass -p VALUE, docker login -p VALUE
        (
            r"\bsshpass(?:[ \t]+-[vedfP]\S{0,256}){0,9}?[ \t]+-p[ \t]*(?=\S)"
            r"|\b(?:docker|podman|nerdctl|buildah|skopeo|oras|registry|az|acr)[ \t]+login\b"
            r"[^\n]{0,300}?[ \t]-p(?:[ \t]+|=)",
            _VALUE,
            _WHOLE,
        ),
        # wandb login VALUE
        (
            r"\bwandb[ \t]+login[ \t]+(?:-[\w-]{1,40}(?:=\S{0,256})?[ \t]+)*",
            r"(?!-)(?=[\w-]{0,100}\d)[\w-]{8,}",
            _WHOLE,
        ),
        # <password>VALUE</password>; vector<Token> is none
        (
            rf"<(?:\w{{1,40}}:)?{NAME_IN_TEXT}(?:\s[^<>]{{0,200}})?>(?:<!\[CDATA\[)?",
            r"[^<>\]]+(?=(?:\]\]>)?</)",
            _WHOLE,
        ),
        # curl's user; an engine's `--user 1000:app` has no password
        (
            r"\bcurl\b[^\n]{0,300}?\s(?:-[uU]|--user|--proxy-user)(?:[ \t]+|=)?['\"]?\w[^\s:'\"/=]{0,256}:",
            r"[^\s'\"]+",
            _WHOLE,
        ),
        (r"(?i:\b(?:set-)?cookie['\"]?:[ \t]*['\"]?)", r"[^\s=;,'\"]+=[^'\"\r\n]+", _OF_COOKIE),
        # passwd:VALUE, but neither a mount nor a path's /etc/passwd:ro
        (
            r"(?i:(?<![\w./-])[\w-]{0,40}(?:password|passwd|passphrase):)",
            r"[^\s/'\"][^\s'\"]*",
            _WHOLE,
        ),
        (r"\bAccountKey=", r"[^\s;'\"]+", _WHOLE),  # a part of a connection string
        # ODBC's, too; a shell's PWD=/path is none
        (
            r"(?i:;[ \t]*pwd=|(?<![\w.-])pwd=(?=[^\s;'\"]{1,256};))(?![/$])",
            r"\{[^{}]{1,512}\}|[^\s;'\"]+",
            re.compile(r"(?s)\A\{?(.+?)\}?\Z"),
        ),
        # options of a mount by CIFS
        (
            r"(?<!\w)(?:user(?:name)?=|o=|-o[ \t]*)(?:[^\s,'\"]{0,256},){0,20}?pass=",
            r"[^\s,'\"]+",
            _WHOLE,
        ),
        (r"(?<![\w.-])PASS=(?!\d+(?![\w.]))", _VALUE, _WHOLE),  # PASS=12 FAIL=0 is a count
        (r"['\"](?i:auth)['\"]\s*:\s*['\"]", r"[^'\"]+", _WHOLE),
        (r"(?i:[?&](?:x-(?:amz|goog)-(?:signature|credential)|sig(?:nature)?)=)", r"[^&\s'\"#<>]+", _WHOLE),
        # of a URL; what is sorted by, a word, is none
        (r"[?&]key=", r"(?=[^&\s'\"#<>]{0,100}[0-9])[^&\s'\"#<>]{8,}", _WHOLE),
    )
} | {_KEY: re.compile(rf"(?:\\[rn])?({_OF_KEY})")}
# Of a program's names most are variables: a secret is a text with letters and digits that is given to one.
_IN_PROGRAM = (
    (re.compile(user_of_url("{}")), f"{HIDDEN}@"),
    *((pattern, rf"\1{HIDDEN}") for pattern in (_KEY, *TOKENS)),
    (
        re.compile(
            rf"((?<![\w.-]){NAME_IN_TEXT}['\"]?\]?\s*[=:,]\s*(['\"]))"
            r"(?=[^'\"\n]*[A-Za-z])(?=[^'\"\n]*\d)[\w+/=.~!@$%^&*-]{6,200}(?=\2)"
        ),
        rf"\1{HIDDEN}",
    ),
)
# An argument ends where its secret does: blanks, commas and quotes in it are the secret's own.
_IN_ARGUMENT = re.compile(rf"({_ASSIGNED.format(NAME + _CLOSED)}|{_BEARER})(.+)", re.DOTALL)


def holds_hidden(value: object) -> bool:
    """Whether something was hidden in data, to any depth."""
    return HIDDEN in repr(value)


def redact_url(url: str) -> str:
    """`url` without the user and password that may stand in it: `https://***@host/simple`."""
    return USER_OF_URL.sub(f"{HIDDEN}@", url)


def redact_text(text: str, marked: frozenset[str] = frozenset()) -> str:
    """`text` with every URL's user, every token and what is assigned to secrets, the `marked` too, as `***`."""
    if _has_sign(text):
        text = _IN_TEXT.sub(_hidden, redact_url(text))
    if any(name in text for name in marked):
        text = _assignments_to(marked).sub(_hidden, text)
    return _redact_printed(text)


def redact_tokens(text: str) -> str:
    """`text` with what is a secret by its own form alone replaced by `***`."""
    if not _has_sign(text, SIGNS_OF_TOKENS):
        return text
    for pattern in TOKENS:
        text = pattern.sub(rf"\1{HIDDEN}", text)
    return text


def redact_key(text: str) -> str:
    """`text`, of any number of lines, with what is in private keys replaced by `***`."""
    return _KEY.sub(rf"\1{HIDDEN}", text)


def redact_program(text: str) -> str:
    """A program's text without users of URLs, private keys, and literals that are given to names of secrets."""
    for pattern, hidden in _IN_PROGRAM:
        text = pattern.sub(hidden, text)
    return text


def redact_argv(argv: Sequence[str]) -> list[str]:
    """The command with every secret hidden to the end of its argument, also one that follows its option."""
    return [
        HIDDEN
        if _follows_option(before, argument)
        else _redact_printed(_IN_ARGUMENT.sub(rf"\1{HIDDEN}", _redact_users(argument)))
        for before, argument in zip(("", *argv), argv, strict=False)
    ]


def secrets_in_argv(argv: Sequence[str]) -> Iterator[str]:
    """What `redact_argv` hides of a command; of a URL's user the password by itself too."""
    for before, argument in zip(("", *argv), argv, strict=False):
        yield from users_in_argument(argument)
        if _follows_option(before, argument):
            yield argument
        for match in _IN_ARGUMENT.finditer(argument):
            yield match[2]
            quoted = re.match(_QUOTED, match[2])  # in JSON, say
            if quoted:
                yield quoted[0][1:-1]
        yield from _secrets_printed(argument)


def secrets_in_text(text: str, marked: frozenset[str] = frozenset()) -> Iterator[str]:
    """What `redact_text` hides of a text; of a URL's user the password by itself too."""
    if _has_sign(text):
        yield from users_in(text)
        yield from _assigned(_IN_TEXT, text)
    if any(name in text for name in marked):
        yield from _assigned(_assignments_to(marked), text)
    yield from _secrets_printed(text)


def _assigned(assignments: re.Pattern[str], text: str) -> Iterator[str]:
    for match in assignments.finditer(text):
        value = match["inner"] or match["value"] or match["credential"] or ""
        yield value[1:].rstrip(value[0]) if value[:1] in ("'", '"') else value


@cache
def _assignments_to(names: frozenset[str]) -> re.Pattern[str]:
    return _assignments(f"(?:{'|'.join(map(re.escape, filter(None, names)))})")


def _redact_printed(text: str) -> str:
    for pattern in _PRINTED if _has_sign(text) else ():
        text = pattern.sub(rf"\1{HIDDEN}", text)
    return redact_tokens(text)


def _secrets_printed(text: str) -> Iterator[str]:
    for pattern, part in _PRINTED.items() if _has_sign(text) else ():
        for match in pattern.finditer(text):
            yield from part.findall(match[2])
    for pattern in TOKENS if _has_sign(text, SIGNS_OF_TOKENS) else ():
        yield from (match[2] for match in pattern.finditer(text))


def _has_sign(text: str, signs: Sequence[str] = _SIGNS) -> bool:
    folded = text.casefold()  # as the patterns do without regard to case
    return any(sign in folded for sign in signs)


def _redact_users(argument: str) -> str:
    return redact_url(USER_OF_WHOLE_URL.sub(rf"\1{HIDDEN}@", argument))


def _follows_option(before: str, argument: str) -> bool:
    return bool(_SECRET_OPTION.fullmatch(before)) and not argument.startswith("-")


def _hidden(match: re.Match[str]) -> str:
    """What stands in place of an assignment, in the same quotes: what was JSON or Python stays that."""
    if match["quoted"]:
        return f"{match['quote']}{match['quoted']}{HIDDEN}{match['quote']}"
    value = match["value"] or ""
    opened = value[:1] if value[:1] in ("'", '"') else ""
    closed = opened if value[1:].endswith(opened) else ""
    return f"{match['plain'] or match['header']}{opened}{HIDDEN}{closed}"
