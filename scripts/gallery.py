#!/usr/bin/env python3
"""Builds the plans and report pages of docs/gallery.md for the site: scripts/gallery.py PAGES_OF_THE_SITE

Runs the page's `$` lines, with ds-opt of build/release or else of build/dev, in a folder of its own; puts what `--html` wrote into docs/gallery/
there, and a link to it under each heading of the site's copy of the page.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
PAGE = REPOSITORY / "docs" / "gallery.md"
REPORT = re.compile(r"--html (\S+\.html)")


def script(text: str) -> str:
    """The lines after `$`, and what continues them."""
    blocks = re.findall(r"^```\n(.*?)^```", text, re.M | re.S)
    return "".join(re.sub(r"^\$ ", "", block, flags=re.M) for block in blocks)


def linked(text: str) -> str:
    """The page with a link under the heading of each section that writes a report."""
    head, *sections = re.split(r"^(?=## )", text, flags=re.M)
    return head + "".join(section.replace("\n", f"\n[Open the report](gallery/{found[1]})\n\n", 1) if (found := REPORT.search(section)) else section
                          for section in sections)


def main(site: str) -> None:
    binaries = [REPOSITORY / "build" / preset / "bin" for preset in ("release", "dev")]
    tools = next((folder for folder in binaries if (folder / "ds-opt").exists()), None)
    if tools is None:
        sys.exit("error: docs/gallery.md needs ds-opt, which is not built; run make build")
    text, out = PAGE.read_text(), Path(site) / "docs" / "gallery"
    out.mkdir(parents=True, exist_ok=True)
    path = os.pathsep.join([str(tools), str(REPOSITORY / "build" / "venv" / "bin"), os.environ["PATH"]])
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(REPOSITORY / "models", Path(folder) / "models")
        done = subprocess.run(["bash", "-e", "-c", script(text)], cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"error: the lines of docs/gallery.md failed: {done.stderr}")
        for page in REPORT.findall(text):
            shutil.copy(Path(folder) / page, out)
    (Path(site) / "docs" / "gallery.md").write_text(linked(text))


if __name__ == "__main__":
    main(*sys.argv[1:])
