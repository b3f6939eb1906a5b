"""What draws have found and what became of it: (what was drawn, what came of it, what was wrong, what changed). docs/drawn.md has the table."""

FOUND = [
    ("bf16 on tile registers (AMX)", "ds-run died by SIGSEGV", "runtime",
     "a compiler may leave unwritten what the intrinsic for the tiles' configuration does not name; it is told now"),
]

# Some of these, made small: (model, configuration). Each is compiled again.
BLOCK = {"heads": 1, "grown": 1, "bias": False, "norm": "none", "act": "Relu", "cell": "RNN", "packed": False}
TOKENS = {"family": "tokens", "width": 4, "tokens": 1, "vocabulary": 5, "blocks": [], "head": "untied", "norm": "none", "positions": False,
          "frozen": "", "transposed": False, "shifted": False, "seed": 0, "open": False, "ends": "loss", "order": "written"}
SMALL = {
    "a recurrent weight's gradient over what dies there": (
        {**TOKENS, "width": 32, "blocks": [{**BLOCK, "kind": "recurrent", "cell": "GRU", "bias": True}]},
        {"deepstatic.pipeline.schedule": "zb-h1", "deepstatic.pipeline.stages": 2, "ranks": 4, "zero_optimization.stage": 2,
         "zero_optimization.reduce_bucket_size": 1}),
    "two parameters of a layer in a bucket that is summed in 16 bits": (
        {**TOKENS, "tokens": 3, "width": 32, "blocks": [{**BLOCK, "kind": "gated", "grown": 2}], "ends": "logits"},
        {"ranks": 4, "deepstatic.pipeline.schedule": "interleaved", "deepstatic.pipeline.stages": 2, "deepstatic.pipeline.chunks": 2,
         "zero_optimization.offload_optimizer.device": "cpu", "zero_optimization.stage": 1, "gradient_accumulation_steps": 2,
         "communication_data_type": "bf16", "deepstatic.loss": "plain"}),
    "a message over a gradient that leaves between layers": (
        {**TOKENS, "width": 48, "vocabulary": 128, "blocks": [{**BLOCK, "kind": "mlp", "grown": 3, "bias": True, "norm": "layer"}]},
        {"ranks": 4, "deepstatic.pipeline.schedule": "interleaved", "deepstatic.pipeline.stages": 2, "deepstatic.pipeline.chunks": 3,
         "zero_optimization.offload_optimizer.device": "cpu", "zero_optimization.stage": 2, "gradient_accumulation_steps": 2,
         "zero_optimization.allgather_bucket_size": 1, "deepstatic.loss_normalization": "tokens"}),
}
