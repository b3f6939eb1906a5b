"""When the transfers of an offloaded step run, on the simulated clock of `ds-opt report`.

The commands of the timeline are run again here, by rules written a second time: plan.proto's, of queues and events.
"""

import json
import math

import pytest
from conftest import write_config
from plan_files import read_plan

AWAY = {"activation_checkpointing": {"cpu_checkpointing": True}}
FAST, SLOW = 20, 0.5  # GB/s
# Size of the model, samples of a micro-batch, micro-batches, ranks along the pipe.
CASES = [("tiny", 8, 1, 1), ("tiny", 4, 2, 1), ("tiny", 4, 3, 2), ("small", 1, 1, 1)]


@pytest.fixture(scope="module")
def plans(tools, exported, tmp_path_factory):
    """plans(case, GB/s or None) -> the plan for a machine with that link, or without any; each is compiled once."""
    folder, made = tmp_path_factory.mktemp("plans"), {}

    def compile_plan(case, bandwidth):
        if (case, bandwidth) not in made:
            size, micro, accumulation, stages = case
            machine, plan = folder / f"{len(made)}-machine.json", folder / f"{len(made)}.dsplan"
            links = [{"between": "device-host", "bandwidth_gb_per_s": bandwidth, "latency_us": 2}] if bandwidth else []
            machine.write_text(json.dumps({"name": "box", "device": "cpu", "links": links}))
            config = write_config(folder / f"{len(made)}.json", micro, accumulation, deepstatic={"pipeline": {"stages": stages}}, **AWAY)
            tools("ds-opt", "compile", exported("gpt2", "--size", size, "--seq", 64, "--dropout", "0.1"), "--config", config,
                  "--machine", machine, "--ranks", stages, "-o", plan)
            made[case, bandwidth] = plan
        return made[case, bandwidth]

    return compile_plan


def times_of(tools, plan):
    ranks = json.loads(tools("ds-opt", "report", plan, "--format", "json").stdout)["ranks_detail"]
    return [rank["transfer_times"] for rank in ranks]


@pytest.mark.parametrize("bandwidth", [FAST, 5, 2, 1, SLOW])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_transfers_are_hidden(tools, plans, case, bandwidth):
    """With one stage transfers take no longer than compute, and are hidden: what cannot be away in time stays. With two
    that is so where the link is fast."""
    for rank in times_of(tools, plans(case, bandwidth)):
        if case[3] == 1 or bandwidth >= 5:
            assert rank["alone_seconds"] <= rank["compute_seconds"]
            assert rank["hidden"] >= 0.8, rank["hidden"]
        assert math.isclose(rank["exposed_seconds"], rank["step_seconds"] - rank["step_seconds_without"])
        assert math.isclose(rank["hidden"], 1 - rank["exposed_seconds"] / rank["alone_seconds"])


# Size, samples of a micro-batch, micro-batches, what lies elsewhere, clipping, GB/s of the links: transfers take at most as long as compute.
BOTH = (0, 0.5)
HIDDEN = [
    *(("tiny", 8, accumulation, "optimizer", clipping, speed, None) for accumulation in (1, 2) for clipping in BOTH for speed in (20, 5, 1, 0.2, 0.1)),
    *(("tiny", 8, accumulation, "parameters too", clipping, speed, None) for accumulation in (1, 2) for clipping in BOTH for speed in (20, 5, 1, 0.2)),
    *(("small", 1, accumulation, "optimizer", clipping, speed, None) for accumulation in (1, 2) for clipping in BOTH for speed in (100, 20, 5, 2)),
    *(("small", 1, accumulation, "parameters too", clipping, speed, None) for accumulation in (1, 2) for clipping in BOTH for speed in (100, 20, 5)),
    *(("small", 1, 2, "optimizer", clipping, 1.5, None) for clipping in BOTH),
    *(("tiny", 8, accumulation, "optimizer in files", clipping, speed, nvme)
      for accumulation in (1, 2) for clipping in BOTH for speed, nvme in ((20, 2), (5, 1), (2, 0.5))),
    *(("small", 1, accumulation, "optimizer in files", clipping, speed, nvme)
      for accumulation in (1, 2) for clipping in BOTH for speed, nvme in ((50, 10), (20, 5), (20, 4), (20, 3.4))),
    *(("small", 1, 2, "optimizer in files", clipping, 20, 2) for clipping in BOTH),
    *(("small", 1, accumulation, "all in files", clipping, 20, 5) for accumulation in (2, 4) for clipping in BOTH),
    *(("small", 1, 4, "all in files", clipping, 20, 3.3) for clipping in BOTH),
    *(("small", 1, accumulation, "parameters", 0.5, speed, nvme)
      for accumulation in (1, 2) for speed, nvme in ((20, None), (5, None), (2.5, None), (2, None), (20, 10), (20, 5), (20, 3.3), (20, 2.5))),
    ("small", 1, 1, "parameters", 0.5, 1.9, None), *(("small", 1, 2, "parameters, schedule auto", 0.5, speed, None) for speed in (1.5, 1.3)),
    *(("small", 1, 2, "optimizer in files, by layer", clipping, 20, 1.65) for clipping in BOTH)]
