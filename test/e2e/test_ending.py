"""A plan of 48 ranks that ds-opt made ends when one rank meets a bad token, however far the others have come."""

import os

import numpy
from safetensors.numpy import save_file
from zero_trainer import SAMPLES, SEQUENCE, VOCABULARY, trainer  # noqa: F401 - trainer is a fixture

RUNS = int(os.environ.get("DS_START_STOPS", 30))


def test_one_bad_token_ends_48_ranks_of_zero_3(trainer, tmp_path):
    plan = trainer.compile("gpt2", 48, 1, 3, overlap_comm=True)  # events between queues, which ranks wait for
    tokens = numpy.random.default_rng(0).integers(0, VOCABULARY, (SAMPLES, SEQUENCE), dtype=numpy.int64)
    tokens[1, 2] = VOCABULARY
    data = tmp_path / "data.safetensors"
    save_file({"input_ids": tokens, "labels": tokens, "attention_mask": numpy.ones_like(tokens)}, data)
    for _ in range(RUNS):
        error = trainer.tools.refused("ds-run", plan, "--data", data, "--steps", 5, "--threads", 1, "--check-data", 0)
        assert f"the data's sample 1 has value {VOCABULARY} at element 2 of input" in error
