"""How a script on a host begins that uses the work folder: it goes there, and stays there."""

# $0: the work folder, which is the ssh user's own, closed to others, and no link. It was so when the run began, but a
# machine may lose its files meanwhile (a reboot, a cleaner of /var/tmp), and anybody can make a folder of that name, or
# a link to one of root's. Shells set PWD to the physical path by `cd -P`.
ENTER_OWN = (
    'cd -P -- "${0%/*}" && at=${PWD%/}/${0##*/} && cd -P -- "./${0##*/}" || exit; '
    '[ "$PWD" = "$at" ] && [ -O . ] && [ -z "$(find . -prune -perm /022)" ] '
    '|| { echo "$0 is no folder of $(id -un) alone: what lies there is left alone" >&2; exit 3; }; '
)
# The same where it is there, from where the script was called: what follows uses its path.
SEE_OWN = f'{{ [ ! -e "$0" ] && [ ! -L "$0" ]; }} || ({ENTER_OWN}:) || exit; '
