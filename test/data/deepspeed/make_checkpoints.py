"""Writes checkpoints/NAME: what DeepSpeed's own engine saves after 4 steps on two CPU ranks, the float32 weights that its own script reads from
that, and the losses of these 4 steps and of 4 that follow.

`python make_checkpoints.py [--out DIR] [--only NAME]` where deepspeed 0.19.8 and transformers are installed. The model is a tiny GPT-2
with tied embeddings; save_pretrained writes its first weights to checkpoints/gpt2. Rank r of 2
takes samples 4 i + r of step i as its first micro-batch and 4 i + 2 + r as its second.
"""

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
RANKS, MICRO_BATCHES, BEFORE, AFTER, SEQUENCE, WORDS = 2, 2, 4, 4, 8, 48
ADAM = {"type": "AdamW", "params": {"lr": 0.01, "betas": [0.9, 0.97], "eps": 1e-6, "weight_decay": 0.1}}
WARMUP = {"type": "WarmupLR", "params": {"warmup_min_lr": 0.001, "warmup_max_lr": 0.01, "warmup_num_steps": 6, "warmup_type": "linear"}}
CASES = {
    "zero1-bf16": {"bf16": {"enabled": True}, "zero_optimization": {"stage": 1}},
    "zero2-fp16": {"fp16": {"enabled": True, "initial_scale_power": 8, "loss_scale_window": 3}, "zero_optimization": {"stage": 2}},
    "zero3-bf16": {"bf16": {"enabled": True}, "zero_optimization": {"stage": 3, "stage3_param_persistence_threshold": 20, "sub_group_size": 500}},
    "zero3-fp32": {"zero_optimization": {"stage": 3}, "scheduler": WARMUP},
}


def configuration(name):
    return {"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": MICRO_BATCHES, "gradient_clipping": 1.0, "optimizer": ADAM,
            "steps_per_print": 1 << 30, **CASES[name]}


def samples():
    """[steps x 4, SEQUENCE]: words that every machine draws alike."""
    import numpy
    return numpy.random.Generator(numpy.random.Philox(7)).integers(0, WORDS, ((BEFORE + AFTER) * RANKS * MICRO_BATCHES, SEQUENCE))


def model():
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel
    torch.manual_seed(3)
    return GPT2LMHeadModel(GPT2Config(vocab_size=WORDS, n_positions=SEQUENCE, n_embd=8, n_layer=1, n_head=2, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0,
                                      bos_token_id=0, eos_token_id=0)).train()


def rank_main(name, out):
    import deepspeed
    import torch
    import torch.distributed as dist
    torch.set_num_threads(1)
    deepspeed.get_accelerator().is_fp16_supported = lambda: True  # PyTorch's CPU kernels are, for a model like this
    deepspeed.init_distributed(dist_backend="gloo", verbose=False)
    rank, module = dist.get_rank(), model()
    engine, *_ = deepspeed.initialize(model=module, model_parameters=module.parameters(), config=configuration(name))
    data, losses = torch.from_numpy(samples()), []
    for step in range(BEFORE + AFTER):
        if step == BEFORE:
            engine.save_checkpoint(str(out / name), client_state={"author": "somebody"})
        total = 0.0
        for k in range(MICRO_BATCHES):
            ids = data[(step * MICRO_BATCHES + k) * RANKS + rank][None]
            loss = engine(input_ids=ids, labels=ids).loss
            engine.backward(loss)
            engine.step()
            total += loss.item() / MICRO_BATCHES
        everyone = [None] * RANKS
        dist.all_gather_object(everyone, total)
        losses.append(sum(everyone) / RANKS)
    if rank == 0:
        from deepspeed.utils.zero_to_fp32 import get_fp32_state_dict_from_zero_checkpoint
        from safetensors.torch import save_file
        weights = get_fp32_state_dict_from_zero_checkpoint(str(out / name))
        save_file({key: value.contiguous().clone() for key, value in weights.items()}, out / name / "weights.safetensors")
        for script in (out / name).glob("*.py"):  # which do the same
            script.unlink()
        (out / name / "losses.json").write_text(json.dumps({"deepspeed": deepspeed.__version__, "losses": losses}, indent=1) + "\n")
    dist.barrier()
    dist.destroy_process_group()


def spawn(name, out):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    ranks = [subprocess.Popen([sys.executable, __file__, "--out", out, "--only", name],
                              env={**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(RANKS), "DS_ACCELERATOR": "cpu",
                                   "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}) for rank in range(RANKS)]
    if any([rank.wait() for rank in ranks]):
        sys.exit(f"DeepSpeed did not end well on {name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=HERE / "checkpoints")
    parser.add_argument("--only", choices=CASES)
    args = parser.parse_args()
    if "RANK" in os.environ:
        return rank_main(args.only, args.out)
    args.out.mkdir(parents=True, exist_ok=True)
    model().save_pretrained(args.out / "gpt2")
    for name in [args.only] if args.only else CASES:
        shutil.rmtree(args.out / name, ignore_errors=True)
        spawn(name, args.out)


if __name__ == "__main__":
    main()
