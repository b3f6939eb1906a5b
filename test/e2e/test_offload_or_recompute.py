"""deepstatic.offload "auto" beside deepstatic.recompute "auto": what is kept, computed again or away is one decision, by the clock of reports.

A plan of the two decisions in turn is that of "auto" without recompute: before it computes anything again, it lets compute wait.
"""

import json
import re

import pytest
from conftest import write_config
from offload_plans import MODELS, compile_plan, with_links
from test_offload import arena, require_same_bits

NVME = 2  # GB/s
# Device memory as a share of what the plan needs that computes nothing again and moves nothing; GB/s of the link.
SHARES, LINKS = (0.8, 0.6, 0.4), (1, 0.5)
CASES = [(model, link, share) for model in ("gpt2", "llama", "bert") for link in LINKS for share in SHARES]


def step_of(tools, plan):
    """Seconds of the longest step of a rank, on the simulated clock."""
    events = json.loads(tools("ds-opt", "report", plan, "--format", "perfetto").stdout)["traceEvents"]
    return max(event["ts"] + event["dur"] for event in events if event["ph"] == "X") / 1e6


@pytest.fixture(scope="module")
def planned(tools, exported, tmp_path_factory):
    """planned(model, GB/s, share or None, deepstatic keys) -> the plan, its report, what ds-opt says that it chose to move."""
    folder, made = tmp_path_factory.mktemp("plans"), {}

    def whole(name):
        return arena(planned(name, LINKS[0], None, recompute="none")[1])

    def planned(name, link, share, **keys):
        key = (name, link, share, str(keys))
        if key not in made:
            room = [] if share is None else ["--device-memory", int(share * whole(name))]
            plan, config = folder / f"{len(made)}.dsplan", write_config(folder / f"{len(made)}.json", MODELS[name][1], gradient_clipping=0.5, deepstatic=keys)
            told = tools("ds-opt", "compile", exported(name, *MODELS[name][0]), "--config", config, "-o", plan, *with_links(folder, link, NVME), *room)
            chosen = re.search(r'deepstatic.offload is "(.*?)" \(', told.stdout + told.stderr)
            made[key] = plan, json.loads(tools("ds-opt", "report", plan, "--format", "json").stdout), chosen and chosen[1]
        return made[key]

    planned.whole = whole
    return planned


@pytest.fixture(scope="module")
def rows(tools, planned):
    """(case, seconds of a step with two decisions and with one, the report of the latter, what moves)."""
    found = []
    for case in CASES:
        apart, _, _ = planned(*case, offload="auto", recompute="none")
        plan, report, chosen = planned(*case, offload="auto")
        found.append((case, step_of(tools, apart), step_of(tools, plan), report, chosen))
    return found


def test_no_step_is_longer_than_with_two_decisions(rows, planned):
    """And most are shorter: where the link hides what has to leave, both are the same plan."""
    shorter = 0
    for (model, link, share), apart, together, report, chosen in rows:
        recompute, moved = report["recompute"], sum(report["ranks_detail"][0].get("transfer_bytes_per_step", {}).values())
        print(f"| {model} | {link} | {share:.0%} | {1e3 * apart:.1f} | {1e3 * together:.1f} | {recompute['level']} of {recompute['levels']} | {chosen} | {moved:,} |")
        assert arena(report) <= int(share * planned.whole(model))
        assert together <= apart, (model, link, share)
        shorter += together < 0.95 * apart
    assert shorter >= 10


def test_what_hides_is_not_computed_again(rows):
    """One decision takes recompute only where compute would wait."""
    for case, apart, together, report, _ in rows:
        times = report["ranks_detail"][0].get("transfer_times")
        if report["recompute"]["level"] == 0:
            assert together == apart, case
            assert times["exposed_seconds"] < 0.01 * times["step_seconds"], case


def test_a_faster_link_computes_less_again(rows):
    level = {case: report["recompute"]["level"] for case, _, _, report, _ in rows}
    for model, link, share in CASES:
        if link != min(LINKS):
            assert level[model, link, share] <= level[model, min(LINKS), share], (model, share)
    assert any(level[model, max(LINKS), share] < level[model, min(LINKS), share] for model, _, share in CASES)


def test_only_what_is_asked_for(planned):
    """With a level of recompute, or none, nothing else is computed again; without offload nothing moves."""
    case = ("gpt2", 0.5, 0.6)
    _, none, chosen = planned(*case, offload="auto", recompute="none")
    assert none["recompute"]["layers_again"] == 0 and chosen == "activations"
    _, given, _ = planned(*case, offload="auto", recompute=4)
    assert given["recompute"]["level"] == 4
    _, kept, chosen = planned(*case)
    assert kept["recompute"]["level"] > 0 and chosen is None
    assert "transfer_bytes_per_step" not in kept["ranks_detail"][0]


def test_without_a_link_it_is_two_decisions(tools, exported, planned, tmp_path):
    """How long compute waits is unknown then."""
    machine, plans = tmp_path / "box.json", []
    machine.write_text(json.dumps({"name": "box", "device": "cpu"}))
    room = int(0.6 * planned.whole("gpt2"))
    for number, keys in enumerate(({}, {"recompute": "none"})):
        config = write_config(tmp_path / f"{number}.json", MODELS["gpt2"][1], gradient_clipping=0.5, deepstatic={"offload": "auto", **keys})
        plans.append(tmp_path / f"{number}.dsplan")
        tools("ds-opt", "compile", exported("gpt2", *MODELS["gpt2"][0]), "--config", config, "--machine", machine, "--device-memory", room, "-o", plans[-1])
    both, alone = (json.loads(tools("ds-opt", "report", plan, "--format", "json").stdout)["ranks_detail"] for plan in plans)
    assert both == alone


@pytest.mark.parametrize("stage", (0, 3))
@pytest.mark.parametrize("ranks", (1, 2))
@pytest.mark.parametrize("name", ("gpt2", "llama"))
def test_bits_stay(tools, tmp_path, exported, text_data, name, ranks, stage):
    """Whatever is kept, computed again or away: at two device memories and links that ask for recompute and transfers both."""
    model, micro, data = exported(name, *MODELS[name][0]), MODELS[name][1], text_data(64)
    case = (name, stage, ranks, 1, 1)
    plain, before = compile_plan(tools, tmp_path, model, micro, case, {"deepstatic": {"recompute": "none"}})
    both = 0
    for link, share in ((1, 0.45), (0.5, 0.6)):
        plan, after = compile_plan(tools, tmp_path, model, micro, case, {"deepstatic": {"offload": "auto"}}, "--device-memory", int(share * arena(before)),
                                   *with_links(tmp_path, link, NVME))
        both += after["recompute"]["level"] > 0 and after["ranks_detail"][0]["transfer_bytes_per_step"]["out"] > 0
        assert arena(after) <= share * arena(before)
        require_same_bits(tools, plain, plan, after, data, ranks)
    assert both > 0
