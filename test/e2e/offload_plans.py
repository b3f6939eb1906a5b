"""Plans with state that does not lie in device memory: how the tests of offload compile and read them."""

import hashlib
import json

from conftest import write_config

BEGIN, FORWARD, BACKWARD, UPDATE = 1, 5, 6, 8  # phases
# Model: options of the export, samples of a micro-batch. Activations are most of what each needs.
MODELS = {"gpt2": (["--size", "tiny", "--seq", "64", "--dropout", "0.1"], 8), "llama": (["--size", "tiny", "--seq", "64"], 8),
          "bert": (["--size", "tiny", "--seq", "64"], 8), "resnet50": (["--size", "tiny"], 8)}
AWAY = {"activation_checkpointing": {"cpu_checkpointing": True}}


def compile_plan(tools, folder, model, micro, case, keys, *more):
    """The plan and its report."""
    plan, command = compile_command(folder, model, micro, case, keys, *more)
    tools(*command)
    return plan, report_of(tools, plan)


def report_of(tools, plan):
    return json.loads(tools("ds-opt", "report", plan, "--format", "json").stdout)


def compile_command(folder, model, micro, case, keys, *more):
    """The plan, and what makes it."""
    _, stage, ranks, stages, accumulation = case
    name = hashlib.sha256(f"{case} {keys} {more}".encode()).hexdigest()[:8]
    keys = {"gradient_clipping": 0.5, **keys, "zero_optimization": {"stage": stage, **keys.get("zero_optimization", {})},
            "deepstatic": {"pipeline": {"stages": stages}, **keys.get("deepstatic", {})}}
    config = write_config(folder / f"{name}.json", micro, accumulation, **keys)
    plan = folder / f"{name}.dsplan"
    return plan, ("ds-opt", "compile", model, "--config", config, "--ranks", ranks, "-o", plan, *more)


def updated_there(space, folder):
    """Keys for moments in host memory, or in files of the folder."""
    where = {"device": "cpu"} if space == "host" else {"device": "nvme", "nvme_path": str(folder)}
    return {"zero_optimization": {"offload_optimizer": where}}


def with_links(folder, device_host, host_nvme):
    """The flag for a machine with links of so many GB/s, by which ds-opt knows what ends in time."""
    machine = folder / "machine.json"
    links = [{"between": between, "bandwidth_gb_per_s": speed, "latency_us": 2} for between, speed in (("device-host", device_host), ("host-nvme", host_nvme))]
    machine.write_text(json.dumps({"name": "box", "device": "cpu", "links": links}))
    return "--machine", machine


def in_routines(role, phase):
    """(routine, number, command) of the commands of routines of this phase."""
    return [(routine, number, command) for routine in role.routines for number, command in enumerate(routine.commands) if routine.phase == phase]


def kernels(role, phase, queue, kernel):
    return [command for _, _, command in in_routines(role, phase) if role.queues[command.queue].name == queue and command.kernel.kernel == kernel]
