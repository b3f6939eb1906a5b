#!/usr/bin/env python3
"""plan_seeds.py [--bin build/dev/bin]: compiles the plans that PlanReaderFuzzer begins with, test/fuzz/plan-reader/corpus/gpt2-*.message,
anew, as after a change of plan.proto. What is built by hand there is written by DS_UPDATE_DOCS=1 PlanReaderTest --gtest_filter='PlanSeeds.*'."""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CORPUS = ROOT / "test" / "fuzz" / "plan-reader" / "corpus"
MODEL = ROOT / "test" / "e2e" / "hazards" / "good-gpt2"
HEADER_BYTES = 24  # of a plan file, before the message
SEEDS = {"gpt2-one-rank": (1, {"train_micro_batch_size_per_gpu": 1}),
         "gpt2-zero3": (2, {"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 2, "zero_optimization": {"stage": 3}})}
OPTIMIZER = {"type": "AdamW", "params": {"lr": 1e-3}}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=Path, default=ROOT / "build" / "dev" / "bin", help="folder of ds-opt")
    tools = parser.parse_args().bin
    for name, (ranks, config) in SEEDS.items():
        with tempfile.TemporaryDirectory(dir=CORPUS.parent) as folder:  # paths of weights are relative to it
            written, plan = Path(folder) / "ds_config.json", Path(folder) / "seed.dsplan"
            written.write_text(json.dumps({**config, "optimizer": OPTIMIZER}))
            subprocess.run([tools / "ds-opt", "compile", MODEL, "--config", written, "--ranks", str(ranks), "-o", plan, "--quiet"], check=True)
            (CORPUS / f"{name}.message").write_bytes(plan.read_bytes()[HEADER_BYTES:])


if __name__ == "__main__":
    main()
