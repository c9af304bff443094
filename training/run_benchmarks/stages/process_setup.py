"""PROCESS_SETUP: a script of the user's that makes a node ready for plain processes, as `module load` does."""

from __future__ import annotations

from run_benchmarks.plan.records import RunSettings
from run_benchmarks.transports.base import CommandTimeoutError, Transport
from utils.errors import FlagPerfError

SEE_S, LIMIT_S = 60.0, 120
# $1: the script, then the command, which takes the shell's place. Whatever the script does, it has an end: a guard ends
# the shell, if it is its child still; it is one process, and starts none. What the script prints is no output of
# the command's; and one that fails lets nothing be measured with other software than was meant.
SHELL = f"""FLAGPERF_SETUP=$1; shift; FLAGPERF_COMMAND=("$@")
(exec 9<> <(:); for ((left = {LIMIT_S}; left > 0; left--)); do
  read -rt 1 -u 9; read -r _ _ _ parent _ </proc/$BASHPID/stat; [ "$parent" = $$ ] || exit
done; echo "PROCESS_SETUP: not done after {LIMIT_S} s, ended: $FLAGPERF_SETUP"; kill -KILL $$) >&2 &
FLAGPERF_GUARD=$!
. "$FLAGPERF_SETUP" </dev/null >&2
FLAGPERF_CODE=$?
kill -KILL $FLAGPERF_GUARD; wait $FLAGPERF_GUARD 2>/dev/null
[ $FLAGPERF_CODE = 0 ] || {{ echo "PROCESS_SETUP: exit code $FLAGPERF_CODE: $FLAGPERF_SETUP" >&2; exit 1; }}
exec "${{FLAGPERF_COMMAND[@]}}"
"""


def in_setup(run: RunSettings) -> tuple[str, ...]:
    """What stands before a command that is to run in what the script makes; nothing where there is none."""
    return ("bash", "-c", SHELL, "setup", run.process_setup) if run.process_setup else ()


async def see_setup(run: RunSettings, transport: Transport) -> None:
    """See on a host that the script is there, ends, and succeeds.

    Raises:
        FlagPerfError: it does not.
    """
    script = run.process_setup
    if not script:
        return
    name = f"PROCESS_SETUP, {script},"
    if not (await transport.run(("sh", "-c", '[ -f "$0" ] && [ -r "$0" ]', script), timeout=SEE_S)).ok:
        remedy = "put it there, for this user to read; or correct PROCESS_SETUP"
        raise FlagPerfError(f"{name} is no file that can be read here", remedy=remedy)
    remedy = f"run `bash -c '. {script}; echo $?'` on this host, and mend it: it has to end, and to return 0"
    try:
        done = await transport.run((*in_setup(run), "echo", "ready"), timeout=SEE_S)
    except CommandTimeoutError as error:
        raise FlagPerfError(f"{name} is not done after {SEE_S:g} s", remedy=remedy) from error
    if not done.ok or done.stdout != "ready\n":
        raise FlagPerfError(f"{name} fails: {done.last_lines(3) or 'it ends the shell'}", remedy=remedy)