WITHOUT = {"optimizer in files, whole": ["ds-split-updates"], "optimizer in files, behind the backward": ["ds-advance-updates"],
           "optimizer in files, behind the backward, read late": ["ds-advance-updates", "ds-read-ahead"]}
# What is not: parameters take longer than the forward that needs them, and two micro-batches one after another leave too little to hide the last updates behind.
# A "ratio" of "auto" finds what is for the first two (test_offload_ratio.py), a "schedule" of "auto" for the third: above.
EXPOSED = [*(("small", 1, 1, "optimizer", clipping, 1.5, None) for clipping in BOTH),
           *(("small", 1, 2, "optimizer in files", clipping, 20, 1.65) for clipping in BOTH),
           *(("small", 1, 2, "parameters", 0.5, speed, None) for speed in (1.5, 1.3))]


@pytest.fixture(scope="module")
def step_of(tools, exported, tmp_path_factory):
    """step_of(case) -> rank 0 of the report of a plan with optimizer state elsewhere."""
    folder, made = tmp_path_factory.mktemp("steps"), {}

    def compile_step(case):
        if case in made:
            return made[case]
        size, micro, accumulation, what, clipping, speed, nvme = case
        machine, plan = folder / f"{len(made)}-machine.json", folder / f"{len(made)}.dsplan"
        links = [{"between": "device-host", "bandwidth_gb_per_s": speed, "latency_us": 2}]
        links += [{"between": "host-nvme", "bandwidth_gb_per_s": nvme, "latency_us": 20}] if nvme else []
        machine.write_text(json.dumps({"name": "box", "device": "cpu", "links": links}))
        there = {"device": "nvme", "nvme_path": str(folder)} if nvme else {"device": "cpu"}
        zero = {**({} if what.startswith("parameters") and what != "parameters too" else {"offload_optimizer": there}),
                **({"offload_param": there} if what.startswith("parameters") or what == "all in files" else {})}
        schedule = "accumulate-by-layer" if what.endswith("by layer") else "auto" if what.endswith("schedule auto") else None
        order = {"deepstatic": {"pipeline": {"schedule": schedule}}} if schedule else {}
        config = write_config(folder / f"{len(made)}.json", micro, accumulation, gradient_clipping=clipping, zero_optimization=zero, **order)
        tools("ds-opt", "compile", exported("gpt2", "--size", size, "--seq", 64, "--dropout", "0.1"), "--config", config, "--machine", machine, "-o", plan,
              *(flag for name in WITHOUT.get(what, []) for flag in ("--without", name)))
        made[case], = json.loads(tools("ds-opt", "report", plan, "--format", "json").stdout)["ranks_detail"]
        return made[case]

    return compile_step


@pytest.mark.parametrize("case", HIDDEN, ids=str)
def test_optimizer_state_is_hidden(step_of, case):
    """Gradients leave beside the backward, parameters come beside the forward, and the host updates beside the backward where nothing is
    clipped; however many micro-batches there are."""
    rank = step_of(case)
    times, ways = rank["transfer_times"], rank["transfer_bytes_per_step"]
    assert 0 < times["alone_seconds"] <= times["compute_seconds"]
    assert times["hidden"] >= 0.8, times["hidden"]
    if case[3] == "optimizer":  # each gradient leaves, each parameter comes; scalars, indices and rows of the embedding
        assert abs(ways["out"] - case[2] * ways["back"]) < 0.002 * ways["out"]


@pytest.mark.parametrize("case", EXPOSED, ids=str)
def test_what_is_not_hidden(step_of, case):
    """The page says which: one that is hidden after all goes to those above, and to the page."""
    times = step_of(case)["transfer_times"]
    assert times["alone_seconds"] <= times["compute_seconds"]
    assert times["hidden"] < 0.8, times["hidden"]


@pytest.mark.parametrize("case", [("tiny", 8, 1, "optimizer", 5, None), ("small", 1, 1, "optimizer", 5, None), ("small", 1, 1, "parameters too", 20, None)], ids=str)
def test_updates_begin_as_gradients_arrive(step_of, case):
    """Without clipping a step ends earlier than with it: most updates are made beside the backward. As much moves."""
    clipped, free = (step_of((*case[:4], clipping, *case[4:])) for clipping in (0.5, 0))
    assert free["transfer_times"]["step_seconds"] < 0.99 * clipped["transfer_times"]["step_seconds"]
    assert free["transfer_bytes_per_step"] == pytest.approx(clipped["transfer_bytes_per_step"], rel=0.001)


