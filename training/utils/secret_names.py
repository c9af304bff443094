"""Which names speak of a secret: patterns of the names of variables, options and fields."""

from __future__ import annotations

import re

# A name that speaks of a secret has one of these words in it, or ends with it without a break (PGPASSWORD) ... Where
# variables stand for nested settings their parts are joined by `__` (API__KEY).
_BREAK, _ANY_BREAK = "[_-]{1,3}", "[_-]{0,3}"
_WORDS = (
    f"token|passwords?|passwds?|passphrases?|passcodes?|secret|credentials?|creds|auth{_ANY_BREAK}(?:config|header)"
    # `private.key` is a file
    f"|(?:api|access)[_.-]{{0,3}}keys?|(?:private|secret){_ANY_BREAK}keys?|webhook{_ANY_BREAK}urls?"
    # Of the plural most are counts: MAX_TOKENS.
    f"|(?:hf|gh|github|gitlab|wandb|api|auth|access){_ANY_BREAK}tokens"
)
# PGPASS, ROOTPW; what else ends so is a compass.
_JOINED = "(?:ssh|pg|db|root|admin|user|mysql|redis|ldap|smtp|ftp|proxy|vnc)(?:pass|pwd?)"
_SPOKEN = (
    rf"(?:(?i:(?<![^\W_])(?:{_WORDS})[0-9]{{0,2}}(?![^\W_])"
    rf"|(?:{_WORDS}|{_JOINED}|sshkey|jwt|basicauth)(?![\w.-]))"
    # In capitals: krb5.keytab is a file, and pull_secrets are names.
    r"|KEYTAB(?![^\W_])|(?<=[A-Z0-9]_)SECRETS(?![\w.-]))"
)
# ... or one of these as its last word, which mean too much else where they stand alone (PWD) or within; only a
# number (DB_PASS_1, KEY_V2) or how it is encoded (SIGNING_KEY_PEM) may follow.
_FOLLOWING = f"(?:{_ANY_BREAK}[vV]?[0-9][0-9]?|{_BREAK}(?i:pem|der|b64|base64))?"
_ENDING = "cred|key|pass|pwd|pw|psw|pat|auth|psk|sk|cookie"
# Behind a dot in capitals alone (MY.KEY): `attention.key` is of a model, `server.key` a file, GPU0.PASS a count.
_LAST_OF_DOTTED = rf"(?<=[A-Z0-9])(?<!PUBLIC)\.(?!PASS)(?:{_ENDING.upper()})"
# What ends with one of these says something about a secret, and holds none: token-kind, PASSWORD_LENGTH.
_ABOUT = "(?i:kind|type|policy|mode|format|count|limit|length|size|version|ttl)"


def _named(ending: str) -> str:
    last = (
        rf"(?:(?<=[A-Za-z0-9])(?<!(?i:public)){_BREAK}(?:{ending})|{_LAST_OF_DOTTED}){_FOLLOWING}(?![\w.-])"
    )
    # The word is looked for once, from where the name begins; then the name is taken whole.
    return rf"(?![\w.-]*[_.-]{_ABOUT}(?![\w.-]))(?=[\w.-]*?(?:{_SPOKEN}|{last}))[\w.-]+"


NAME = _named(f"(?i:{_ENDING}|authorization)")
# In prose only what is written like a variable: `forward_pass: 3 ms` is no secret. (What follows an authorization is
# of several words: see _BEARER.)
NAME_IN_TEXT = _named(_ENDING.upper())

# A field, or a variable, may have one of these names by itself; in small letters most of the last are counts and keys.
_SECRET_NAME = re.compile(rf"{NAME}|(?i:auth(?:orization)?|cred|(?:set-)?cookie)|PASS|TOKENS|KEY")


def is_secret_name(name: str) -> bool:
    """Whether what has this name is a secret: LICENSE_KEY, db-pass, PGPASSWORD."""
    return bool(_SECRET_NAME.fullmatch(name))
