//===- KeyTable.cpp - docs/config.md --------------------------------------===//
#include "compiler/config/AutoValues.h"
#include "compiler/config/KeyRules.h"
#include "compiler/config/KnownKeys.h"
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace ds::config {
namespace {

std::string escaped(std::string_view text) {
  std::string cell;
  for (char c : text) {
    if (c == '|')
      cell += '\\';
    cell += c;
  }
  return cell;
}

std::string code(std::string_view text) { return text.empty() ? "" : "`" + escaped(text) + "`"; }

std::string treatmentOf(const KnownKey &key) {
  if (key.removed)
    return "rejected: DeepSpeed has removed it";
  if (!key.alias.empty())
    return "another name of " + code(key.alias);
  const KeyRule rule = ruleFor(key.path);
  const std::string note = rule.note.empty() ? "" : ": " + std::string(rule.note);
  if (rule.treatment == Treatment::Honoured)
    return "honoured" + note;
  if (rule.treatment == Treatment::Subsumed)
    return "subsumed" + note;
  std::string cell = "only " + code(key.fallback);
  if (key.path == "weight_quantization.enabled")
    cell = "only `false`";
  else if (!rule.also.empty())
    cell += " and " + code(rule.also);
  for (const OffSwitch &off : offSwitches())
    if (governs(off, key.path))
      cell += "; any while " + code(std::string(off.section) + "." + std::string(off.key)) + " is " + code(off.off);
  return cell + note;
}

void appendRow(std::string &page, std::initializer_list<std::string> cells) {
  for (const std::string &cell : cells) {
    page += "| ";
    page += cell;
    page += ' ';
  }
  page += "|\n";
}

void appendKeys(std::string &page) {
  page += "| key | type | default | what ds-opt does |\n|---|---|---|---|\n";
  for (const KnownKey &key : knownKeys()) {
    // What optimizers and schedulers take stands in tables of its own.
    if (key.path.starts_with("optimizer.params.") || key.path.starts_with("scheduler.params."))
      continue;
    const std::string fallback = key.removed || !key.alias.empty() ? "" : code(key.fallback);
    appendRow(page, {code(key.path), escaped(key.type), fallback, treatmentOf(key)});
  }
}

void appendParameters(std::string &page, std::string_view title, std::span<const Parameter> parameters) {
  page += "\n### " + std::string(title) + "\n| parameter | type | default | what ds-opt does |\n|---|---|---|---|\n";
  for (const Parameter &parameter : parameters) {
    const bool only = parameter.treatment == Treatment::DefaultOnly;
    const std::string note = parameter.note.empty() ? "" : ": " + std::string(parameter.note);
    const std::string fallback = parameter.key.fallback.empty() ? "required" : code(parameter.key.fallback);
    const std::string treatment = only                                         ? "only " + code(parameter.key.fallback)
                                  : parameter.treatment == Treatment::Subsumed ? "subsumed"
                                                                               : "honoured";
    appendRow(page, {code(parameter.key.path), escaped(parameter.key.type), fallback, treatment + note});
  }
}

void appendAutos(std::string &page) {
  page += R"(
## "auto"
The Hugging Face Trainer fills in `"auto"` from its arguments and its model. `ds-opt` takes it from flags and the graph, prints what each
became, and `ds-opt report` has it as the key's value, with a note. For example, for GPT-2 124M and `--dim batch=2`:

    auto: zero_optimization.reduce_bucket_size is 589824 (the model's hidden size 768 squared)

The hidden size h is the side that most matrices among the trained parameters have; of equally common ones, the longest. Where nothing says
what `"auto"` stands for, the key is rejected with a line to paste. `--set` overrides an `"auto"` as it does any value.

)";
  appendRow(page, {"key", "`\"auto\"` stands for"});
  appendRow(page, {"---", "---"});
  for (const AutoRule &rule : autoRules())
    appendRow(page, {code(rule.path), std::string(rule.meaning)});
  page += "| keys with an `\"auto\"` of their own | as the table below says |\n| any other | DeepSpeed's default "
          "|\n\n## Keys\n";
}

constexpr std::string_view introduction = R"(# The configuration, key by key

`ds-opt --config` reads a DeepSpeed `ds_config.json`: HJSON, so comments, trailing commas and bare keys are fine and a key
that stands twice in one object is an error. Every key that you write gets one of three answers, shown by `ds-opt report`:

- **honoured**: ds-opt does what it says;
- **subsumed**: there is nothing to do for it, and the note says why;
- **rejected**: the compilation stops and names the key, the reason, and for a key that does not exist the nearest that does.

"only `x`" means that `x`, which asks for nothing, is accepted. Any other value is rejected, because what it asks for is not
available yet. "any while `k` is `v`" means that the key has no effect then. `--set key.path=value` overrides a key, `--set key.path=null` leaves
it out. A value under `"deepstatic"` and `ds-opt`'s own flags (`--ranks`, `--dim batch=N`, `--device-memory`) win over the file.

## Batch sizes
`train_batch_size = train_micro_batch_size_per_gpu x gradient_accumulation_steps x ranks`. Two of the first three give the
third; `train_batch_size` or `train_micro_batch_size_per_gpu` alone means one accumulation step. A division that leaves a
remainder, or three values that disagree, are rejected with the values.

## ZeRO
`zero_optimization.stage` 1 with one accumulation step is laid out as 2 is: gradients are reduced in the backward, and each rank keeps its slice
of them. With several accumulation steps, each rank keeps whole gradients and reduces them once (`docs/zero.md`).

## Pipeline
`deepstatic.pipeline.stages` (or `pipeline.stages`; not both with different values) is the number of ranks along the pipe; it
divides `--ranks`, and `ranks` above is `--ranks` / stages where each has one tensor rank. The micro-batches of a step are its accumulation steps. With
`"schedule": "interleaved"`, each rank runs `chunks` stages, and the accumulation steps must be divisible by the ranks along the
pipe. `"accumulate-by-layer"` is of one stage: all micro-batches of a layer run before the next layer (`docs/pipeline.md`); with `chunks` above
1, of as many pieces of the model. `"auto"` is of one stage, too: that order where its step is shorter, else one micro-batch after another. `partition` says what the stages share evenly: `"best"` time, `"uniform"` layers, `"parameters"` their bytes,
`"type:REGEX"` layers whose name matches, without regard to case.

## Tensor parallelism
`deepstatic.tensor_parallel.size` (or `tensor_parallel.autotp_size`, or `tensor_parallel.tp.tp_size`; not with different values) is the number of ranks that
share each layer: a weight is cut into so many pieces where the graph allows it. It divides `--ranks` / stages, and `ranks` above is `--ranks` / (stages x
size). Ranks that share layers are neighbours, and read the same samples.

## Recompute
`deepstatic.recompute` says which results the backward computes again instead of keeping them; it changes no bit of the result. `"auto"` is
the least recompute whose plan fits into the device's memory, and none where that is not known. Beside `"offload": "auto"` it is one decision
with what leaves that memory (`docs/offload.md`). `docs/memory.md` explains `"none"`,
`"full"` and a number, the level. `{"REGEX": "recompute"}` chooses ops by name, and `"save"` keeps their results; the first rule that
matches decides. `activation_checkpointing.number_checkpoints` k belongs to `"full"`: k runs of layers are recomputed, each as a whole.

## Delayed updates
`deepstatic.delayed_update` makes each update that of the gradient of the step before, so that the host has a whole step for it. It changes results: plans
with it say that they are stale. It is off unless written, and needs `zero_optimization.offload_optimizer` (`docs/offload.md`).

## Which loss
`deepstatic.loss` puts a loss behind a graph that ends in logits: `"causal-lm"`, `"masked-lm"`, `"token-classification"`, `"classification"`, `"segmentation"`,
`"multi-label"` or `"regression"`, or an object with `kind`, `label_smoothing`, `ignore_index`, `class_weights`, `pos_weight` and `logits`,
or `{"file": "loss.onnx"}`, a graph of its own. `--attach-loss` wins over it. `docs/attach-loss.md` has more.

## How the loss is averaged
`deepstatic.loss_normalization` is `"microbatch"`, the mean of each micro-batch's own mean, as in DeepSpeed, or `"tokens"`: every label that
is not ignored weighs the same in the whole batch, as with `num_items_in_batch` of transformers. `docs/loss.md` has more.

## FP8
`deepstatic.fp8` is `"off"`, `"tensor"` or `"block"`: then linear layers multiply numbers of 8 bits, forward and backward. Each tensor has one
scale, or each block of 128 or 128 x 128 numbers. It needs `bf16.enabled`. On device cuda it needs compute capability 8.9 or more for tensors,
and 9.0 for blocks. It changes losses; `docs/precision.md` has more.

## TF32
`deepstatic.tf32` lets a GPU round the float32 factors of matrix products to TF32, whose mantissa has 10 bits, and sum in float32. It is off
unless written, as `torch.backends.cuda.matmul.allow_tf32` is. It has no effect on a plan for the CPU.

## Learning rate schedules
The learning rate of update j, counted from 0. Let i = j - 1, w = max(2, `warmup_num_steps`) and T = `total_num_steps`. While i < w,
g(i) is ln(i + 1) / ln(w) for `log` and i / w for `linear`. At j = 0 the rate is the minimum (`WarmupCosineLR`: 0).

| type | rate at update j |
|---|---|
| none | `optimizer.params.lr` |
| `WarmupLR` | min + (max - min) g(i) while i < w, then max; max is `optimizer.params.lr` unless written |
| `WarmupDecayLR` | min + (max - min) g(i) while i < w, then with max(0, (T - i) / max(1, T - w)) for g(i); max is 0.001 unless written |
| `WarmupCosineLR` | `lr` times: r + (1 - r) g(i) with r = `warmup_min_ratio` while i < w, then c + (1 - c)(1 + cos(pi q)) / 2 with c = `cos_min_ratio`, q = min(1, (i - w + 1) / max(1, T - w)) |
| `LRRangeTest` | `lr_range_test_min_lr` (1 + `lr_range_test_step_rate` j / `lr_range_test_step_size`); with `lr_range_test_staircase` the quotient is rounded down |
| `OneCycle` | min + (max - min) s(j) while j <= x + y, then min / (1 + `decay_lr_rate` d); min and max are `cycle_min_lr` and `cycle_max_lr` |

In `OneCycle` x is `cycle_first_step_size` and y `cycle_second_step_size`. s(j) is j / x up to j = x and (x + y - j) / y from there on; with a stair
count k it is rounded down to a multiple of 1 / k. d is (j - x - y) / `decay_step_size`, and 0 where that is 0. With `cycle_momentum` the first beta of the
optimizer is `cycle_max_mom` - (`cycle_max_mom` - `cycle_min_mom`) s(j), then `cycle_max_mom` (1 + `decay_mom_rate` d), and at j = 0 `cycle_min_mom`; the second
is 0.99, whatever `betas` says. SGD and Adagrad have no betas: they keep their momentum, as in DeepSpeed. `docs/checkpoints.md` says how `ds-run --set` changes a
schedule when a run goes on; nothing is compiled again for that.

## Parameter groups
For example, no decay for biases and norms, and a tenth of the learning rate for what is left of the embedding:

    "deepstatic": {"parameter_groups": [{"match": "bias$|norm", "weight_decay": 0}, {"match": "wte", "lr_factor": 0.1}]}

`match` is an extended regular expression that is searched for in a parameter's name. The first group that matches decides; its `weight_decay` takes the
place of the optimizer's, and its learning rate is the schedule's times `lr_factor`. A group that has no parameter is rejected. The metric `lr` is the
schedule's. Parameters that are updated alike share buckets, so groups change how gradients travel, and no bit of any sum.

## Clipping
`gradient_clipping` c is the largest global norm of the gradients: with norm n they are divided by max(1, (n + 1e-6) / c). Left out
it is 1.0, as in DeepSpeed since 0.19; 0 turns clipping off.
)";

} // namespace

