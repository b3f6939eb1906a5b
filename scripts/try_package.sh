#!/usr/bin/env bash
# scripts/try_package.sh: installs what scripts/package.sh made into a bare Debian 12 (a chroot that debootstrap fills: no compiler, none of
# the libraries that the build needs), first the tarball, then the wheel, and trains tiny GPT-2 there with each. Model and data come as files.
# Ends with 77 where this user may not do that. The root stays in build/bare-root for the next time; STEPS is 20.
set -euo pipefail
cd "$(dirname "$0")/.."
steps=${STEPS:-20}
root=$PWD/build/bare-root
tarball=$(ls build/package/deepstatic-*.tar.gz) wheel=$(ls build/package/deepstatic-*.whl)
python=build/venv/bin/python

PATH=$PATH:/usr/sbin
unshare --mount true 2>/dev/null || { echo "this user may neither mount nor change its root"; exit 77; }
command -v debootstrap >/dev/null || { echo "debootstrap is not there; apt-get install debootstrap"; exit 77; }
if [ ! -f "$root/.complete" ]; then
  rm -rf "$root"
  echo "filling build/bare-root with Debian 12's smallest set and python3-venv (some minutes)" >&2
  debootstrap --variant=minbase --include=python3,python3-venv bookworm "$root" >build/bare-root.log 2>&1 ||
    { tail -5 build/bare-root.log; rm -rf "$root"; exit 77; }
  touch "$root/.complete"
fi

# From outside: the export, the samples, the configuration.
try=$root/try
rm -rf "$try" "$root"/opt/*
mkdir -p "$try"
$python models/export.py gpt2 --size tiny --out "$try/gpt2" >/dev/null
$python models/prepare_data.py text /usr/share/common-licenses/GPL-3 --tokenizer bytes --seq 128 --out "$try/data.safetensors" >/dev/null
cp models/configs/gpt2-tiny.json "$try/ds_config.json"
cp "$tarball" "$wheel" "$try/"
cat >"$try/train.sh" <<TRAIN
set -eu
way=\$1
cd /try
ds-opt compile gpt2 --config ds_config.json --machine cpu -o \$way.dsplan
ds-opt verify \$way.dsplan
ds-run \$way.dsplan --data data.safetensors --steps $steps --metrics \$way.jsonl --export \$way.safetensors --quiet
TRAIN

inside() { # in a mount namespace that ends with the command, with nothing of this environment
  unshare --mount sh -c 'mount -t proc proc "$0/proc" && exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root chroot "$0" "$@"' "$root" "$@"
}
inside sh -c 'for tool in cc gcc c++ g++ clang ld as cmake protoc mpirun; do
  if command -v $tool; then echo "error: build/bare-root has $tool and is not bare"; exit 1; fi
done'

echo "--- $(basename "$tarball")"
inside sh -ec "tar -C /opt -xzf /try/$(basename "$tarball"); PATH=\$(echo /opt/deepstatic-*/bin):\$PATH; ds-run info; sh /try/train.sh tarball"
echo "--- $(basename "$wheel")"
inside sh -ec "python3 -m venv /opt/venv; /opt/venv/bin/pip install --quiet --no-index --disable-pip-version-check /try/*.whl
  PATH=/opt/venv/bin:\$PATH; sh /try/train.sh wheel"
cmp "$try/tarball.safetensors" "$try/wheel.safetensors"
$python - "$try" <<'CHECK'
import json, pathlib, sys
losses = {}
for way in ("tarball", "wheel"):
    lines = map(json.loads, (pathlib.Path(sys.argv[1]) / f"{way}.jsonl").read_text().splitlines())
    losses[way] = [line["loss"] for line in lines if "loss" in line]
first, last = losses["tarball"][0], losses["tarball"][-1]
if losses["wheel"] != losses["tarball"] or not last < first - 0.5:
    sys.exit(f"error: the losses are {losses}")
print(f"trained in a bare root: loss {first:.4f} to {last:.4f} in {len(losses['tarball'])} steps, the same bits by tarball and wheel")
CHECK