@pytest.mark.parametrize("case", [("tiny", 8, 1, 20, 2), ("small", 1, 1, 20, 5), ("small", 1, 2, 20, 5)], ids=str)
def test_updates_from_files_do_not_wait_for_the_norm(step_of, case):
    """Made as if nothing were clipped, they end a step as early as where nothing is; waiting for the norm takes longer. As much moves."""
    ahead, free, late = (step_of((*case[:3], what, clipping, *case[3:]))
                         for what, clipping in (("optimizer in files", 0.5), ("optimizer in files", 0), ("optimizer in files, behind the backward", 0.5)))
    steps = [one["transfer_times"]["step_seconds"] for one in (ahead, free, late)]
    assert steps[0] == pytest.approx(steps[1], rel=0.01) and steps[0] < 0.99 * steps[2]
    assert ahead["transfer_bytes_per_step"] == pytest.approx(late["transfer_bytes_per_step"], rel=0.001)


@pytest.mark.parametrize("clipping", BOTH)
def test_pieces_need_less_of_the_host_and_hide_more(step_of, clipping):
    whole, pieces = (step_of(("small", 1, 1, what, clipping, 50, 10)) for what in ("optimizer in files, whole", "optimizer in files"))
    assert pieces["transfer_times"]["hidden"] > whole["transfer_times"]["hidden"] + 0.1
    assert pieces["memory"]["host"]["arena_bytes"] <= whole["memory"]["host"]["arena_bytes"]
    if clipping == 0:  # no gradient waits
        assert pieces["memory"]["host"]["arena_bytes"] < 0.9 * whole["memory"]["host"]["arena_bytes"]


@pytest.mark.parametrize("accumulation", [1, 2])
def test_reading_ahead_shortens_the_step(step_of, accumulation):
    """What is updated behind the backward finds its state in host memory, at most 1 GiB of it."""
    late, ahead = (step_of(("small", 1, accumulation, "optimizer in files, behind the backward" + how, 0.5, 20, 5)) for how in (", read late", ""))
    assert ahead["transfer_times"]["step_seconds"] < late["transfer_times"]["step_seconds"]
    assert 0 < ahead["memory"]["host"]["arena_bytes"] - late["memory"]["host"]["arena_bytes"] <= 1 << 30


