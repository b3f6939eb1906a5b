"""docs/drawn.md: what the draws of `make test` are made of, and what draws have found."""

from itertools import combinations

import configs
from found import FOUND

HEAD = """<!-- Written by test/e2e/test_drawn.py (DS_UPDATE_DOCS=1); do not edit. What was found stands in test/drawn/found.py. -->
# Drawn work: every legal configuration gets a plan

`test/drawn` draws models and configurations from a seed. Each draw is compiled, and ds-opt's checker looks at each plan. A draw ends in a plan, or in the sentence of
a rule that only the model can break (`test/drawn/rules.py`), within {longest} s of the processor. Anything else is a fault: a plan that the checker refuses, an internal error, a crash.
A sample trains {steps} steps beside one rank: the same losses, and the same bits of weights where the plan says "bit-equal".

```
$ build/venv/bin/python test/drawn/draw.py --count 2000 --seed 1 --run 100    # needs the build and minutes; make test does this
$ build/venv/bin/python test/drawn/draw.py --seed 1 --only 17                 # needs the build; one draw again, and the smallest with its fault
```
`make soak` draws 50,000. The number of a draw and the seed say all of it. A fault is printed once for each kind, made small: first keys are left out, then blocks of the
model, then sizes shrink, as long as a fault of that kind remains. The line to call ds-opt with stands beside it.

**Models** are ONNX graphs made in a millisecond from a few values (`test/drawn/models.py`), and some exported once by `models/export.py`. **Configurations** have every key that
[config.md](config.md) calls honoured. Each draw is given one pair of values; others join it, few or many. `test/drawn/configs.py` knows which stand together.

"""


PLANTED_HEAD = """
## Planted bugs
`test/drawn/planted.py` has edits of passes, each a bug. `make test-all` plants each in a copy of the sources, and draws have to find it within 5,000. What they found last:

| bug | what it does | draw | what is seen |
|---|---|---|---|
"""


def planted(rows) -> str:
    """The section of bugs, of (name, what it does, number, sentence)."""
    return PLANTED_HEAD + "".join(f"| `{name}` | {what} | {number} | {seen} |\n" for name, what, number, seen in rows)


def page(table, count, seed, longest, steps, bugs) -> str:
    """The page for `count` draws of `seed`, whose counts are in `table`; `bugs` is its last section."""
    keys = {frozenset((a[0], b[0])) for a, b in configs.pairs()}
    drawn = {frozenset((a[0], b[0])) for a, b in table.pairs}
    pairs = {frozenset(map(str, pair)) for pair in configs.pairs()} & {frozenset(map(str, pair)) for pair in table.pairs}
    lines = [HEAD.format(longest=longest, steps=steps),
             f"## What {count:,} draws of seed {seed} hold\n",
             f"Of {len(keys):,} pairs of keys that can stand together {len(keys & drawn):,} do, and of {len(configs.pairs()):,} pairs of values "
             f"{len(pairs):,}.\n",
             "| family or exported model | draws |\n|---|---|",
             *(f"| {name} | {number} |" for name, number in sorted(table.families.items(), key=lambda item: (-item[1], item[0]))),
             "\n| block of a drawn model | draws |\n|---|---|",
             *(f"| {name} | {number} |" for name, number in sorted(table.blocks.items(), key=lambda item: (-item[1], item[0]))),
             "\n| key or flag | values, and draws with each |\n|---|---|"]
    for axis, values in configs.AXES.items():
        lines.append(f"| `{axis}` | {', '.join(f'{value} ({table.values[axis, value]})' for value in values)} |")
    lines += ["\n## What was found\n", "| drawn | what came of it | what was wrong | what changed |\n|---|---|---|---|",
              *(f"| {' | '.join(row)} |" for row in FOUND), ""]
    return "\n".join(lines) + bugs


def missing_pairs(table) -> list:
    """Pairs of keys that can stand together and were not drawn."""
    drawn = {frozenset((a[0], b[0])) for a, b in table.pairs}
    return [pair for pair in combinations(configs.AXES, 2)
            if frozenset(pair) not in drawn and frozenset(pair) in {frozenset((a[0], b[0])) for a, b in configs.pairs()}]
