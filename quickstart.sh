#!/usr/bin/env bash
# Set up this machine and train the BERT demo on it, in containers, until it reaches its target.
#
#   ./quickstart.sh [--all] [options of run.py]
#
# --all runs every demo, one after the other: BERT on PyTorch and on PaddlePaddle, GLM, CPM, the digits, and the rate of
# matrix multiplications.
# Everything it makes lies in this checkout (.venv, .quickstart) and in the container engine.
# As root it installs a container engine where there is none. Run again, it starts at once.
set -euo pipefail
cd "$(dirname "$0")"
NAME=quickstart
# shellcheck source=scripts/machine.sh
. scripts/machine.sh

WORK=$PWD/.quickstart
MODELS=(bert)
CASES=(bert:pytorch)
if [ "${1:-}" = --all ]; then
  shift
  MODELS=(bert glm cpm digits)
  CASES=(bert:pytorch bert:paddle glm:pytorch cpm:pytorch digits:pytorch gemm:pytorch)
fi

# make_data MODEL: the data of a demo, anew.
make_data() {
  local what=(--demo)
  [ "$1" != digits ] || what=() # they are small as they are
  say "preparing the data of the $1 demo in $WORK/$1_demo"
  rm -rf "$WORK/$1_demo"
  (cd training && ../.venv/bin/python -m "benchmarks.$1.prepare" "${what[@]}" --out "$WORK/$1_demo")
}

# Again only when what makes them has changed.
prepare_data() {
  local model key
  mkdir -p "$WORK/gemm_demo" # matrices are made where they are multiplied: it stays empty
  for model in "${MODELS[@]}"; do
    key=$(find "training/benchmarks/$model/prepare" training/benchmarks/*/demo_data training/benchmarks/common \
      -type f -not -name '*.pyc' -print0 | sort -z | xargs -0 cat | sha256sum)
    once "$WORK/${model}_demo.made" "$key" make_data "$model" ||
      die "the data of the $model demo could not be prepared"
  done
}

# Without containers: frameworks and monitors in a virtual environment of their own, installed as in the images.
prepare_process_runtime() {
  RUNTIME=process BASE_IMAGE=
  make_venv "$WORK/venv"
  local framework install
  for framework in $(printf '%s\n' "${CASES[@]#*:}" | sort -u); do
    install=training/cpu/docker_image/$framework/${framework}_install.sh
    PATH=$WORK/venv/bin:$PATH once "$WORK/venv/flagperf-$framework" "$(sha256sum <"$install")" sh "$install" ||
      die "$framework could not be installed"
  done
  pip_install_files "$WORK/venv" training/utils/monitors/requirements.txt
}

choose_runtime() {
  RUNTIME=docker
  if ! ensure_engine; then
    say "no container engine can be had here: the demo runs as plain processes instead"
    prepare_process_runtime
  elif ! ensure_base_image; then
    say "no base image can be had here: the demo runs as plain processes instead"
    prepare_process_runtime
  fi
}

# The lines of CASES: each demo on one host with two processes.
case_lines() {
  local key
  for key in "${CASES[@]}"; do
    printf '    "%s:cpu:1:2:1": "%s",\n' "$key" "$WORK/${key%%:*}_demo"
  done
}

write_config() {
  mkdir -p "$WORK/config"
  cat >"$WORK/config/cluster_conf.py" <<CONF
"""Written by quickstart.sh: this machine alone."""

HOSTS = ["localhost"]
CONF
  cat >"$WORK/config/test_conf.py" <<CONF
"""Written by quickstart.sh: demos on this machine's processors."""

VENDOR = "cpu"
CASES = {
$(case_lines)
}

RUNTIME = "$RUNTIME"
CONTAINER_ENGINE = "$ENGINE"
PROCESS_PYTHON = "$WORK/venv/bin/python"
IMAGE_BUILD_ARGS = {"BASE_IMAGE": "$BASE_IMAGE"} if "$BASE_IMAGE" else {}
PIP_FROM_HOST = True
SHM_SIZE = "1G"
CASE_DEADLINE_HOURS = 1
FLAGPERF_PATH = "$WORK/host"
FLAGPERF_LOG_PATH = "$PWD/training/result"
CONF
}

make_venv .venv
REQUIREMENTS=("${MODELS[@]/#/training/benchmarks/}")
pip_install_files .venv training/requirements.txt "${REQUIREMENTS[@]/%//prepare/requirements.txt}"
choose_runtime
prepare_data
write_config
say "the configuration of this run is in $WORK/config: a start for your own"
cd training
exec ../.venv/bin/python run_benchmarks/run.py --config "$WORK/config" "$@"
