"""The hand-written pages stay true: links lead somewhere, paths and code names exist, and pages keep their sentences short.

Pages are all tracked .md files. Needs no build.
"""

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
LONGEST = 38  # words of a sentence
QUOTES = {"docs/architectures.md"}  # where sentences are not counted: most are what ds-opt says of a model

LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"\w+/[\w./-]*\w/?")
LIT = re.compile(r"(?:dialects|export|import|passes|pipelines|report)/[\w/-]+\.mlir")


@cache
def tracked() -> list[str]:
    return subprocess.run(["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout.split()


def pages() -> list[Path]:
    return [REPOSITORY / name for name in tracked() if name.endswith(".md")]


@cache
def folders() -> set[str]:
    """Of the repository, at its root."""
    return {name.split("/")[0] for name in tracked() if "/" in name}


@cache
def prose(page: Path) -> str:
    """A page without its code blocks and comments."""
    text = re.sub(r"<!--.*?-->", "", page.read_text(), flags=re.S)
    return re.sub(r"^\s*```.*?^\s*```", "", text, flags=re.S | re.M)


@cache
def anchors(page: Path) -> set[str]:
    """What may stand behind the # of a link to a page: its headings, spelled as GitHub does."""
    found: dict[str, int] = {}
    for heading in re.findall(r"^#+ +(.*?) *$", prose(page), flags=re.M):
        words = re.sub(r"[^\w\- ]", "", LINK.sub(r"\1", heading).lower()).replace(" ", "-")
        found[words] = found.get(words, -1) + 1
        if found[words]:
            found[f"{words}-{found[words]}"] = 0
    return set(found)


def wrong_links(page: Path) -> list[str]:
    wrong = []
    for text, target in LINK.findall(prose(page)):
        if re.match(r"\w+:", target):
            continue  # of the web
        name, _, anchor = target.partition("#")
        there = (page.parent / name).resolve() if name else page
        if not there.exists():
            wrong.append(f"{target}: there is no such file")
        elif anchor and there.suffix == ".md" and anchor not in anchors(there):
            wrong.append(f"{target}: {there.name} has no such heading")
        elif (code := re.fullmatch(r"`([\w:]+)`", text)) and there.is_file() and not re.search(rf"\b{code[1]}\b", there.read_text()):
            wrong.append(f"{target}: {text} does not occur there")
    return wrong


def wrong_paths(page: Path) -> list[str]:
    """Of the repository, named in backticks; `passes/x.mlir` is short for one of test/lit."""
    paths = [f"test/lit/{name}" if LIT.fullmatch(name) else name for name in CODE.findall(prose(page)) if PATH.fullmatch(name)]
    return [path for path in paths if path.split("/")[0] in folders() and not (REPOSITORY / path).exists()]


def sentences(text: str):
    """Of paragraphs and list items; a piece of code counts as one word, tables and headings do not count."""
    text = re.sub(r"^ *(\||#).*$", "", text, flags=re.M)
    text = CODE.sub("code", LINK.sub(r"\1", text))
    for block in re.split(r"\n\s*\n|\n *(?:[-*]|\d+\.) +", text):
        yield from re.split(r"(?<=[.?!])\s+", " ".join(block.split()))


def long_sentences(page: Path) -> list[str]:
    return [f"{len(s.split())} words: {s}" for s in sentences(prose(page)) if len(s.split()) > LONGEST]


def test_scripts_run_by_their_names():
    files = [REPOSITORY / name for name in tracked() if (REPOSITORY / name).is_file()]
    assert not [str(file) for file in files if not file.stat().st_mode & 0o100 and file.open("rb").read(2) == b"#!"]


@pytest.mark.parametrize("check", [wrong_links, wrong_paths])
def test_pages_name_what_is_there(check):
    wrong = {str(page.relative_to(REPOSITORY)): found for page in pages() if (found := check(page))}
    assert not wrong


def test_sentences_are_short():
    counted = [page for page in pages() if page.parent in (REPOSITORY, REPOSITORY / "docs") and str(page.relative_to(REPOSITORY)) not in QUOTES]
    counted.append(REPOSITORY / "docs" / "reference" / "passes.md")
    assert len(counted) > 40
    assert not {page.name: found for page in counted if (found := long_sentences(page))}


def test_the_checks_can_fail(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# A heading\n[here](#a-heading) [gone](gone.md) [nowhere](#another) [`LongestName`](page.cpp) [`main`](page.cpp)\n"
        "`docs/gone.md` `passes/gone.mlir`\n\n```\n[code](is-no-link.md)\n```\n| tables " + "count not " * 30 + "|\n\n" + "word " * 39 + "end.\n"
    )
    (tmp_path / "page.cpp").write_text("int main() {}\n")
    assert [line.split(":")[0] for line in wrong_links(page)] == ["gone.md", "#another", "page.cpp"]
    assert wrong_paths(page) == ["docs/gone.md", "test/lit/passes/gone.mlir"]
    assert [line.split(":")[0] for line in long_sentences(page)] == ["40 words"]


def test_every_page_is_in_the_sites_contents():
    """mkdocs.yml names the pages in their order; those of the museum and the reference are behind their first."""
    nav = (REPOSITORY / "mkdocs.yml").read_text()
    assert [name for name in tracked() if re.fullmatch(r"docs/[^/]+\.md", name) and name not in nav] == []


def test_the_gallery_links_to_six_reports():
    """`make docs-site` puts a link under each heading of docs/gallery.md, to the page that the lines there write."""
    import sys
    sys.path.insert(0, str(REPOSITORY / "scripts"))
    import gallery
    page = gallery.PAGE.read_text()
    reports = gallery.REPORT.findall(page)
    assert len(reports) == len(set(reports)) == 6
    linked = gallery.linked(page)
    assert re.findall(r"^## .+\n\[Open the report\]\(gallery/(.+)\)\n\n", linked, re.M) == reports
    assert linked.replace("[Open the report]", "").count("\n$ ") == page.count("\n$ ") == gallery.script(page).count("ds-opt") + 3
