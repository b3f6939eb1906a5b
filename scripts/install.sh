#!/usr/bin/env bash
# Installs what is missing on Debian 12: packages of scripts/packages.txt, and build/venv from models/requirements.txt.
#   scripts/install.sh build    packages only
#   scripts/install.sh          packages and build/venv
set -euo pipefail
cd "$(dirname "$0")/.."

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

missing=()
while read -r package; do
  case "$package" in '' | '#'*) continue ;; esac
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q '^install ok installed' || missing+=("$package")
done <scripts/packages.txt
if [ "${#missing[@]}" -gt 0 ]; then
  echo "installing ${#missing[@]} Debian packages: ${missing[*]}" >&2
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
[ "${1:-}" = build ] && exit 0

# The stamp holds the requirements that build/venv was made from.
if ! cmp -s models/requirements.txt build/venv/.requirements; then
  echo "making build/venv from models/requirements.txt (torch is some 200 MB)" >&2
  [ -x build/venv/bin/python ] || python3 -m venv build/venv
  # torch first: with its CPU build there, nothing else asks for a larger one.
  build/venv/bin/pip install --quiet --disable-pip-version-check "$(grep '^torch==' models/requirements.txt)"
  build/venv/bin/pip install --quiet --disable-pip-version-check -r models/requirements.txt
  cp models/requirements.txt build/venv/.requirements
fi
