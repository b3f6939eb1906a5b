#!/usr/bin/env python3
"""What the flight recorder costs: processor seconds of steps of tiny GPT-2 with it and without, in turns, by `flight-cost`.

A tiny model on 2 ranks with ZeRO 3 has many short commands, so this is about the most that it can cost.
"""

import argparse
import subprocess

import ranks
import rounds

WORK = ranks.ROOT / "build" / "bench" / "flight"
MODEL = ["gpt2", "--size", "tiny", "--seq", "16"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200, help="of a round")
    parser.add_argument("--rounds", type=int, default=7, help="with the recorder and without, in turns")
    parser.add_argument("--timeout", type=float, default=600, help="seconds that all rounds may take")
    arguments = parser.parse_args()
    rounds.require_tools("flight-cost")
    ranks.make_work(WORK, MODEL, vocabulary=37, samples=64, seq=16)
    config = {"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 2, "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}},
              "zero_optimization": {"stage": 3, "overlap_comm": True}}
    ranks.compile_plan(WORK, config, WORK / "plan.dsplan")
    subprocess.run([rounds.BIN / "flight-cost", WORK / "plan.dsplan", WORK / "data.safetensors", str(arguments.steps), str(arguments.rounds)],
                   check=True, timeout=arguments.timeout)


if __name__ == "__main__":
    main()
