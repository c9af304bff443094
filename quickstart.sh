#!/usr/bin/env bash
# Set up this machine and train the BERT demo on it, in containers, until it reaches its target.
#
#   ./quickstart.sh [options of run.py]
#
# Everything it makes lies in this checkout (.venv, .quickstart) and in the container engine.
# As root it installs a container engine where there is none. Run again, it starts at once.
set -euo pipefail
cd "$(dirname "$0")"
NAME=quickstart
# shellcheck source=scripts/machine.sh
. scripts/machine.sh

WORK=$PWD/.quickstart
DATA=$WORK/bert_demo
PREPARE=training/benchmarks/bert/prepare

prepare_data() {
  [ -f "$DATA/manifest.json" ] && return
  say "preparing the demo's data (the King James text) in $DATA"
  (cd training && ../.venv/bin/python -m benchmarks.bert.prepare --demo --out "$DATA") ||
    die "the data could not be prepared"
}

# Without containers: PyTorch in a virtual environment of its own, installed as in the image.
prepare_process_runtime() {
  RUNTIME=process BASE_IMAGE=
  make_venv "$WORK/venv"
  local install=training/cpu/docker_image/pytorch/pytorch_install.sh
  PATH=$WORK/venv/bin:$PATH once "$WORK/venv/flagperf-pytorch" "$(sha256sum <$install)" sh $install ||
    die "PyTorch could not be installed"
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

write_config() {
  mkdir -p "$WORK/config"
  cat >"$WORK/config/cluster_conf.py" <<CONF
"""Written by quickstart.sh: this machine alone."""

HOSTS = ["localhost"]
CONF
  cat >"$WORK/config/test_conf.py" <<CONF
"""Written by quickstart.sh: the BERT demo on this machine's processors."""

VENDOR = "cpu"
CASES = {"bert:pytorch:cpu:1:2:1": "$DATA"}

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
pip_install_files .venv training/requirements.txt $PREPARE/requirements.txt
choose_runtime
prepare_data
write_config
say "the configuration of this run is in $WORK/config: a start for your own"
cd training
exec ../.venv/bin/python run_benchmarks/run.py --config "$WORK/config" "$@"
