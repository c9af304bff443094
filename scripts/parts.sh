# Shell functions that do parts of a set-up side by side; a script that sources this file sets LOGS, a folder.
# shellcheck shell=bash
#
#   begin NAME COMMAND...   start a part, whose output goes to LOGS/NAME.log; `say` still reaches the terminal
#   finish NAME...          wait for parts. If any that was begun fails, all end, and the script with them
#   stages                  a line a part, with its seconds
#   end_parts_with_script   however the script ends, no part outlives it

STILL_EVERY_S=15 # so often a line says what is being done, where nothing else is said

declare -A PART_PID=() PART_SECONDS=() PART_BEGUN=()

begin() {
  local name=$1
  shift
  mkdir -p "$LOGS"
  : >"$LOGS/$name.step"
  PART_BEGUN[$name]=$SECONDS
  set -m # in a process group of its own, so that it can be ended with all that it started
  (
    set +m
    PART=$name
    exec 3>&2 >"$LOGS/$name.log" 2>&1 </dev/null
    "$@"
  ) &
  PART_PID[$name]=$!
  set +m
}

finish() {
  local name=$1 still=$SECONDS
  for name in "$@"; do
    while [ -n "${PART_PID[$name]:-}" ]; do
      look_at_parts
      if [ $((SECONDS - still)) -ge $STILL_EVERY_S ]; then
        say_what_goes_on
        still=$SECONDS
      fi
      [ -z "${PART_PID[$name]:-}" ] || sleep 0.3
    done
  done
}

# Take note of the parts that have ended; where one has failed, so has the script.
look_at_parts() {
  local name
  for name in "${!PART_PID[@]}"; do
    kill -0 "${PART_PID[$name]}" 2>/dev/null && continue
    wait "${PART_PID[$name]}" || fail_of "$name"
    unset "PART_PID[$name]"
    PART_SECONDS[$name]=$((SECONDS - PART_BEGUN[$name]))
  done
}

# What the part itself said last stands above; its log may say more.
fail_of() {
  unset "PART_PID[$1]"
  end_parts
  say "$1 failed; the end of its log, $LOGS/$1.log:"
  tail -n 15 "$LOGS/$1.log" | sed 's/^/    /' >&2
  exit 1
}

# End what still goes on, with all that it has started. A part that is only beginning may lose the first signal.
end_parts() {
  local pid
  for pid in "${PART_PID[@]}"; do kill -TERM -- "-$pid" 2>/dev/null || true; done
  for pid in "${PART_PID[@]}"; do
    while kill -TERM -- "-$pid" 2>/dev/null; do sleep 0.2; done
    wait "$pid" 2>/dev/null || true
  done
  PART_PID=()
}

end_parts_with_script() {
  trap end_parts EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  trap 'exit 129' HUP
}

say_what_goes_on() {
  local name
  for name in "${!PART_PID[@]}"; do
    say "$((SECONDS - PART_BEGUN[$name])) s of $name, still: $(tail -n 1 "$LOGS/$name.step")"
  done
}

stages() {
  local name
  for name in "${!PART_SECONDS[@]}"; do printf '%4s s  %s\n' "${PART_SECONDS[$name]}" "$name"; done | sort -rn |
    while IFS= read -r name; do say "$name"; done
}
