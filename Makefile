# Thin on purpose: every target is a script or a CMake preset.
.PHONY: demo test test-all nightly proof soak test-gpu gpu-first gpu-pack build bench docs docs-site format install package clean
PREFIX ?= /usr/local

demo:
	@bash scripts/demo.sh
test:
	@bash scripts/test.sh subset
test-all:
	@bash scripts/test.sh all
nightly:
	@bash scripts/nightly.sh
test-gpu:
	@bash scripts/test_gpu.sh
gpu-first:
	@bash scripts/gpu_first.sh
gpu-pack: # build/gpu-pack.tar.gz: all that gpu-first and test-gpu need, for a machine with a GPU and nothing else
	@bash scripts/pack_gpu.sh
build:
	@bash scripts/install.sh build
	@bash scripts/build.sh release
bench:
	@bash scripts/bench.sh
proof: # one table of SHA-256 of final weights over all strategies
	@bash scripts/install.sh
	@bash scripts/build.sh release
	@build/venv/bin/python scripts/proof.py
soak:
	@bash scripts/soak.sh
docs:
	@bash scripts/docs.sh
docs-site: build # the pages with search and a gallery of plans, build/site
	@bash scripts/docs_site.sh
format:
	@bash scripts/format.sh --fix
install: build
	cmake --install build/release --prefix $(PREFIX)
package:
	@bash scripts/package.sh
clean:
	rm -rf build