def test_all_leaves_where_memory_asks_for_it(tools, plans, exported, tmp_path):
    """With a slow link and room for what is hidden, less leaves; with less room all leaves, and compute waits."""
    fast, slow = (plans(CASES[0], bandwidth) for bandwidth in (FAST, SLOW))
    report = {plan: json.loads(tools("ds-opt", "report", plan, "--format", "json").stdout)["ranks_detail"][0] for plan in (fast, slow)}
    small, large = (report[plan]["memory"]["device"]["arena_bytes"] for plan in (fast, slow))
    assert small < large and report[slow]["transfer_bytes_per_step"]["out"] < report[fast]["transfer_bytes_per_step"]["out"]
    machine, plan = tmp_path / "box.json", tmp_path / "tight.dsplan"
    machine.write_text(json.dumps({"name": "box", "device": "cpu", "links": [{"between": "device-host", "bandwidth_gb_per_s": SLOW, "latency_us": 2}]}))
    config = write_config(tmp_path / "c.json", CASES[0][1], **AWAY)
    tools("ds-opt", "compile", exported("gpt2", "--size", "tiny", "--seq", 64, "--dropout", "0.1"), "--config", config, "--machine", machine,
          "--device-memory", (small + large) // 2, "-o", plan)
    rank = json.loads(tools("ds-opt", "report", plan, "--format", "json").stdout)["ranks_detail"][0]
    assert rank["memory"]["device"]["arena_bytes"] <= (small + large) // 2
    assert rank["transfer_bytes_per_step"]["out"] >= report[fast]["transfer_bytes_per_step"]["out"]
    assert rank["transfer_times"]["hidden"] < report[slow]["transfer_times"]["hidden"]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_transfers_are_those_of_the_plan(tools, plans, case):
    report = json.loads(tools("ds-opt", "report", plans(case, FAST), "--format", "json").stdout)
    for rank in report["ranks_detail"]:
        transfers = rank["transfer_times"]["transfers"]
        for direction in ("out", "back"):
            assert sum(one["bytes"] for one in transfers if one["direction"] == direction) == rank["transfer_bytes_per_step"][direction]
        for one in transfers:
            seconds = one["end_seconds"] - one["start_seconds"]
            assert math.isclose(seconds, 2e-6 + one["bytes"] / (FAST * 1e9), rel_tol=1e-6)
            assert math.isclose(one["bytes_per_second"], one["bytes"] / seconds)
            assert one["end_seconds"] <= one["latest_end_seconds"] <= rank["transfer_times"]["step_seconds"]


def run_again(role, seconds):
    """(call, command) -> end, of the program `step` with these seconds of its commands."""
    calls = next(program for program in role.programs if program.name == "step").calls
    queues, raised, ends = {}, {}, {}
    for number, call in enumerate(calls):
        for index, command in enumerate(role.routines[call.routine].commands):
            queues.setdefault(command.queue, []).append((number, index, command, call.microbatch))
    free = dict.fromkeys(queues, 0.0)
    while any(queues.values()):
        for queue, left in queues.items():
            while left:
                number, index, command, microbatch = left[0]
                wanted = [(wait.event, microbatch + 1 - wait.delay) for wait in command.waits if wait.delay <= microbatch]
                if not all(key in raised for key in wanted):
                    break
                left.pop(0)
                free[queue] = max([free[queue], *(raised[key] for key in wanted)]) + seconds[number, index]
                ends[number, index] = free[queue]
                for event in command.signals:  # of micro-batches in order
                    raised[event, microbatch + 1] = free[queue]
    return ends


@pytest.mark.parametrize("bandwidth", [FAST, SLOW])
@pytest.mark.parametrize("case", CASES[:3], ids=str)
def test_the_timeline_is_what_the_plan_says(tools, plans, case, bandwidth):
    """Also that a transfer which is late by its slack delays no step, and one that is later does."""
    path = plans(case, bandwidth)
    timeline = json.loads(tools("ds-opt", "report", path, "--format", "perfetto").stdout)["traceEvents"]
    for number, (role, rank) in enumerate(zip(read_plan(path).roles, times_of(tools, path), strict=True)):
        events = {(event["args"]["call"], event["args"]["command"]): event for event in timeline
                  if event["ph"] == "X" and event["pid"] == number}
        seconds = {key: event["dur"] for key, event in events.items()}  # microseconds
        ends = run_again(role, seconds)
        assert ends.keys() == events.keys()
        for key, event in events.items():
            assert math.isclose(ends[key], event["ts"] + event["dur"], rel_tol=1e-9)
        step = max(ends.values())
        assert math.isclose(step, rank["step_seconds"] * 1e6, rel_tol=1e-9)
        transfers = [key for key, event in events.items() if "bytes" in event["args"]]
        assert len(transfers) == len(rank["transfers"]) > 0
        for key in transfers:
            slack = events[key]["args"]["must_end_by"] - ends[key]
            late = max(run_again(role, seconds | {key: seconds[key] + slack}).values())
            later = max(run_again(role, seconds | {key: seconds[key] + slack + 1}).values())
            assert math.isclose(late, step, rel_tol=1e-9) and math.isclose(later, step + 1, rel_tol=1e-9)


def test_people_read_it_too(tools, plans):
    plan = plans(CASES[0], FAST)
    rank = times_of(tools, plan)[0]
    page, text = (tools("ds-opt", "report", plan, "--format", form).stdout for form in ("html", "text"))
    head = "ransfers between device and host memory, a step on the simulated clock"
    hidden = f"{100 * rank['hidden']:.1f} %"
    assert head in text and hidden in text
    assert head in page and hidden in page and "must end by" in page
    figure = page.split("<figcaption>Queues over a step")[0].split("<figure>")[-1]
    assert [f">{queue}</text>" in figure for queue in ("compute", "evict", "fetch", "copy_in")] == [True, True, True, False]
    assert figure.count("tile k6") > 10 and figure.count("tile k1") > 10
    table = page.split("Every transfer of rank 0")[1].split("</table>")[0]
    assert table.count("<tr>") == 1 + len(rank["transfers"])
    assert all(f"<td>{one['name']}</td>" in table for one in rank["transfers"])


def test_without_a_link_times_are_unknown(tools, plans):
    plan = plans(CASES[0], None)
    assert all("transfer_times" not in rank for rank in json.loads(tools("ds-opt", "report", plan, "--format", "json").stdout)["ranks_detail"])
    text = tools("ds-opt", "report", plan).stdout
    assert "how long that takes is unknown, since machine box has no link device-host" in text and "simulated clock" not in text
    assert "machine box has no link device-host" in tools.refused("ds-opt", "report", plan, "--format", "perfetto")
