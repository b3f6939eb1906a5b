#!/usr/bin/env python3
"""Runs the example of each pass: the mlir block of its description in compiler/passes/*/Passes.td.

    %t = train.transpose %w by [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
    // becomes with option=1
    %y = train.matmul %x, %w transposed ...          // a remark

ds-opt runs the pass on what stands above `// becomes`; FileCheck compares its output, line by line, with what stands below. There a
%name is the argument of that name, or any value, the same wherever it stands again. `...` is anything: within a line, or lines.

What a page need not show (declarations, the function around the block) stands in test/e2e/pass_examples/FLAG.mlir; the block replaces its
line `// EXAMPLE`. Where that line fills a function or fragment, what the block becomes must fill it too.

Usage: pass_examples.py DS_OPT FILECHECK [FLAG...]; for each example that is wrong FileCheck's words.
"""

import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
SURROUNDINGS = REPOSITORY / "test" / "e2e" / "pass_examples"
PASS = re.compile(r'^def \w+\s*:\s*DsPass<"([\w-]+)"((?:(?!^def ).)*)', re.S | re.M)
BLOCK = re.compile(r"```mlir\n(.*?)```", re.S)
BECOMES = re.compile(r"\s*// becomes(?: with (.*))?")
VALUE = re.compile(r"%(\w+)")
# They change nothing, so they have no example.
VERIFIERS = {"ds-verify-simple-form", "ds-verify-train-form", "ds-verify-dist-form", "ds-verify-overlapped-form", "ds-verify-plan-form"}


@dataclass
class Example:
    before: list[str]
    options: str
    after: list[str]


def descriptions(folder: Path = REPOSITORY / "compiler" / "passes") -> dict[str, str]:
    """Of every pass that changes something, by its flag: all of its definition."""
    found = {flag: text for file in sorted(folder.glob("*/Passes.td")) for flag, text in PASS.findall(file.read_text())}
    return {flag: text for flag, text in found.items() if flag not in VERIFIERS}


def example(description: str) -> Example:
    """The one of a description; ValueError says what is missing."""
    blocks = BLOCK.findall(description)
    if len(blocks) != 1:
        raise ValueError(f"the description has {len(blocks)} mlir blocks; one is needed")
    lines = blocks[0].splitlines()
    at = [i for i, line in enumerate(lines) if BECOMES.fullmatch(line)]
    if len(at) != 1:
        raise ValueError(f"the mlir block has {len(at)} lines `// becomes`; one is needed")
    after = [line for line in map(without_remark, lines[at[0] + 1:]) if line]
    if not any(line != "..." for line in after):
        raise ValueError("nothing stands below `// becomes`")
    return Example(lines[:at[0]], BECOMES.fullmatch(lines[at[0]])[1] or "", after)


def without_remark(line: str) -> str:
    return re.sub(r"\s*//.*", "", line).strip()


def surrounded(flag: str, before: list[str]) -> tuple[str, list[str], list[str]]:
    """The input of ds-opt; the lines just above and below the block where it fills a function or fragment, else none."""
    file = SURROUNDINGS / f"{flag}.mlir"
    lines = file.read_text().splitlines() if file.exists() else ["// EXAMPLE"]
    at = [i for i, line in enumerate(lines) if line.strip() == "// EXAMPLE"]
    if len(at) != 1:
        raise ValueError(f"{file.name} has {len(at)} lines `// EXAMPLE`; one is needed")
    above, below = lines[:at[0]], lines[at[0] + 1:]
    header = re.match(r"\s*(func\.func|dist\.fragment) @[\w\"]+", above[-1]) if above else None
    filled = header and re.match(r"\s*(return|\})", below[0])
    return ("\n".join(above + before + below) + "\n", [header[0].strip()] if filled else [], [below[0].strip()] if filled else [])


def arguments(program: str, header: list[str]) -> dict[str, str]:
    """The printed names of the arguments of the function that the block fills: %x is %arg0."""
    if not header:
        return {}
    signature = program[program.index(header[0]):].split("\n", 1)[0]
    return {name: f"arg{i}" for i, name in enumerate(re.findall(r"%(\w+):", signature))}


def checks(lines: list[str], arguments: dict[str, str]) -> str:
    """FileCheck's directives for lines that follow one another, but at `...`."""
    known, directives, kind = set(), [], "CHECK"

    def value(match) -> str:
        name = match[1]
        if name in arguments:
            return f"%{arguments[name]}"
        pattern = f"[[v_{name}]]" if name in known else f"[[v_{name}:[a-z0-9_]+]]"
        known.add(name)
        return f"%{pattern}"

    for line in lines:
        if line == "...":
            kind = "CHECK"
            continue
        directives.append(f"// {kind}: {{{{^ *}}}}{VALUE.sub(value, line).replace('...', '{{.*}}')}{{{{$}}}}")
        kind = "CHECK-NEXT"
    return "\n".join(directives) + "\n"


def run(flag: str, description: str, ds_opt: Path, filecheck: Path) -> str:
    """What is wrong with a pass' example; empty if nothing is."""
    try:
        given = example(description)
        program, above, below = surrounded(flag, given.before)
    except ValueError as error:
        return str(error)
    call = f"--{flag}={given.options}" if given.options else f"--{flag}"
    done = subprocess.run([ds_opt, call], input=program, capture_output=True, text=True)
    if done.returncode:
        return f"ds-opt refuses the example:\n{done.stderr}"
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
        file.write(checks([line + "..." for line in above] + given.after + below, arguments(program, above)))
        file.flush()
        compared = subprocess.run([filecheck, file.name, "--dump-input=never"], input=done.stdout, capture_output=True, text=True)
    return f"{compared.stderr}\nds-opt's output:\n{done.stdout}" if compared.returncode else ""


def main() -> int:
    ds_opt, filecheck, *flags = sys.argv[1:]
    wrong = False
    for flag, description in descriptions().items():
        if flags and flag not in flags:
            continue
        if said := run(flag, description, Path(ds_opt), Path(filecheck)):
            wrong = True
            print(f"{flag}: {said}")
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
