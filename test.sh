#!/usr/bin/env bash
# Set up this machine and pass the tests: style, types, and every test with real parts.
#
#   ./test.sh [--quick] [options of pytest]
#
# --quick leaves out what is slow: the lab's tests and those that were measured so (tests/slow.py).
# Tests run side by side; -n 0 runs them one after the other, for a debugger.
#
# As root on Debian or Ubuntu it installs what the lab (several hosts on this machine) needs. Without
# root those tests are skipped, and the last lines say so; where CI is set, a skip of them is a failure.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")" # the script may be called through a link
NAME="test"
LOGS=$PWD/.venv/logs
# shellcheck source=scripts/machine.sh
. scripts/machine.sh
# shellcheck source=scripts/parts.sh
. scripts/parts.sh

# What the tests of the lab, the transports, Slurm, the pages, metrics, NVIDIA's monitor and BMCs use, by command and package.
LAB_TOOLS=(sshd:openssh-server ip:iproute2 tc:iproute2 iptables:iptables debootstrap:debootstrap dockerd:docker.io
           pgrep:procps nsenter:util-linux podman:podman catatonit:catatonit newuidmap:uidmap chromium:chromium
           gcc:build-essential ipmitool:ipmitool ipmi_sim:openipmi prometheus:prometheus
           munged:munge slurmctld:slurm-wlm slurmdbd:slurmdbd mariadbd:mariadb-server-core my_print_defaults:mariadb-client-core)

install_tools() {
  local missing=() tool
  for tool in "${LAB_TOOLS[@]}"; do
    PATH=$PATH:/usr/sbin command -v "${tool%%:*}" >/dev/null || missing+=("${tool##*:}")
  done
  [ ${#missing[@]} = 0 ] || apt_install "${missing[@]}" ||
    say "missing: ${missing[*]}; tests that need them are skipped"
}

install_python() {
  local install=training/cpu/docker_image/pytorch/pytorch_install.sh
  PATH=$PWD/.venv/bin:$PATH once .venv/flagperf-pytorch "$(sha256sum <$install)" sh $install ||
    die "PyTorch could not be installed"
  pip_install_files .venv tests/requirements.txt training/requirements.txt training/benchmarks/*/prepare/requirements.txt
}

# A test converts a checkpoint that TensorFlow wrote; TensorFlow's versions of packages would disturb the others'.
TENSORFLOW_VENV=.venv-tensorflow
install_tensorflow() {
  (make_venv $TENSORFLOW_VENV &&
    pip_install_files $TENSORFLOW_VENV training/benchmarks/bert/prepare/requirements-tensorflow.txt) ||
    say "TensorFlow cannot be had here: the tests of its checkpoints are skipped"
}

install_engine() {
  if ! ensure_engine; then return; fi
  ensure_base_image || say "there is no base image; tests that need one fail"
}

# What pip has compiled, and Python's own modules, where PYTHONPYCACHEPREFIX has Python look for them: links take a
# second, while every worker would compile its frameworks anew.
BYTECODE=$PWD/.venv/pycache
link_bytecode() {
  "$1/bin/python" - "$BYTECODE" <<'END'
import os, sys, sysconfig
from pathlib import Path

for folder in {sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")}:
    for compiled in Path(folder).rglob("__pycache__/*.pyc"):
        link = Path(sys.argv[1], *compiled.parts[1:-2], compiled.name)
        if not os.path.lexists(link):
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(compiled)
END
}

# Parts side by side, once apt has done its work: it takes one at a time.
set_up() {
  install_tools
  make_venv .venv
  begin engine install_engine
  begin tensorflow install_tensorflow
  begin python install_python
  finish python tensorflow engine
  stages
  link_bytecode .venv
  [ ! -d $TENSORFLOW_VENV ] || link_bytecode $TENSORFLOW_VENV
}

check_types() {
  say "types"
  mypy training/utils training/run_benchmarks training/benchmarks/driver training/benchmarks/search
}

# Meanwhile: else each of the workers, which all begin at once, would do it.
compile_tests() {
  say "compiling the tests"
  python -m pytest --collect-only -q
}

# The lab's tests and those of containers wait a lot: the whole suite has more workers than there are cores.
WORKERS=$(($(nproc) < 8 ? $(nproc) : 8))
SELECTED=()
if [ "${1:-}" = --quick ]; then
  shift
  SELECTED=(-m "not slow")
else
  WORKERS=$((WORKERS + 2))
fi

end_parts_with_script
set_up
# What the parts have made is found here, at once.
if [ -f $TENSORFLOW_VENV/flagperf-requirements ]; then
  export FLAGPERF_TEST_TENSORFLOW_PYTHON=$PWD/$TENSORFLOW_VENV/bin/python
fi
if engine_answers && find_base_image; then export FLAGPERF_TEST_BASE_IMAGE=$BASE_IMAGE; fi
export PATH=$PWD/.venv/bin:$PATH:/usr/sbin:/sbin
# Hundreds of short Python processes compile the same files else, where the environment forbids to keep them.
unset PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX=$BYTECODE
say "style"
ruff check .
ruff format --check .
begin types check_types
[ $# != 0 ] || begin compiling compile_tests
finish types compiling
trap - EXIT INT TERM HUP
say "tests"
# A worker that is started anew has none of its group's tests: pytest-xdist would wait for them for ever.
exec python -m pytest -n $WORKERS --dist loadgroup --no-loadscope-reorder --max-worker-restart=0 --durations=15 "${SELECTED[@]}" "$@"
