"""The folder of a host that is FlagPerf's own: made for the ssh user alone, and refused where others can reach into it.

What lies in it runs, often as root, and how it is named can be guessed: so nobody else may put anything there, nor
anything in its place.
"""

from __future__ import annotations

from pathlib import Path

from run_benchmarks.transports import LOCALHOST
from run_benchmarks.transports.base import Completed, Transport
from utils.errors import FlagPerfError

OPEN_TO_OTHERS = 77
REMEDY = (
    "name a folder with FLAGPERF_PATH_HOST in test_conf.py that the ssh user may create and write on this host, with "
    "free space, below folders that only root and this user may write to, or that have the sticky bit"
)
# `walk PATH` makes the folders of PATH that are missing and ends the script with OPEN_TO_OTHERS where others can
# replace something on the way, as sshd's StrictModes does. Each folder belongs to root, the user or the user ID $1, and
# nobody else may write to it, unless the sticky bit keeps what others have there. A group that is named like the owner
# is that owner's own (user private groups), unless it has other members; where `ls` shows a `+`, what the mode says of
# the group is said of an access control list too. Of a link the way that it leads is walked too.
# `open`: what others may do, of the bits $mask: 530 (01022) on the way, 18 (022) where the sticky bit is not enough.
WALK = (
    "set -efu; umask 022; export LC_ALL=C; me=$(id -u); mask=530; after=; "
    f'refuse() {{ printf "%s\\n" "$1" >&2; exit {OPEN_TO_OTHERS}; }}; '
    'shared() { case $(ls -ld "$1") in ??????????+*) more=", with an access control list"; return; esac; '
    'names=$(getent group "$2" 2>/dev/null || :); names=${names##*:}; '
    'case $names in ""|"$2") return 1; esac; more=", which $names belong to"; }; '
    'look() { more=; set -- "$1" "$2" $(stat -c "%u %a %U %G" "$1"); '
    'case " 0 $me $2 " in *" $3 "*) ;; *) refuse "$1 belongs to $5"; esac; '
    'open=$((0$4 & mask)); [ "$5" = UNKNOWN ] || [ "$5" != "$6" ] || [ $((open & 020)) = 0 ] || '
    'shared "$1" "$6" || open=$((open & 01002)); '
    '[ -L "$1" ] || [ $open = 0 ] || [ $open -ge 512 ] || '
    'refuse "others may replace what is in $1 (mode $4, owner $5, group $6$more)$after"; }; '
    'walk() { at=; rest=${1#/}/; while [ "$rest" ]; do at=$at/${rest%%/*}; rest=${rest#*/}; '
    '[ -e "$at" ] || [ -L "$at" ] || mkdir -p "$at"; [ -d "$at" ] || { echo "$at: Not a directory" >&2; exit 1; }; '
    'look "$at" "$2"; [ ! -L "$at" ] || { to=$(readlink "$at"); '
    'case $to in /*) ;; *) to=${at%/*}/$to; esac; (walk "$to" "$2"); }; done; }; '
)
# $0: a folder that is made, $1: a user ID for `walk`. Others who can replace it are named, and nothing is refused.
MAKE = f'{WALK}refuse() {{ printf "%s\\n" "$1"; }}; walk "$0" "$1"; [ -w "$0" ]'
# What the work folder must be where it is there. Whoever could write to it may have left something that runs, and
# stays in it, as a working directory, when its mode is mended.
_OWN = (
    '{ [ -d "$0" ] && [ ! -L "$0" ] && [ -O "$0" ]; } || '
    'refuse "$0 is $(stat -c "a %F of %U" "$0"), and not a folder of $(id -un)"; mask=18; '
    'after=", and may have done so: see what lies there, and move it away; the next run makes a new one"; '
    'look "$0" "$1"; '
)
# $0: the work folder, $1: a user ID for `walk`.
ENTER = (
    f'{WALK}walk "${{0%/*}}" "$1"; [ -e "$0" ] || [ -L "$0" ] || mkdir -p -m 700 "$0"; {_OWN}chmod 700 "$0"; '
)
# The same of what is there already, or of the folder in which it would be made: makes and changes nothing.
_NEAREST = 'near=$0; while [ ! -e "$near" ] && [ ! -L "$near" ]; do near=${near%/*}; near=${near:-/}; done; '
_MAY_WRITE = '[ -w "$near" ] || { echo "$(id -un) may not write to $near" >&2; exit 1; }; '
SEE = f'{WALK}{_NEAREST}walk "$near" "$1"; [ "$near" != "$0" ] || {{ {_OWN} }}; {_MAY_WRITE}'
SEE_FOLDER = f'{WALK}refuse() {{ printf "%s\\n" "$1"; }}; {_NEAREST}walk "$near" "$1"; {_MAY_WRITE}'
# What begins a script later in a run: it goes there, and stays there.
# $0: the work folder, which is the ssh user's own, closed to others, and no link. It was so when the run began, but a
# machine may lose its files meanwhile (a reboot, a cleaner of /var/tmp), and anybody can make a folder of that name, or
# a link to one of root's. A program says where we are: bash works its PWD out from names, which others may exchange.
ENTER_OWN = (
    'cd -P -- "${0%/*}" && at=$(env pwd -P) && at=${at%/}/${0##*/} && cd -P -- "./${0##*/}" || exit; '
    '[ "$(env pwd -P)" = "$at" ] && [ -O . ] && [ -z "$(find . -prune -perm /022)" ] '
    '|| { echo "$0 is no folder of $(id -un) alone: what lies there is left alone" >&2; exit 3; }; '
)
IN_OWN = f'{ENTER_OWN}exec "$@"'
# $1: what it holds, and need not.
REMOVE_BELOW = f'[ ! -d "$0" ] || {{ {ENTER_OWN}exec rm -rf "./$1"; }}'
# $0, $1: as of ENTER. For what uses its path next, and needs what lies there: from here on nobody else can exchange a
# part of that path. In a shell of its own, as what follows shall have the caller's umask and variables; `set -e` would
# not hold in one that is before `||`.
STILL_OWN = (
    f'({WALK}[ -d "$0" ] || refuse "$0 is not there any more"; walk "${{0%/*}}" "$1"; {_OWN}); '
    "[ $? = 0 ] || exit; "
)


def guard_argv(script: str, path: str, transport: Transport, *words: str) -> tuple[str, ...]:
    """The command that runs `script`, which begins with WALK, for a path on the host; `words` are its $2, $3 and on."""
    # whose code this is runs here as this user anyway: a checkout in somebody's home folder, under sudo
    owner = str(Path(__file__).stat().st_uid) if transport.host == LOCALHOST else ""
    return ("sh", "-c", script, path, owner, *words)


async def in_work_folder(
    transport: Transport,
    work: str,
    script: str,
    *words: str,
    timeout: float,
    codes: tuple[int, ...] = (0,),
    enter: str = ENTER,
) -> Completed:
    """Make sure of the work folder (absolute path) and run a script on the host, which has its path as $0.

    Args:
        words: the script's $2, $3 and so on.
        codes: the exit codes that the script may end with.
        enter: ENTER, SEE to make nothing, or STILL_OWN.

    Raises:
        FlagPerfError: it cannot be made or written, it is not the ssh user's own, or others can replace it.
    """
    done = await transport.run(guard_argv(enter + script, work, transport, *words), timeout=timeout)
    if done.returncode not in codes:
        raise FlagPerfError(done.last_lines(1) or "not writable", where=transport.host, remedy=REMEDY)
    return done
