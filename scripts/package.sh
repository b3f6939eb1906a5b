#!/usr/bin/env bash
# scripts/package.sh: makes build/package/deepstatic-VERSION-linux-x86_64.tar.gz and a Python wheel of the same files, for machines without
# a compiler: Debian 12, and whatever has its C library or a newer one. The same input gives the same bytes.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(sed -n 's/^project(DeepStatic VERSION \([0-9.]*\) .*/\1/p' CMakeLists.txt)
name=deepstatic-$version-linux-$(uname -m)
out=build/package
tree=$out/tree/$name

bash scripts/install.sh build
bash scripts/build.sh release ds-opt ds-run >&2
rm -rf "$out"
mkdir -p "$tree"
cmake --install build/release --prefix "$tree" --strip >/dev/null
if [ -f build/cuda/CMakeCache.txt ]; then
  bash scripts/build.sh cuda DSCuda >&2
  cmake --install build/cuda --prefix "$tree" --component cuda --strip >/dev/null
else
  echo "without libds-cuda.so: there is no build/cuda (scripts/install-cuda.sh, scripts/build.sh cuda)" >&2
fi

# What the tools load and a bare machine may lack lies beside them, with its terms; scripts/package_needs.py says what may not.
licences=$tree/share/deepstatic/licences
mkdir -p "$licences"
python3 scripts/package_needs.py --bundle "$tree" | while read -r library; do
  cp -L "$library" "$tree/lib/"
done
for package in libmlir-22-dev libprotobuf-dev libssl-dev liburing-dev libcli11-dev nlohmann-json3-dev libdnnl2 libgomp1 ocl-icd-libopencl1; do
  cp -L "/usr/share/doc/$package/copyright" "$licences/$package"
done
python3 scripts/package_needs.py "$tree"
find "$tree" -type d -exec chmod 755 {} +
find "$tree" -type f ! -perm -u+x -exec chmod 644 {} + -o -type f -perm -u+x -exec chmod 755 {} +

tar -C "$out/tree" --sort=name --mtime=@315532800 --owner=0 --group=0 --numeric-owner --format=gnu -c "$name" | gzip -9n >"$out/$name.tar.gz"
python3 scripts/make_wheel.py "$tree" "$version" "$out"
rm -r "$out/tree"
ls -l "$out" | awk 'NR > 1 {print $9 ": " $5 " bytes"}'
