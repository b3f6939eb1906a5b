#!/usr/bin/env bash
# scripts/nightly.sh [PART...]: what make test leaves out; all parts by default.
#   all      every test, with longer draws
#   release  end-to-end tests with the binaries that users get
#   soak     the simulation under DS_SOAK_SEEDS seeds, 100,000 by default, and DS_SOAK_DRAWS drawn models and configurations, 50,000 by default
#   fuzz     every fuzzer for DS_FUZZ_SECONDS, 3,600 by default
# The last lines are each part's totals, its last line; build/reports/nightly-PART.log has the rest. The exit code says whether one failed.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- all release soak fuzz

run_part() { # joined by &&: as a condition, it does not end at the first failure by itself
  case $1 in
  all) DS_START_STOPS=1000 bash scripts/test.sh all ;;
  release)
    bash scripts/install.sh && bash scripts/build.sh dev && bash scripts/build.sh release &&
      build/venv/bin/python scripts/run_tests.py release
    ;;
  soak) bash scripts/soak.sh "${DS_SOAK_SEEDS:-100000}" "${DS_SOAK_DRAWS:-50000}" ;;
  fuzz) bash scripts/build.sh asan sanitized-tests && python3 scripts/fuzz.py --seconds "${DS_FUZZ_SECONDS:-3600}" ;;
  *)
    echo "there is no part $1, only all, release, soak and fuzz"
    return 2
    ;;
  esac
}

mkdir -p build/reports
code=0
totals=()
for part in "$@"; do
  log=build/reports/nightly-$part.log
  ending=
  run_part "$part" 2>&1 | tee "$log" || { code=1 ending=', FAILED'; }
  totals+=("nightly $part: $(tail -n 1 "$log")$ending")
done
printf '%s\n' "${totals[@]}"
exit $code
