"""The plans of test_zero.py under mpirun: the bits of in-process ranks, and the bytes that MPI was given."""

import os
import shutil

import pytest
from conftest import BUILD
from zero_trainer import sent, trainer  # noqa: F401 - trainer is a fixture

WHOLE = os.environ.get("DS_TEST_SCOPE") == "all"
CASES = ([(model, stage, ranks, accumulation) for model in ("gpt2", "llama", "bert") for stage in range(4) for ranks in (2, 4)
          for accumulation in (1, 3)] if WHOLE else
         [("gpt2", 0, 2, 3), ("gpt2", 3, 4, 3), ("llama", 1, 4, 1), ("llama", 2, 2, 3), ("bert", 3, 2, 1), ("bert", 1, 4, 3)])
pytestmark = pytest.mark.skipif(shutil.which("mpirun") is None, reason="there is no mpirun")


@pytest.mark.parametrize("model, stage, ranks, accumulation", CASES)
def test_processes_have_the_bits_of_threads(trainer, model, stage, ranks, accumulation, tmp_path):
    """And a wrapper of MPI's profiling interface counts, call by call, what the report says."""
    steps = 20
    plan = trainer.compile(model, ranks, accumulation, stage)
    counts = tmp_path / "sent"
    *result, summary = trainer.run_by_mpi(plan, ranks, steps, LD_PRELOAD=BUILD / "lib" / "libsend_counter.so",
                                          DS_SEND_COUNTER=counts)
    assert result == list(trainer.run(plan, "-n", ranks, steps=steps)[:3])
    for planned, counted in zip(trainer.report(plan)["ranks_detail"], summary["ranks"]):
        assert counted["wire_bytes_per_step"] == planned["wire_bytes_per_step"]
    for rank in range(ranks):
        expected = sent(summary["ranks"][rank]["wire_bytes_per_step"])
        assert int(counts.with_name(f"sent.{rank}").read_text()) == steps * expected
