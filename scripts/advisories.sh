#!/usr/bin/env bash
# Known vulnerabilities of the packages that FlagPerf installs, by PyPI's advisories: pip-audit, in an environment of its own.
#
#   scripts/advisories.sh [options of pip-audit]
#
# It ends with 1 where there is one, or where they cannot be had, and needs the network. Frameworks are the images' own.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
NAME="advisories"
# shellcheck source=scripts/machine.sh
. scripts/machine.sh

make_venv .venv-audit
.venv-audit/bin/pip install --quiet "pip-audit>=2.9,<3"
files=()
for file in training/requirements.txt training/run_benchmarks/exports/requirements.txt training/utils/monitors/requirements.txt training/benchmarks/*/prepare/requirements.txt; do
  files+=(--requirement "$file")
done
# --strict: a package of which nothing can be had is no package that is safe
exec .venv-audit/bin/pip-audit --strict --progress-spinner off "${files[@]}" "$@"
