# Shell functions that set up a machine; quickstart.sh and test.sh source this file.
# shellcheck shell=bash

REGISTRY_BASE_IMAGE=python:3.11-slim-bookworm
ENGINE_WAIT_S=60

# In a part (parts.sh) standard error is its log: what is said goes to the terminal too.
say() {
  printf '%s: %s\n' "$NAME" "$*" >&2
  [ -n "${PART:-}" ] || return 0
  printf '%s: %s\n' "$NAME" "$*" >&3
  printf '%s\n' "$*" >"$LOGS/$PART.step"
}
die() { say "$1"; [ -z "${2:-}" ] || say "  -> $2"; exit 1; }

is_root() { [ "$(id -u)" = 0 ]; }
has_apt() { command -v apt-get >/dev/null; }

# Install Debian packages; whether that may and could be done.
apt_install() {
  is_root && has_apt || return 1
  if [ -z "${APT_UPDATED:-}" ]; then
    say "reading the lists of packages (apt-get update)"
    setsid --wait apt-get update -qq >&2 || return 1
    APT_UPDATED=yes
  fi
  say "installing $* (apt-get)"
  # In a session of its own: whoever stops this script does not leave half a package behind.
  DEBIAN_FRONTEND=noninteractive setsid --wait apt-get install -y -qq "$@" >&2
}

# A python3 that is new enough and can make virtual environments.
ensure_python() {
  command -v python3 >/dev/null || apt_install python3 python3-venv || die "there is no python3" "apt-get install -y python3"
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
    die "python3 is $(python3 -V), but 3.10 or newer is needed" "install a newer Python and put it first on PATH"
  if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
    apt_install python3-venv || die "python3 cannot make virtual environments" "apt-get install -y python3-venv"
  fi
}

# make_venv FOLDER: a virtual environment of the machine's python3.
make_venv() {
  [ -x "$1/bin/pip" ] && return # pip comes last: one that was broken off has none
  ensure_python
  say "making the virtual environment $1"
  python3 -m venv --clear "$1" || die "python3 -m venv failed"
}

# once STAMP KEY COMMAND...: run the command unless it succeeded before with the same key.
once() {
  local stamp=$1 key=$2
  shift 2
  [ "$(cat "$stamp" 2>/dev/null)" = "$key" ] && return
  "$@" || return
  mkdir -p "$(dirname "$stamp")"
  printf '%s\n' "$key" >"$stamp"
}

# pip_install_files VENV FILE...: install requirement files, again only when they have changed.
pip_install_files() {
  local venv=$1
  shift
  local files=() file
  for file in "$@"; do files+=(-r "$file"); done
  once "$venv/flagperf-requirements" "$(cat "$@" | sha256sum)" pip_install "$venv" "${files[@]}" ||
    die "pip could not install $*" "check the network, or pip's settings (pip config list) if you are behind a mirror"
}

pip_install() {
  local venv=$1
  shift
  say "installing Python packages into $venv"
  "$venv/bin/python" -m pip install -qq --disable-pip-version-check "$@"
}

ENGINE=${ENGINE:-docker} # or podman
# Podman's `version` looks at nothing that a container needs; its `info` does.
engine_answers() {
  local question=version
  [ "$ENGINE" != podman ] || question=info
  "$ENGINE" $question >/dev/null 2>&1
}

start_dockerd() {
  if [ -d /run/systemd/system ]; then
    systemctl start docker
  else
    # No service manager: start it directly, in a session of its own, so that it outlives this script.
    say "starting dockerd (log: /var/log/flagperf-dockerd.log)"
    setsid dockerd >/var/log/flagperf-dockerd.log 2>&1 </dev/null &
  fi
}

# A container engine that answers; 1 where none can be had, with what to type.
ensure_engine() {
  engine_answers && return
  if [ "$ENGINE" = podman ]; then
    ensure_podman
    return
  fi
  if ! is_root; then
    command -v docker >/dev/null && say "the engine does not answer: sudo systemctl start docker; sudo usermod -aG docker $USER"
    command -v docker >/dev/null || say "there is no container engine: sudo apt-get install -y docker.io; sudo usermod -aG docker $USER"
    return 1
  fi
  if ! command -v dockerd >/dev/null; then
    apt_install docker.io iptables || { say "no container engine could be installed"; return 1; }
  fi
  start_dockerd || return 1
  local waited=0
  until engine_answers; do
    sleep 1
    waited=$((waited + 1))
    [ $waited -lt $ENGINE_WAIT_S ] || { say "dockerd does not answer: see its log"; return 1; }
  done
}

# Podman has no daemon: it is installed, or it is not.
ensure_podman() {
  command -v podman >/dev/null || apt_install podman catatonit uidmap ||
    { say "there is no podman: sudo apt-get install -y podman catatonit uidmap"; return 1; }
  engine_answers || { say "podman info fails: $(podman info 2>&1 >/dev/null | tail -n 1)"; return 1; }
}

# shellcheck source=/dev/null
BUILT_BASE_IMAGE=flagperf-base:$(. /etc/os-release && printf %s "${VERSION_CODENAME:-any}")

# find_base_image: sets BASE_IMAGE to the one that the engine has; 1 where it has none.
find_base_image() {
  for BASE_IMAGE in "$REGISTRY_BASE_IMAGE" "$BUILT_BASE_IMAGE"; do
    "$ENGINE" image inspect "$BASE_IMAGE" >/dev/null 2>&1 && return
  done
  return 1
}

# ensure_base_image: sets BASE_IMAGE to an image with python3 and pip; 1 where none can be had.
ensure_base_image() {
  if find_base_image; then
    say "the base image is there already: $BASE_IMAGE"
    return
  fi
  BASE_IMAGE=$REGISTRY_BASE_IMAGE
  say "pulling $BASE_IMAGE"
  timeout 300 "$ENGINE" pull -q "$BASE_IMAGE" >/dev/null 2>&1 && return
  say "no registry can be reached: building the base image $BUILT_BASE_IMAGE from Debian packages (40 s on an idle machine)"
  command -v debootstrap >/dev/null || apt_install debootstrap || true
  BASE_IMAGE=$BUILT_BASE_IMAGE
  ENGINE=$ENGINE training/cpu/docker_image/base/build_base_image.sh "$BASE_IMAGE"
}

OWN_MARK="# Written by a script, which leaves this file alone once the lines above have been edited:"

# write_own FILE: write standard input to it, unless somebody has edited what stands there; then say what differs.
# The mark is a comment in Python, and the sum after it that of the lines above.
write_own() {
  local file=$1 wanted line
  wanted=$(cat)
  mkdir -p "$(dirname "$file")"
  if [ -e "$file" ] && ! is_as_written "$file"; then
    say "$file has been edited: it is left as it is. Remove it to have it written anew; then (>) it would say:"
    { diff -B <(grep -v "^$OWN_MARK" "$file") <(printf '%s\n' "$wanted") || true; } |
      while IFS= read -r line; do case $line in [\<\>]\ ?*) say "  $line" ;; esac; done
    return
  fi
  printf '%s\n\n%s\n' "$wanted" "$OWN_MARK $(printf '%s\n\n' "$wanted" | sha256sum | cut -d' ' -f1)" >"$file.partial"
  mv "$file.partial" "$file"
}

is_as_written() { [ "$(tail -n 1 "$1")" = "$OWN_MARK $(head -n -1 "$1" | sha256sum | cut -d' ' -f1)" ]; }

# python_text TEXT: as Python writes it.
python_text() {
  local text=${1//\\/\\\\}
  printf '"%s"' "${text//\"/\\\"}"
}
