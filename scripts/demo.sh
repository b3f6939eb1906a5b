#!/usr/bin/env bash
# Installs what is missing, builds the release tools, then runs scripts/demo.py.
set -euo pipefail
cd "$(dirname "$0")/.."
bash scripts/install.sh
bash scripts/build.sh release ds-opt ds-run >build/demo-build.log 2>&1 || { tail -40 build/demo-build.log >&2; exit 1; }
exec build/venv/bin/python scripts/demo.py
