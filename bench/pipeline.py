#!/usr/bin/env python3
"""Pipelined training of a 30M GPT in fp32 on 2 ranks of one thread: ds-run beside PyTorch's pipelining and DeepSpeed's pipeline
over gloo.

Every round runs each contender once, in processes of its own, for a few measured steps after warm-up, so that a
disturbance of the machine meets all of them. Same weights and batches, AdamW, no dropout, no clipping; the token embedding is
tied to the head, which the last rank holds a copy of. ds-run's ranks are threads of one process (`threads-SCHEDULE`) or processes
under mpirun (`mpi-SCHEDULE`), SCHEDULE is 1f1b (a stage a rank) or interleaved (two). Peers are torch.distributed.pipelining
(`torch-SCHEDULE`) and DeepSpeed's PipelineModule (`deepspeed`, 1F1B) where --deepspeed names a Python that has it.

Prints a table of tokens/s and the ratios to each peer.
"""

import argparse
import itertools
import sys
from functools import partial

import ranks
import rounds
from ranks import RANKS

WORK = ranks.ROOT / "build" / "bench" / "pipeline"
MICRO, SEQ, VOCABULARY, SAMPLES, BLOCKS = 1, 256, 8192, 64, 8
MODEL = ["gpt2", "--size", "small", "--seq", str(SEQ), "--set", f"n_layer={BLOCKS}", "--set", "n_embd=512", "--set", "n_head=8",
         "--set", f"vocab_size={VOCABULARY}", "--set", f"n_positions={SEQ}"]
