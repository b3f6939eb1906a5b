"""What draws have found and what became of it: (what was drawn, what came of it, what was wrong, what changed). docs/drawn.md has the table."""

FOUND = [
    ("partition uniform or parameters", "refused as no regular expression", "plan", "these two words are no expressions"),
    ("a weight that two layers in two stages use", "its gradient is read, which nothing has written", "plan",
     "stages that read a weight and add nothing to its gradient send nothing"),
    ("LayerNorm before a cut, in bf16", "its gradient is read, which nothing has written", "plan",
     "a cast that has a norm's name does not place the norm's gradient"),
    ("a tie under ZeRO 1, layer by layer", "its gradient holds a micro-batch twice", "checker",
     "other ranks add the part of a tie that the first rank adds"),
    ("optimizer state in host memory, 2 stages", "a buffer's life ends before its message has left", "plan",
     "a message waits for copies from what it leaves from"),
    ("optimizer and parameters in host memory, small buckets", "a moment does not hold what is updated", "checker",
     "slices of moments are followed through their copies to the host"),
    ("biases whose outputs are added, ZeRO 2", "the norm is refused", "checker", "gradients that sum up the same are one value"),
    ("communication_data_type and a gradient that is a bucket by itself", "the sum is refused", "checker",
     "it is rounded where it is computed, which is this micro-batch's contribution"),
    ("communication_data_type, ZeRO 0, offload_optimizer", "squares of one rank's part", "plan",
     "squares are taken behind the sum over ranks that the update makes"),
    ("communication_data_type, ZeRO 0, overlap_comm, offload_optimizer", "a kernel reads what nothing has written", "plan",
     "the host adds up no gradient that the backward takes early"),
    ("bf16 and communication_data_type bf16", "the norm is refused", "checker", "a gradient that is a cast keeps that cast where its sum is rounded"),
    ("sub_group_size 1 and offload_optimizer nvme", "no end after minutes", "plan", "a group is at least a whole parameter"),
    ("a norm's weight and bias in two buckets, ZeRO 2, offload_param", "the gradient is refused on other ranks", "checker",
     "what a kernel adds is remembered by operand"),
    ("zb-h1, ZeRO 2, a GRU's weight that fills its bucket", "its sum lacks a micro-batch", "checker", "what is summed may lie in a slot"),
    ("one weight in three or more places, 2 stages", "a stage adds what no op computes", "checker",
     "a stage's part is any of the terms of the whole sum"),
    ("a layer with a bias that two stages use, ZeRO 1 to 3", "the norm or the gradient is refused", "checker",
     "parts are known in buckets of several parameters, and in every rank's slice"),
    ("interleaved, offload_optimizer, two parameters of a stage in a bucket", "a gradient is read, which nothing has written", "plan",
     "all uses of a gradient move; the walk along them lost some"),
    ("interleaved, offload_optimizer, communication_data_type", "squares of one rank's part; the sum is read before it has left", "plan",
     "squares stay behind the update's sum, and the gradient leaves before it"),
    ("interleaved, offload_optimizer, loss_normalization tokens", "a message is written over a gradient that still leaves", "plan",
     "what is received once a step waits for the start before it, too"),
    ("deepstatic.offload to nvme, too little memory", "says that no nvme_path is given", "configuration",
     "the resolved configuration keeps nvme_path"),
    ("a smoothed loss, partition type:blocks", "the loss is sent, which nothing has written", "plan",
     "an evaluation writes what it measures where the forward does"),
    ("bf16 on tile registers (AMX)", "ds-run died by SIGSEGV", "runtime",
     "a compiler may leave unwritten what the intrinsic for the tiles' configuration does not name; it is told now"),
    ("delayed updates on the host beside two micro-batches, interleaved", "an update waits for ever", "plan",
     "what a routine of the first micro-batch issues is awaited at its end"),
    ("a gathered weight and an activation sent at once, ZeRO 3, bf16", "the next gather is written over the message", "plan",
     "a message leaves from what the fragment keeps, not from what it was copied from"),
    ("accumulate-by-layer, two sizes of a dimension", "a stage that is not there", "plan", "each size says its own stages"),
    ("two sizes of a dimension, of which one is too small to leave the device", "refused: queues or arenas differ", "plan",
     "each size has the queues and arenas of all"),
    ("--without ds-elide-copies, moments in files, ZeRO 1, communication_data_type", "a moment does not hold its slice on rank 1", "checker",
     "what is not followed on a rank says nothing against it"),
    ("a recurrent layer cut after its weight is read, a tied head, ZeRO 1", "a stage's sum lacks a micro-batch", "checker",
     "a stage that leaves a gradient to another has zeros; the update asks for the whole"),
    ("a thousand weights side by side", "minutes of moves that lower a peak", "plan", "commands that moves place are counted, and bounded"),
    ("bf16, --without ds-regroup-attention", "is_nan has no precision", "configuration", "its row has the op's name; a test compares them all"),
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
    "an evaluation's loss in front of the last stage": (
        {**TOKENS, "width": 16, "blocks": [{**BLOCK, "kind": "repeat"}], "head": "pooled", "ends": "logits"},
        {"ranks": 2, "deepstatic.pipeline.schedule": "interleaved", "deepstatic.pipeline.stages": 2, "deepstatic.pipeline.chunks": 2,
         "deepstatic.pipeline.partition": "type:blocks", "precision": "bf16", "deepstatic.loss": "smoothed", "gradient_accumulation_steps": 2}),
    "an update that waits for more calls than there are": (
        {"family": "exported", "name": "vit", "seed": 0},
        {"ranks": 4, "deepstatic.pipeline.schedule": "interleaved", "deepstatic.pipeline.stages": 2, "deepstatic.pipeline.chunks": 2,
         "zero_optimization.stage": 3, "zero_optimization.offload_optimizer.device": "cpu", "deepstatic.delayed_update": True,
         "gradient_accumulation_steps": 2}),
    "a gathered weight that leaves beside an activation": (
        {**TOKENS, "family": "images", "blocks": [{**BLOCK, "kind": "residual"}, {**BLOCK, "kind": "residual", "act": "Gelu"}]},
        {"ranks": 4, "deepstatic.pipeline.stages": 2, "deepstatic.pipeline.partition": "parameters", "zero_optimization.stage": 3,
         "zero_optimization.reduce_bucket_size": 1, "zero_optimization.stage3_param_persistence_threshold": 0,
         "zero_optimization.stage3_max_live_parameters": 0, "precision": "bf16", "gradient_accumulation_steps": 2}),
    "layer by layer, with as many layers as a size can be cut into": (
        {**TOKENS, "width": 8, "vocabulary": 17, "tokens": 8, "open": True, "ends": "logits"},
        {"deepstatic.pipeline.schedule": "accumulate-by-layer", "gradient_accumulation_steps": 2, "precision": "bf16", "deepstatic.loss": "plain",
         "--dim": "seq=4,8"}),
    "a size whose tensors are too small to leave": (
        {**TOKENS, "vocabulary": 16, "tokens": 8, "open": True},
        {"zero_optimization.offload_param.device": "cpu", "--dim": "seq=4,8", "ranks": 2, "zero_optimization.stage": 1}),
    "moments of another rank that are copied once more": (
        {**TOKENS, "open": True, "ends": "logits", "tokens": 8},
        {"ranks": 2, "optimizer": "Adagrad", "zero_optimization.offload_optimizer.device": "nvme", "zero_optimization.offload_param.device": "cpu",
         "deepstatic.loss": "plain", "--without": "ds-elide-copies", "--dim": "seq=4", "zero_optimization.stage": 1,
         "communication_data_type": "bf16"}),
    "a stage that reads a weight and leaves its gradient to another": (
        {**TOKENS, "head": "tied", "blocks": [{**BLOCK, "kind": "recurrent"}, {**BLOCK, "kind": "repeat"}]},
        {"ranks": 4, "zero_optimization.stage": 1, "deepstatic.pipeline.stages": 2}),
    "attention in 16 bits that is not taken together": (
        {"family": "exported", "name": "bert", "seed": 0}, {"precision": "bf16", "--without": "ds-regroup-attention"}),
}