std::string explainKey(std::string_view path) {
  const KnownKey *key = findKey(path);
  if (!key)
    return "";
  const std::string values = key->values.empty() ? "" : ", one of " + std::string(key->values);
  const std::string fallback =
      key->removed || !key->alias.empty() ? "" : "; " + code(key->fallback) + " where it is left out";
  return std::string(path) + ", a key of ds_config.json\n  " + std::string(key->type) + values + fallback +
         "\nds-opt's answer\n  " + treatmentOf(*key) + "\n";
}

std::string keyTable() {
  std::string page =
      "<!-- Written by test/unit/config/KeyTableTest.cpp (DS_UPDATE_DOCS=1 config_test); do not edit. -->\n";
  page += introduction;
  appendAutos(page);
  appendKeys(page);
  page += "\n## `optimizer.params`\nTypes are compared without regard to case. `Adam` with `adam_w_mode` (the default) "
          "is AdamW. `Lion`'s direction that is 0 moves nothing, as in its paper; DeepSpeed's kernels move by the "
          "learning rate "
          "there, one of them up and another down. `Lamb` updates whole parameters, so it trains with ZeRO stage 0 "
          "alone.\n";
  appendParameters(page, "`AdamW`, `Adam`", optimizerParameters("AdamW"));
  appendParameters(page, "`SGD`", optimizerParameters("SGD"));
  appendParameters(page, "`Adagrad`", optimizerParameters("Adagrad"));
  appendParameters(page, "`Lion`", optimizerParameters("Lion"));
  appendParameters(page, "`Lamb`", optimizerParameters("Lamb"));
  page += "\n## `scheduler.params`\n";
  for (std::string_view type : availableSchedulers())
    appendParameters(page, code(type), schedulerParameters(type));
  return page;
}

} // namespace ds::config
