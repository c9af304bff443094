"""How a command on a host is ended with all that it started, by the process group that it has there."""

from __future__ import annotations

# $1: the group. SIGTERM, up to two seconds of grace, SIGKILL. A zombie does not count as alive: it may wait
# long for its parent. In /proc/PID/stat the state, the parent and the group follow the name in parentheses.
END = r"""group=$1
alive() {
  for stat in /proc/[0-9]*/stat; do
    { read -r line <"$stat"; } 2>/dev/null || continue
    set -- ${line##*\) }
    [ "$3" = "$group" ] && [ "$1" != Z ] && return 0
  done
  return 1
}
for signal in TERM KILL; do
  kill -s "$signal" -- "-$group" 2>/dev/null || exit 0
  for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do alive || exit 0; sleep 0.1; done
done"""
