"""The loop that DeepSpeed users write, as one static step.

    engine = deepstatic.initialize(model="saved-llama", config="ds_config.json")
    for batch in loader:
        loss = engine(batch)
        engine.backward(loss)
        engine.step()

Forward, backward and update are one program of the plan. So `engine(batch)` takes the batch, `backward` says that its loss is wanted, and
`step` runs all three. One ds-run process stays alive between steps: it is told of each batch by `--data -`, in a file of its own, and
answers with the line that --metrics has. So state, losses and bits are those of one ds-run over the same samples.
"""

import json
import re
import signal
import subprocess
import tempfile
from pathlib import Path

from . import programs
from .data import columns_of, read, write
from .errors import DeepStaticError, need
from .plan import Plan, compile
from .running import flag_arguments, save_pretrained

STATIC = "forward, backward and update are one static step"
# Arguments of deepspeed.initialize, and of its engine, and what stands in their place.
ELSEWHERE = {
    "training_data": "batches are given by engine(batch), and whole datasets by plan.run(data)", "collate_fn": "batches are given by engine(batch)",
    "optimizer": "the optimizer is the config's", "lr_scheduler": "the schedule is the config's, and engine.get_lr() says the rate",
    "model_parameters": "parameters with requires_grad are trained; deepstatic.parameter_groups in the config gives some their own decay and rate",
    "module": "the weights are in the plan's process: engine.weights() and engine.save_pretrained() have them", "args": "give config=",
    "config_params": "give config=", "mpu": "pipeline stages are the config's", "dist_init_required": "ranks= says how many there are"}


CLIENT_STATE = ".client_state.json"  # behind a checkpoint's name


def initialize(model=None, config=None, *, ranks=1, machine=None, example_batch=None, flags=(), **run_flags) -> "Engine":
    """An engine for a model, as `deepstatic.compile` takes it, or a Plan. One process trains on all ranks, so there is one Python and no launcher.

    run_flags  of ds-run, with underscores: threads=2, seed=3, resume="folder"
    """
    for name in run_flags:
        if name in ELSEWHERE:
            raise DeepStaticError(f"initialize takes no {name}: {ELSEWHERE[name]}")
    if isinstance(model, Plan):
        if config is not None or example_batch is not None:
            raise DeepStaticError("a Plan has its configuration and its shapes, so config and example_batch make no sense with it")
        return Engine(lambda batch: model, run_flags, model)
    if model is None or config is None:
        raise DeepStaticError("initialize needs model= and config=, a ds_config.json as a dict or a path")

    def compiled(batch):
        first = example_batch if example_batch is not None else batch
        return compile(model, config, ranks=ranks, machine=machine, flags=flags, example_batch=None if _is_graph(model) else first)
    return Engine(compiled, run_flags, compiled(None) if example_batch is not None or _is_graph(model) else None)


def _is_graph(model) -> bool:
    return isinstance(model, (str, Path)) and (Path(model).suffix == ".onnx" or (Path(model) / "model.onnx").exists())


class Loss:
    """Of a micro-batch: a number after engine.step(), and nothing that one could compute with before."""

    def __init__(self):
        self.value = None

    def item(self) -> float:
        if self.value is None:
            raise DeepStaticError(f"a loss is known after engine.step(): {STATIC}")
        return self.value

    __float__ = item

    def detach(self):
        return self

    def __format__(self, spec):
        return format(self.item(), spec)

    def __repr__(self):
        return f"Loss({'of a step to come' if self.value is None else self.value})"

    def _changed(self, *_):
        raise DeepStaticError(f"the loss cannot be changed between forward and backward: {STATIC}; change it in the model, or read loss.item() after engine.step()")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __neg__ = __pow__ = _changed

    def backward(self):
        raise DeepStaticError("loss.backward() would leave the engine out; call engine.backward(loss)")


