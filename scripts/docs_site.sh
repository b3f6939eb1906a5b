#!/usr/bin/env bash
# scripts/docs_site.sh: the tracked pages, their pictures and the plans of docs/gallery.md as a site with search in build/site. A browser searches what is served, as by
# `python3 -m http.server -d build/site`, and not plain files. Its tools are in a venv of their own.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=build/docs-venv
[ -x "$venv/bin/mkdocs" ] || { python3 -m venv "$venv" && "$venv/bin/pip" install --quiet --disable-pip-version-check mkdocs-material==9.8.2; }
rm -rf build/site-pages
git ls-files '*.md' '*.svg' '*.png' | while read -r page; do
  mkdir -p "build/site-pages/$(dirname "$page")"
  cp "$page" "build/site-pages/$page"
done
build/venv/bin/python scripts/gallery.py build/site-pages
NO_MKDOCS_2_WARNING=1 "$venv/bin/mkdocs" build --quiet --strict
echo "build/site: $(find build/site -name '*.html' | wc -l) pages"
