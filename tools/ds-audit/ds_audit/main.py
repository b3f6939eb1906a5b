"""The command line: usage, one line of result, exit codes 0 (agrees), 1 (refused), 2 (nothing to audit)."""

import argparse
import sys
from pathlib import Path

from .comparison import audit
from .plans import Refusal, Unusable, of_sizes, read_plan
from .sources import compare_sources


class Usage(argparse.ArgumentParser):
    def error(self, message):
        raise Unusable(f"{message}; {' '.join(self.format_usage().split())}")


def parse(arguments):
    parser = Usage(prog="ds-audit", description="Executes a plan of all ranks and its reference program over a finite field, and compares.")
    parser.add_argument("plan", metavar="PLAN")
    parser.add_argument("--model", help="the folder of model.onnx: compare the reference program with it, too")
    parser.add_argument("--config", help="ds_config.json: compare the optimizer's settings, too")
    parser.add_argument("--orders", type=int, default=2, help="random orders of commands to run, at least 1 (2)")
    parser.add_argument("--seed", type=int, default=1, help="of all random numbers (1)")
    options = parser.parse_args(arguments)
    if options.orders < 1:
        parser.error(f"--orders is {options.orders}; it must be at least 1")
    return options


def main(arguments):
    try:
        options = parse(arguments)
        plan = read_plan(options.plan)
        counts = audit(plan, Path(options.plan).parent, options.orders, options.seed)
        compared = [compare_sources(one, Path(options.plan).parent, options.model, options.config) for one in of_sizes(plan)][0]
        print(f"audited: {sum(last - first + 1 for role in plan.roles for first, last in zip(role.ranks[::2], role.ranks[1::2]))} ranks, "
              f"{counts['runs']} runs in {options.orders} orders, {counts['commands']} commands; {counts['elements']} elements of variables "
              f"and {counts['metrics']} metrics are the reference program's" + f"; {', '.join(compared)} are the sources'" * bool(compared))
        return 0
    except Unusable as reason:
        print(f"error: {reason}", file=sys.stderr)
        return 2
    except Exception as error:  # a Refusal, or a plan that contradicts itself where no rule looks
        why = error if isinstance(error, Refusal) else f"it cannot be executed ({type(error).__name__}: {error})"
        print(f"error: plan {options.plan} is refused by ds-audit: {why}", file=sys.stderr)
        return 1