class Engine:
    """See the head of this file. `with initialize(...) as engine:` closes it at the end."""

    def __init__(self, compiled, run_flags, plan=None):
        unfit = [name for name in ("data", "steps", "save", "metrics", "export", "eval", "shuffle") if name in run_flags]
        if unfit:
            raise DeepStaticError(f"{unfit[0]} makes no sense for an engine, which is given batches and asked for what it should save")
        self._compiled, self._flags, self.plan = compiled, {"quiet": True, **run_flags}, plan
        self._work = tempfile.TemporaryDirectory(prefix="deepstatic-engine-")
        self._folder = Path(self._work.name)
        self._resume = self._flags.pop("resume", None)
        self._process = self._output = self._ended = None
        self._batches, self._losses, self._wanted = [], [], 0  # of the step to come
        self._due = False
        self.metrics = []  # a dict a step, as --metrics has it
        self.global_steps = 0

    def __iter__(self):
        raise DeepStaticError("initialize gives the engine alone, not a tuple with optimizer, data and schedule, which are part of the step",
                              "engine = deepstatic.initialize(model=model, config=config)")

    def __getattr__(self, name):
        raise AttributeError(f"the engine has no {name}" + (f": {ELSEWHERE[name]}" if name in ELSEWHERE else ""))

    # --- the loop

    def __call__(self, batch=None, *others, **inputs) -> Loss:
        """A micro-batch: {input: array}, with the samples of one micro-batch of all data-parallel ranks."""
        if len(self._losses) != self._wanted or self._due:
            missing = "engine.step()" if self._due else "engine.backward(loss)"
            raise DeepStaticError(f"the batch before this one has had no {missing}: {STATIC}, so a loss alone is not to be had; plan.run(data, eval=True) evaluates")
        if others or not (isinstance(batch, dict) or inputs):
            raise DeepStaticError("a batch has its inputs by name: engine({'input_ids': ids, 'labels': labels}), or engine(input_ids=ids, labels=labels)")
        columns = columns_of(batch or inputs)
        if self.plan is None:
            self.plan = self._compiled(columns)
        for name, values in columns.items():
            if len(values) != self.samples_per_call:
                raise DeepStaticError(f"{name} has {len(values)} samples, and a call takes {self.samples_per_call}: a micro-batch of "
                                      f"{self.train_micro_batch_size_per_gpu()} for each of {self.dp_world_size} data-parallel ranks")
        self._batches.append(columns)
        self._losses.append(Loss())
        return self._losses[-1]

    forward = __call__

    def backward(self, loss) -> None:
        if not self._losses or loss is not self._losses[-1] or self._wanted == len(self._losses):
            raise DeepStaticError(f"engine.backward takes the loss that the last engine(batch) gave, as it is: {STATIC}")
        self._wanted += 1
        self._due = True

    def step(self) -> None:
        """Of DeepSpeed: runs when the last micro-batch of the step is there."""
        if not self._due:
            raise DeepStaticError("engine.step() comes after engine.backward(loss)")
        self._due = False
        if not self.is_gradient_accumulation_boundary():
            return
        line = self._train({name: _joined([batch[name] for batch in self._batches]) for name in self._batches[0]})
        for loss in self._losses:
            loss.value = line["loss"]
        self._batches, self._losses, self._wanted = [], [], 0
        self.metrics.append(line)
        self.global_steps = line["step"]

    def train_batch(self, data_iter) -> float:
        """As DeepSpeed's pipeline engine: takes a step's micro-batches from an iterator, and returns its loss."""
        while True:
            loss = self(next(data_iter))
            self.backward(loss)
            self.step()
            if loss.value is not None:
                return loss.item()

    def is_gradient_accumulation_boundary(self) -> bool:
        return len(self._losses) == self.gradient_accumulation_steps()

    # --- sizes and numbers

    def _batch(self) -> dict:
        if self.plan is None:
            raise DeepStaticError("sizes are known with the first batch; give example_batch= to initialize to have them before")
        return self.plan.facts["training"]

    def train_batch_size(self) -> int:
        return self._batch()["train_batch_size"]

    def train_micro_batch_size_per_gpu(self) -> int:
        return self._batch()["micro_batch_size"]

    def gradient_accumulation_steps(self) -> int:
        return self._batch()["accumulation_steps"]

    @property
    def dp_world_size(self) -> int:
        self._batch()
        return self.plan.facts["world"]["data"]

    @property
    def global_samples(self) -> int:
        return self.global_steps * self.train_batch_size() if self.global_steps else 0

    @property
    def samples_per_call(self) -> int:
        return self.train_micro_batch_size_per_gpu() * self.dp_world_size

    def get_lr(self) -> list:
        """Of the last step."""
        return [self.metrics[-1]["lr"]] if self.metrics else []

    def get_global_grad_norm(self):
        """Of the last step, before clipping."""
        return self.metrics[-1].get("grad_norm") if self.metrics else None

    # --- what stays

    def weights(self) -> dict:
        """{PyTorch's name: array}, as they are after the last step."""
        path = self._folder / "weights.safetensors"
        programs.run("ds-run", "export", self._paused(), "-o", path)
        return read(path)

    def save_checkpoint(self, folder, tag=None, client_state=None) -> None:
        """A checkpoint of ds-run, for any number of ranks: docs/checkpoints.md. Its name is global_stepN, as the default tag is in DeepSpeed.
        `client_state` lies beside it as JSON."""
        said = _as_json(client_state or {})
        if tag is not None:
            raise DeepStaticError(f"checkpoints are named by their step, global_step{self.global_steps}, so tag={tag!r} cannot be kept; leave it out")
        state = self._paused()
        self._no_step(self.global_steps, resume=state, save=folder)
        beside = Path(folder) / f"global_step{self.global_steps}{CLIENT_STATE}"
        beside.with_suffix(".new").write_text(said)
        beside.with_suffix(".new").replace(beside)

    def load_checkpoint(self, folder, tag=None) -> tuple:
        """Goes on from a checkpoint: the newest, or the one of `tag`. What was trained so far and not saved is given up. Returns, as DeepSpeed's,
        where it is and the client_state."""
        resume = Path(folder) / tag if tag else folder
        _, said = programs.run("ds-run", "checkpoint", "ls", resume)  # refuses what is none, now
        self._end(signal.SIGKILL)
        self._forget()
        self._ended = None
        self._resume = resume
        self.global_steps = int(re.findall(r"^(?:latest: global_step| +)(\d+)", said, re.MULTILINE)[-1])
        name = f"global_step{self.global_steps}"
        beside = (Path(folder).absolute().parent if Path(folder).absolute().name == name else Path(folder)) / f"{name}{CLIENT_STATE}"
        return str(resume), json.loads(beside.read_text()) if beside.exists() else {}

    def save_pretrained(self, folder, like=None, adapter=False) -> Path:
        """A folder that `transformers` loads, with the weights of now."""
        return save_pretrained(self._paused(), folder, like or self.plan.saved, adapter)

    def train(self, mode=True) -> "Engine":
        if not mode:
            self.eval()
        return self

    def eval(self):
        raise DeepStaticError("an engine trains; plan.run(data, eval=True, resume=FOLDER) evaluates a checkpoint that engine.save_checkpoint(FOLDER) wrote")

    def close(self) -> None:
        """Ends the process; what was not saved is given up."""
        self._end(signal.SIGKILL)
        self._work.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if getattr(self, "_process", None) is not None:
            self._end(signal.SIGKILL)

    # --- the process

    def _begin(self) -> None:
        if self._ended is not None:
            raise DeepStaticError(f"the engine ended with an error ({self._ended}); engine.load_checkpoint(FOLDER) goes on from what was saved")
        state = self._folder / "state"
        resume = {"resume": self._resume} if self._resume is not None else {}
        if resume:
            self._flags.pop("weights", None)
        self._process, self._output = programs.start(
            "ds-run", self.plan.path, "--data", "-", "--metrics", "/dev/stdout", "--save", state, "--keep", 1, *flag_arguments({**self._flags, **resume}),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def _train(self, samples: dict) -> dict:
        if self._process is None:
            self._begin()
        path = self._folder / "batch.safetensors"
        write(samples, path)
        try:
            self._process.stdin.write(f"{path}\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # it has said why
        for text in self._process.stdout:
            line = json.loads(text)
            if "loss" in line:
                return line
        raise self._failed()

    def _failed(self) -> DeepStaticError:
        code = self._process.wait()
        self._process = None
        self._ended = self._output.error(code)
        self._forget()
        return self._ended

    def _paused(self):
        """Ends the process after it has saved, and returns where; the next step begins one that resumes."""
        if self._losses:
            raise DeepStaticError("a step is half done: engine.backward and engine.step come first")
        if self._process is None and self._resume is None:
            if self.plan is None:
                raise DeepStaticError("there is nothing to save before the first batch; give example_batch= to initialize")
            self._begin()
        if self._process is not None:
            self._process.stdin.close()
            for _ in self._process.stdout:
                pass  # the summary
            code = self._process.wait()
            if code != 0:
                raise self._failed()
            self._process, self._resume = None, self._folder / "state"
        return self._resume

    def _no_step(self, steps, **flags) -> None:
        """ds-run that loads, does no step, and saves."""
        process, output = programs.start("ds-run", self.plan.path, "--data", "-", *flag_arguments({"steps": steps, "quiet": True, **flags}),
                                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        if process.wait() != 0:
            raise output.error(process.returncode)

    def _end(self, how) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait()
            for stream in (self._process.stdin, self._process.stdout):
                try:
                    stream.close()
                except BrokenPipeError:
                    pass
        self._process = None

    def _forget(self) -> None:
        self._batches, self._losses, self._wanted, self._due = [], [], 0, False


def _as_json(client_state) -> str:
    """Refuses what would come back as something else."""
    try:
        text = json.dumps(client_state)
    except (TypeError, ValueError) as error:
        raise DeepStaticError(f"client_state is kept as JSON, and {error}; give numbers, texts, lists, and dicts with texts as keys") from None
    if not isinstance(client_state, dict) or json.loads(text) != client_state:
        raise DeepStaticError("client_state is kept as JSON, and would come back as something else; give a dict of numbers, texts and lists, with texts "
                              "as keys")
    return text


def _joined(parts):
    return need("numpy", "training by batches").concatenate(parts) if len(parts) > 1 else parts[0]
