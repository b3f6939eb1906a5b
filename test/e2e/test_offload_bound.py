"""What deepstatic.offload "auto" moves if nothing is computed again, beside the least that any schedule of the same commands could move in that memory."""

import json
import re

import pytest
from conftest import write_config

# Model: options of the export, and shares of the device memory that it needs without offload.
CASES = {"gpt2": (["--size", "tiny", "--seq", "64", "--dropout", "0.1"], (0.9, 0.7, 0.5)), "llama": (["--size", "tiny", "--seq", "64"], (0.9, 0.7, 0.5)),
         "bert": (["--size", "tiny", "--seq", "64"], (0.9, 0.7)), "vit": (["--size", "tiny"], (0.8,)), "resnet50": (["--size", "tiny"], (0.9,))}
MICRO = 8


@pytest.fixture(scope="module")
def reports(tools, exported, tmp_path_factory):
    """[(model, share, the first rank's report, what ds-opt says that it chose)]."""
    folder, rows = tmp_path_factory.mktemp("bound"), []

    def compiled(model, config, *more):
        plan = folder / f"{len(rows)}.dsplan"
        told = tools("ds-opt", "compile", model, "--config", config, "-o", plan, *more)
        return json.loads(tools("ds-opt", "report", plan, "--format", "json").stdout)["ranks_detail"][0], told.stdout + told.stderr

    for name, (options, shares) in CASES.items():
        model = exported(name, *options)
        config = write_config(folder / f"{name}.json", MICRO, gradient_clipping=0.5, deepstatic={"offload": "auto", "recompute": "none"})
        whole, _ = compiled(model, config)
        for share in shares:
            rank, told = compiled(model, config, "--device-memory", int(share * whole["memory"]["device"]["arena_bytes"]))
            rows.append((name, share, rank, re.search(r'deepstatic.offload is "(.*?)" \(', told)[1]))
    return rows


def test_moves_at_most_a_tenth_more_than_it_must(reports):
    close = 0
    for name, share, rank, chosen in reports:
        moved = rank["movement"]
        assert rank["memory"]["device"]["arena_bytes"] <= moved["room_bytes"]
        assert 0 < moved["forced_bytes"] + 1 <= moved["least_bytes"] + 1 <= moved["moved_bytes"] + 1
        assert moved["moved_bytes"] == rank["transfer_bytes_per_step"]["out"] + rank["transfer_bytes_per_step"]["back"]
        ratio = moved["moved_bytes"] / moved["least_bytes"]
        close += ratio <= 1.1
        print(f"| {name} | {share:.0%} | {moved['room_bytes']:,} | {chosen} | {moved['moved_bytes']:,} | {moved['least_bytes']:,} | {ratio:.3f} |")
    assert len(reports) == 10
    assert close >= 8


def test_less_memory_moves_no_less(reports):
    """Of the bound: it grows by what is taken away, out and back, until other tensors are better."""
    for (name, share, rank, _), (other, _, tighter, _) in zip(reports, reports[1:], strict=False):
        if name == other:
            taken = rank["movement"]["room_bytes"] - tighter["movement"]["room_bytes"]
            assert rank["movement"]["least_bytes"] + taken <= tighter["movement"]["least_bytes"], (name, share)


def test_without_offload_the_least_says_what_would_have_to_move(tools, exported, tmp_path):
    """ds-opt check of a plan that does not fit: how many bytes a step would move to fit. In more memory than it needs, none."""
    model = exported("gpt2", *CASES["gpt2"][0])
    config = write_config(tmp_path / "c.json", MICRO, deepstatic={"recompute": "none"})
    whole = json.loads(tools("ds-opt", "check", model, "--config", config, "--format", "json").stdout)["checks"][0]
    assert "movement" not in whole
    room = whole["memory"][0]["arena_bytes"] * 9 // 10
    short = json.loads(tools("ds-opt", "check", model, "--config", config, "--device-memory", room, "--format", "json", code=1).stdout)["checks"][0]
    moved, = short["movement"]
    assert (moved["room_bytes"], moved["moved_bytes"]) == (room, 0) and moved["least_bytes"] > 0
    text = tools("ds-opt", "check", model, "--config", config, "--device-memory", room, code=1).stdout
    assert "beside the least that any schedule" in text and f"{moved['least_bytes']:,}" in text


def test_people_read_it_too(tools, exported, tmp_path):
    config, plan = write_config(tmp_path / "c.json", MICRO, activation_checkpointing={"cpu_checkpointing": True}), tmp_path / "p.dsplan"
    tools("ds-opt", "compile", exported("gpt2", *CASES["gpt2"][0]), "--config", config, "-o", plan)
    rank, = json.loads(tools("ds-opt", "report", plan, "--format", "json").stdout)["ranks_detail"]
    moved = rank["movement"]
    assert moved["room_bytes"] == rank["memory"]["device"]["arena_bytes"]  # the machine does not say
    for form in ("text", "html"):
        page = tools("ds-opt", "report", plan, "--format", form).stdout
        assert "beside the least that any schedule" in page and f"{moved['least_bytes']:,}" in page and f"{moved['moved_bytes']:,}" in page
