#!/usr/bin/env bash
# Set up this machine and train the BERT demo on it, in containers, until it reaches its target.
#
#   ./quickstart.sh [--all] [-- options of run.py]
#
# --all runs every demo, one after the other: BERT on PyTorch and on PaddlePaddle, GLM, CPM, the digits, the rate of
# matrix multiplications, and a search for architectures. What stands after -- goes to run.py: ./quickstart.sh -- --log-path /data/results
#
# Everything it makes lies in this checkout (.venv, .quickstart, training/run_benchmarks/config/machine_conf.py) and in
# the container engine. As root it installs a container engine where there is none. Run again, it starts at once.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")" # the script may be called through a link
NAME=quickstart
WORK=$PWD/.quickstart
LOGS=$WORK/logs
# shellcheck source=scripts/machine.sh
. scripts/machine.sh
# shellcheck source=scripts/parts.sh
. scripts/parts.sh

MACHINE_CONF=training/run_benchmarks/config/machine_conf.py
MODELS=(bert)
CASES=(bert:pytorch)

usage() { sed -n '2,/^set/{s/^# \{0,1\}//;/^set/d;p}' quickstart.sh; }

read_options() {
  while [ $# -gt 0 ]; do
    case $1 in
      --all)
        MODELS=(bert glm cpm digits search)
        CASES=(bert:pytorch bert:paddle glm:pytorch cpm:pytorch digits:pytorch gemm:pytorch search:pytorch)
        ;;
      -h | --help) usage; exit 0 ;;
      --) shift; break ;;
      *) say "there is no option $1"; say "  -> ./quickstart.sh --help; options of run.py stand after --"; exit 2 ;;
    esac
    shift
  done
  RUN_OPTIONS=("$@")
}

# Before anything is set up: run.py's own parser says what is wrong with its options.
check_run_options() {
  [ ${#RUN_OPTIONS[@]} -gt 0 ] && command -v python3 >/dev/null || return 0
  (cd training && python3 -c 'import sys; from run_benchmarks.verbs import parse; parse(sys.argv[1:])' "${RUN_OPTIONS[@]}")
}

prepare_python() {
  local requirements=("${MODELS[@]/#/training/benchmarks/}")
  make_venv .venv
  pip_install_files .venv training/requirements.txt "${requirements[@]/%//prepare/requirements.txt}"
}

# prepare_data MODEL: the data of its demo, again only when what makes them has changed.
prepare_data() {
  local key
  key=$(find "training/benchmarks/$1/prepare" training/benchmarks/*/demo_data training/benchmarks/common \
    -type f -not -name '*.pyc' -print0 | sort -z | xargs -0 cat | sha256sum)
  once "$WORK/${1}_demo.made" "$key" make_data "$1" || die "the data of the $1 demo could not be prepared"
}

make_data() {
  local what=(--demo)
  [ "$1" != digits ] || what=() # they are small as they are
  say "preparing the data of the $1 demo in $WORK/$1_demo"
  rm -rf "$WORK/$1_demo"
  (cd training && ../.venv/bin/python -m "benchmarks.$1.prepare" "${what[@]}" --out "$WORK/$1_demo")
}

# What the tasks run in: containers, else plain processes; machine_conf.py says it to run.py.
prepare_runtime() {
  local lines=()
  if ! ensure_engine; then
    say "no container engine can be had here: plain processes are used instead"
    prepare_processes
  elif ! ensure_base_image; then
    say "no base image can be had here: plain processes are used instead"
    prepare_processes
  else
    [ "$ENGINE" = docker ] || lines+=("CONTAINER_ENGINE = $(python_text "$ENGINE")")
    [ "$BASE_IMAGE" = "$REGISTRY_BASE_IMAGE" ] || # else it is what the Dockerfiles name
      lines+=("VENDORS = {\"cpu\": {\"IMAGE_BUILD_ARGS\": {\"BASE_IMAGE\": $(python_text "$BASE_IMAGE")}}}")
  fi
  write_own "$MACHINE_CONF" <<CONF
"""What runs on this machine need: docs/configuration.md. It says what test_conf.py leaves open."""

$([ ${#lines[@]} = 0 ] && echo "# Nothing: the defaults do." || printf '%s\n' "${lines[@]}")
CONF
}

# Without containers: frameworks and monitors in a virtual environment of their own, installed as in the images.
prepare_processes() {
  make_venv "$WORK/venv"
  local framework install
  for framework in $(printf '%s\n' "${CASES[@]#*:}" | sort -u); do
    install=training/cpu/docker_image/$framework/${framework}_install.sh
    say "installing $framework into $WORK/venv"
    PATH=$WORK/venv/bin:$PATH once "$WORK/venv/flagperf-$framework" "$(sha256sum <"$install")" sh "$install" ||
      die "$framework could not be installed"
  done
  local case needed=(training/utils/monitors/requirements.txt)
  for case in "${CASES[@]/:/\/}"; do
    [ ! -f "training/benchmarks/$case/requirements.txt" ] || needed+=("training/benchmarks/$case/requirements.txt")
  done
  pip_install_files "$WORK/venv" "${needed[@]}"
  lines=('RUNTIME = "process"' "PROCESS_PYTHON = $(python_text "$WORK/venv/bin/python")")
}

# The lines of CASES: each demo on one host with two processes.
case_lines() {
  local key
  for key in "${CASES[@]}"; do
    printf '    "%s:cpu:1:2:1": %s,\n' "$key" "$(python_text "$WORK/${key%%:*}_demo")"
  done
}

write_config() {
  write_own "$WORK/config/cluster_conf.py" <<CONF
"""This machine alone."""

HOSTS = ["localhost"]
CONF
  write_own "$WORK/config/test_conf.py" <<CONF
"""Demos on this machine's processors. What this machine needs is said by $MACHINE_CONF."""

VENDOR = "cpu"
CASES = {
$(case_lines)
}

PIP_FROM_HOST = True
SHM_SIZE = "1G"
CASE_DEADLINE_HOURS = 1
FLAGPERF_PATH = $(python_text "$WORK/host")
FLAGPERF_LOG_PATH = $(python_text "$PWD/training/result")
CONF
}

set_up() {
  local model
  mkdir -p "$WORK/gemm_demo" # matrices are made where they are multiplied: it stays empty
  ensure_python # whatever apt must install for it comes before the engine's packages: apt takes one at a time
  begin runtime prepare_runtime
  begin python prepare_python
  finish python
  for model in "${MODELS[@]}"; do begin "data-$model" prepare_data "$model"; done
  finish "${MODELS[@]/#/data-}" runtime
  write_config
}

read_options "$@"
check_run_options
end_parts_with_script
set_up
say "set up in $SECONDS s (parts ran side by side; their logs are in $LOGS):"
stages
say "this run goes by $WORK/config, a start for your own; your own runs: cd training; ../.venv/bin/python run_benchmarks/run.py"
trap - EXIT INT TERM HUP
cd training
exec ../.venv/bin/python run_benchmarks/run.py --config "$WORK/config" "${RUN_OPTIONS[@]}"
