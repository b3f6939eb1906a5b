"""The ds_config.json files of public examples: each compiles for tiny GPT-2, or is refused with the reason; what became of each is
docs/public-configs.md (DS_UPDATE_DOCS=1 writes it).

A file in public_configs/ holds the keys and values of a public file, whose project and path stand in its first line; spaces and order
are ours.
"""

import os
import re
import shlex

import pytest
from conftest import REPOSITORY

FOLDER = REPOSITORY / "test" / "e2e" / "public_configs"
PAGE = REPOSITORY / "docs" / "public-configs.md"
TRIES = 4  # lines to try, one after the other
INTRODUCTION = """<!-- Written by test/e2e/test_public_configs.py (DS_UPDATE_DOCS=1); do not edit. -->
# Public configurations, and what becomes of them

`ds-opt compile gpt2 --config FILE --ranks 2`, for tiny GPT-2, with `--dim batch=2` where the file says `"auto"` for the micro-batch. "As it
is" has the reasons of a refusal without their line numbers; the last column has the flags that ds-opt's `try:` lines ask for, with which the file
compiles. [config.md](config.md) says what each `"auto"` stands for.

"""


def compiled(tools, model, config, output, flags):
    """None, or (reasons, flags to try)."""
    done = tools("ds-opt", "compile", model, "--config", config, "--ranks", 2, "--quiet", *flags, "-o", output, code=None)
    if done.returncode == 0:
        return None
    assert done.returncode == 1, done.stderr
    reasons = re.findall(r"^(?:error: |  also: )(.*)$", done.stderr, re.MULTILINE)
    line = re.search(r"^try: (.*)$", done.stderr, re.MULTILINE)
    return [re.sub(r"^.*\.json:(\d+:)? ", "", reason) for reason in reasons], shlex.split(line.group(1)) if line else []


def batch_of(config):
    """The flags that say how many samples a micro-batch has, where the file does not."""
    return ["--dim", "batch=2"] if re.search(r'"train_micro_batch_size_per_gpu": "auto"', config.read_text()) else []


def what_became_of(tools, model, config, folder, *options):
    """(reasons of the first refusal, flags that make it compile, reasons of the last refusal where none do)."""
    given = [*options, *batch_of(config)]
    first, tried = None, []
    for _ in range(TRIES):
        refusal = compiled(tools, model, config, folder / "plan", given + tried)
        if refusal is None:
            return first or [], tried, []
        reasons, flags = refusal
        assert reasons
        first = first or reasons
        if not flags or set(flags) - {"--set"} <= set(tried):
            break
        tried += flags
    return first, tried, reasons


def lines(reasons):
    return "<br>".join(reason.replace("|", "\\|") for reason in reasons)


def row(config, reasons, flags, last):
    project, path = config.read_text().splitlines()[0].removeprefix("# ").split(" ")
    as_it_is = lines(reasons) or "compiles"
    tried = f"`{' '.join(flags)}`" if flags else ""
    if last:
        tried = "none" if last == reasons else f"refused with {tried}, too: {lines(last)}"
    return f"| `{project}/{path}` | {as_it_is} | {tried} |\n"


def test_each_compiles_or_is_refused_with_the_reason(tools, exported, tmp_path):
    model = exported("gpt2", "--size=tiny", "--seq=8")
    configs = sorted(FOLDER.glob("*.json"))
    assert len(configs) >= 20
    became = {config: what_became_of(tools, model, config, tmp_path) for config in configs}
    count = sum(not reasons for reasons, _, _ in became.values())
    refused = sum(bool(last) for _, _, last in became.values())
    page = INTRODUCTION + f"{len(configs)} files: {count} compile as they are, " \
        f"{sum(bool(reasons) and not last for reasons, _, last in became.values())} with the flags that ds-opt names, " \
        f"{refused} {'does' if refused == 1 else 'do'} not.\n\n| file | as it is | with |\n|---|---|---|\n"
    page += "".join(row(config, *what) for config, what in became.items())
    if os.environ.get("DS_UPDATE_DOCS"):
        PAGE.write_text(page)
    assert PAGE.read_text() == page, "docs/public-configs.md is out of date; DS_UPDATE_DOCS=1 writes it"


@pytest.mark.parametrize("name", ["qwen-zero2", "dolly-a100"])
def test_the_second_reading_agrees(tools, exported, tmp_path, name):
    model, config = exported("gpt2", "--size=tiny", "--seq=8"), FOLDER / f"{name}.json"
    tools("ds-opt", "compile", model, "--config", config, "--ranks", 2, "--dim", "batch=2", "-o", tmp_path / "plan")
    tools("ds-opt", "verify", tmp_path / "plan", "--model", model, "--config", config)