ADAMW = {"lr": 3e-4, "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.1}
CHUNKS = {"1f1b": 1, "interleaved": 2}  # stages of a rank
OURS = [f"{kind}-{schedule}" for kind in ("threads", "mpi") for schedule in CHUNKS]
PEERS = ["torch-1f1b", "torch-interleaved", "deepspeed"]


def ds_config(microbatches):
    return {"train_micro_batch_size_per_gpu": MICRO, "gradient_accumulation_steps": microbatches, "gradient_clipping": 0.0,
            "optimizer": {"type": "AdamW", "params": ADAMW}}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ranks.add_arguments(parser)
    parser.add_argument("--microbatches", type=int, default=4, help="of a step, each of one sample; even")
    parser.add_argument("--contenders", nargs="*", default=[*OURS, "torch-1f1b", "torch-interleaved"])
    parser.add_argument("--deepspeed", metavar="PYTHON", help="a Python with torch and deepspeed; adds deepspeed")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.deepspeed and not args.worker:
        args.contenders.append("deepspeed")
    return args


def plan_of(schedule):
    return WORK / f"{schedule}.dsplan"


# --- the peers: pieces of transformers' GPT-2


def pieces_of(module):
    """The layers that a pipeline is cut from: embedding, blocks, head; and the loss of a micro-batch's logits."""
    import torch
    from torch import nn
    model = module.transformer

    class Embedding(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.positions = model.wte, model.wpe

        def forward(self, ids):
            return self.tokens(ids) + self.positions(torch.arange(ids.shape[1]))

    class Block(nn.Module):
        def __init__(self, block):
            super().__init__()
            self.block = block

        def forward(self, x):
            result = self.block(x)
            return result[0] if isinstance(result, tuple) else result

    class Head(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.head = model.ln_f, module.lm_head

        def forward(self, x):
            return self.head(self.norm(x))

    def loss(logits, labels):
        return nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())

    return [Embedding(), *map(Block, model.h), Head()], loss


def batches(microbatches):
    """step -> its (inputs, labels), all micro-batches together."""
    from safetensors.torch import load_file
    columns = load_file(WORK / "data.safetensors")
    size = MICRO * microbatches
    rows = lambda step: [(step * size + i) % SAMPLES for i in range(size)]
    return lambda step: (columns["input_ids"][rows(step)], columns["labels"][rows(step)])


def worker(args):
    module = ranks.peer_module(MODEL)
    make = deepspeed_step if args.worker == "deepspeed" else torch_step
    ranks.measure(args, make(module, args))


def torch_step(module, args):
    import torch
    import torch.distributed as dist
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleInterleaved1F1B
    dist.init_process_group("gloo")
    rank, schedule = dist.get_rank(), args.worker.removeprefix("torch-")
    layers, loss = pieces_of(module)
    stages = RANKS * CHUNKS[schedule]
    bounds = [0, *(1 + BLOCKS * s // stages for s in range(1, stages)), len(layers)]
    own = {s: torch.nn.Sequential(*layers[bounds[s]:bounds[s + 1]]) for s in range(rank, stages, RANKS)}
    tied = own[0][0].tokens if rank == 0 else own[stages - 1][-1].head  # the two copies of the embedding
    tied.weight = torch.nn.Parameter(tied.weight.detach().clone())
    made = [PipelineStage(part, s, stages, torch.device("cpu")) for s, part in own.items()]
    runner = (ScheduleInterleaved1F1B(made, args.microbatches, loss_fn=loss) if schedule == "interleaved"
              else Schedule1F1B(made[0], args.microbatches, loss_fn=loss))
    optimizer = torch.optim.AdamW([p for part in own.values() for p in part.parameters()], **ADAMW, fused=True)
    batch_of = batches(args.microbatches)

    def step(index):
        ids, labels = batch_of(index)
        optimizer.zero_grad(set_to_none=True)
        losses = []
        if rank == 0:
            runner.step(ids, return_outputs=False)
        else:
            runner.step(target=labels, losses=losses, return_outputs=False)
        dist.all_reduce(tied.weight.grad)
        optimizer.step()
        mean = torch.stack(losses).mean().detach() if losses else torch.zeros(())
        dist.broadcast(mean, RANKS - 1)
        return mean.item()
    return step


def deepspeed_step(module, args):
    import deepspeed
    import torch
    from deepspeed.pipe import PipelineModule, TiedLayerSpec
    deepspeed.init_distributed(dist_backend="gloo", verbose=False)
    layers, loss = pieces_of(module)
    embedding, *blocks, head = layers

    class Tokens(torch.nn.Module):
        """The tied matrix: a copy on the first stage looks tokens up, one on the last makes logits."""
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(embedding.tokens.weight.detach().clone())

        def forward(self, ids):
            return self.weight[ids] if not ids.is_floating_point() else torch.nn.functional.linear(ids, self.weight)

    class Positions(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.positions = embedding.positions

        def forward(self, x):
            return x + self.positions(torch.arange(x.shape[1]))

    tokens = lambda: TiedLayerSpec("tokens", Tokens, tied_weight_attr=["weight"])
    model = PipelineModule(layers=[tokens(), Positions(), *blocks, head.norm, tokens()], num_stages=RANKS, loss_fn=loss,
                           partition_method="parameters", activation_checkpoint_interval=0)
    engine, *_ = deepspeed.initialize(model=model, model_parameters=list(model.parameters()), config=ds_config(args.microbatches))
    batch_of = batches(args.microbatches)
    parts = (part for index in itertools.count() for part in zip(*(column.split(MICRO) for column in batch_of(index))))
    return lambda index: engine.train_batch(data_iter=parts).item()


# --- the table


def run_contender(args, contender):
    kind, _, schedule = contender.partition("-")
    if contender in OURS:
        return ranks.run_ours(args, WORK, kind == "mpi", plan_of(schedule))
    return ranks.run_peer(args, __file__, contender, "--microbatches", args.microbatches)


def main():
    args = parse()
    if args.worker:
        return worker(args)
    ranks.make_work(WORK, MODEL, VOCABULARY, SAMPLES, SEQ)
    for schedule, chunks in CHUNKS.items():
        if any(name.endswith(f"-{schedule}") for name in args.contenders if name in OURS):
            pipeline = {"stages": RANKS, "schedule": schedule, "chunks": chunks}
            ranks.compile_plan(WORK, {**ds_config(args.microbatches), "deepstatic": {"pipeline": pipeline}}, plan_of(schedule))
    results, failures = rounds.interleave({contender: partial(run_contender, args, contender) for contender in args.contenders}, args.rounds)
    rates = ranks.rates_of(results, MICRO * args.microbatches * SEQ)
    ranks.print_rates(f"30M GPT, {args.microbatches} micro-batches of {MICRO} x {SEQ}, fp32, {RANKS} ranks of one thread", results, failures,
                      rates)
    for name in (contender for contender in results if contender in OURS):
        ranks.print_ratios(rates, name, PEERS)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
