#!/usr/bin/env bash
# bench/build_time.sh [REVISION]: how long a cold `make build` takes here, and its ten longest files, without a compiler cache.
# It builds a copy of the working tree, or REVISION, in a scratch folder and leaves build/ alone.
#   bench/build_time.sh; bench/build_time.sh main~20
# Wall time grows with whatever else runs; seconds of the processor tell two busy measurements apart.
set -euo pipefail
cd "$(dirname "$0")/.."
revision=${1:-}
bash scripts/install.sh build # packages are no part of what is measured
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
if [ -n "$revision" ]; then
  git archive "$revision" | tar -x -C "$scratch"
else
  # Deleted files are still listed until the deletion is staged.
  git ls-files -z --cached --others --exclude-standard | xargs -0 sh -c 'for f; do [ ! -e "$f" ] || printf "%s\0" "$f"; done' _ |
    tar -c --null -T - | tar -x -C "$scratch"
fi
mkdir -p "$scratch/build"
load=$(cut -d' ' -f1 /proc/loadavg)
TIMEFORMAT='%R %U %S'
spent=$({ time CCACHE_DISABLE=1 make -C "$scratch" build >"$scratch/log.txt" 2>&1; } 2>&1) ||
  { tail -40 "$scratch/log.txt" >&2; exit 1; }
read -r wall user system <<<"$spent"
awk -v wall="$wall" -v user="$user" -v system_="$system" -v cores="$(nproc)" -v load="$load" -v of="${revision:-the working tree}" \
  'BEGIN { printf "%s: make build %d s, %d s of the processor, on %d cores (load %s before)\n", of, wall, user + system_, cores, load }'
# start, end (ms), time, output, hash
awk -F'\t' '$4 ~ /\.(o|gch|pch)$/ { printf "%6.1f s  %s\n", ($2 - $1) / 1000, $4 }' "$scratch/build/release/.ninja_log" |
  sort -rn | sed -n '1,10{s|CMakeFiles/[^/]*\.dir/||;s|\.o$||;p}'
