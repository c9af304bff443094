"""Who stands before a URL's host, with a password mostly: `https://bob:secret@host`."""

from __future__ import annotations

import re
from collections.abc import Iterator


def user_of_url(barred: str = "") -> str:
    """The pattern of a user and password, up to their `@`, that none of the barred characters is in.

    SQLAlchemy and others take a password as it is, `#`, `/` and `?` too; digits and a `/` behind a colon are a port.
    """
    plain = rf"[^/\s'\"?#{barred}]+@"
    password = rf"(?!\d{{1,5}}/)(?:(?!://)[^\s'\"@{barred}]){{1,512}}"
    return rf"(?<=://)(?:[^\s'\"/?#:@\[{barred}]*:{password}@(?:{plain})?|{plain})"


# Also of a proxy written without a scheme; an image's digest is none of these. (There may be a `=` before each of many
# users, all of which a password without a bound would look for its end.)
USER_OF_URL = re.compile(
    rf"(?:{user_of_url()}|(?<![^\s'\"@=])[^\s/'\"@:=]+:[^\s/'\"@]{{1,512}}@)(?!sha256:[0-9a-f]{{64}})"
)
# An argument, or a variable's value, that is a URL altogether: there quotes and blanks are the password's own, too.
USER_OF_WHOLE_URL = re.compile(
    r"(\A(?:[\w.-]+=){0,2}[A-Za-z][\w+.-]{0,40}://)[^\s'\"/?#:@\[]*:(?!\d{1,5}(?:[/\s]|\Z))[^@]{1,512}@"
)


def users_in(text: str) -> Iterator[str]:
    """Each user with the password, and the password by itself."""
    for match in USER_OF_URL.finditer(text):
        yield from _with_password_alone(match[0])


def users_in_argument(argument: str) -> Iterator[str]:
    """The same of a command's argument, or of a variable's value."""
    whole = USER_OF_WHOLE_URL.match(argument)
    if whole:
        yield from _with_password_alone(argument[whole.end(1) : whole.end()])
    yield from users_in(argument)


def _with_password_alone(user: str) -> tuple[str, str]:
    return user[:-1], user[:-1].partition(":")[2]
