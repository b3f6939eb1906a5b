//===- Explain.cpp - what a rule, a claim or a hazard means ---------------===//
#include "compiler/certify/Explain.h"

#include "core/Error.h"

#include <string>
#include <string_view>

namespace ds::certify {
namespace {

struct Explanation {
  std::string_view id, holds, example, then;
};

constexpr std::string_view ofCompiler = "A plan that ds-opt compiled breaks this only by a defect of ds-opt: report it "
                                        "with the plan. A plan that was edited or damaged: compile it again.";
constexpr std::string_view ofSources = "Give the files that the plan was compiled from, or compile it again from those "
                                       "that you have. If they are the right ones, it is a defect of ds-opt: report it "
                                       "with plan, model and configuration.";

constexpr Explanation explanations[] = {
    // Rules of the checker (docs/checker.md).
    {"progress",
     "Every queue of every rank comes to the end of every program, whatever the timing: waits are met, collectives are "
     "entered by all ranks in one order, each message has a sender and a receiver.",
     "One rank enters all_gather A and then B, another B and then A. Each waits for the other for ever: a hang that "
     "no rank can explain.",
     ofCompiler},
    {"race", "Two accesses of one byte, one of them a write, are ordered by the order of a queue or by an event.",
     "The feed of micro-batch 2 writes over micro-batch 0's tokens while a kernel may still read them. Whether the "
     "gradients are wrong depends on timing.",
     ofCompiler},
    {"value",
     "What a command reads was written before, into the same buffer, for the same micro-batch or call, and nothing has "
     "written over it since.",
     "The backward of micro-batch 1 finds the activations of micro-batch 2, since both were given one slot.",
     ofCompiler},
    {"coverage",
     "Each gradient holds every micro-batch of every rank once when it is used, and each trained element is updated "
     "once a step.",
     "A parameter that is used twice gets one of its two gradients. The loss looks right, training is worse.",
     ofCompiler},
    {"meaning",
     "Commands compute what the ops of the reference program that they name compute: the kernel, its attributes, and "
     "that each operand holds the value that the op has there.",
     "A loss is divided by the ranks twice. A query is where a key should be. A norm leaves out a stage.", ofCompiler},
    {"numerics",
     "A plan that says it is bit-equal sums gradients in the order of one rank: over ranks by micro-batch, a tied "
     "parameter's parts within each, and not by NCCL.",
     "Each rank adds up four micro-batches and then the ranks are summed, so the last bits are other ones than those "
     "of "
     "one rank, and a comparison with it looks for a bug that is not there.",
     ofCompiler},
    {"memory",
     "No two buffers that are alive at once share bytes, and arenas and reserve fit into the machine's memory.",
     "A workspace lies over an activation that the backward still needs.",
     "Of an overlap: report it with the plan. Of a machine that is too small: ds-opt check says what would fit."},
    {"plan",
     "The file is a plan of this format: every index names something, no operand leaves its buffer, every queue comes "
     "to the end of every program. An error that begins with \"plan FILE:\" is of this rule; ds-run refuses such a "
     "plan, too.",
     "A byte was lost on the way to the cluster, or the plan is of a newer ds-opt.",
     "Copy the file again, or compile it again with the ds-opt that belongs to this ds-run."},
    // Claims by sources (docs/certificate.md).
    {"model", "The .onnx file has the SHA-256 that the plan was compiled from.",
     "The model was exported again after the plan was compiled.", ofSources},
    {"weight_headers", "The headers of safetensors files are those that the plan was compiled from.",
     "A checkpoint was saved over the file; its tensors lie at other offsets now.", ofSources},
    {"parameters", "Names, types, shapes, ties and what is trained are as the model's file says.",
     "Two weights of one shape have exchanged their names, so the exported file loads without an error, and wrong.",
     ofSources},
    {"adapters",
     "Beside each weight that --lora-targets names stand two matrices of the rank that --lora asks for, which begin as "
     "low-rank adapters do; all else is frozen, but for --trainable.",
     "B does not begin at zero, so that training begins with another model than the file's.", ofSources},
    {"first_values", "Training begins with the bytes, or by the rules, that the model's file gives.",
     "A norm's scale begins with its bias's zeros.", ofSources},
    {"inputs", "Inputs have the model's names, types and shapes, and labels are the same or the next token as it says.",
     "Labels are not shifted by one token, and the model learns to copy.", ofSources},
    {"attached_loss",
     "The loss is the one that was asked for: of the model's logits and the input labels, with shift, ignored label "
     "and "
     "label smoothing.",
     "A causal model's labels are not shifted, or padding counts.", ofSources},
    {"graph",
     "The reference program is, op by op, what this ds-opt makes of the model and the configuration: forward, "
     "backward, "
     "evaluation and update.",
     "The epsilon of a norm is another one, in the plan's commands and in its reference program alike. The checker, "
     "which compares the two, finds nothing.",
     ofSources},
    {"configuration", "The ds_config.json has the SHA-256 that the plan was compiled from.",
     "The file was edited, and the plan was not compiled again.", ofSources},
    {"batch", "Micro-batch, accumulation and batch follow from the configuration and the data-parallel ranks.",
     "With 8 ranks instead of 4 the batch doubles in silence.", ofSources},
    {"optimizer", "Each trained parameter is updated once, by the configuration's optimizer with its settings.",
     "eps is 1e-8 where 1e-6 was asked for.", ofSources},
    {"codes",
     "Kernels that the plan carries as PTX were run on drawn numbers, and wrote the bits that their commands' programs "
     "make of them. Which blocks and numbers, the plan's hash decides.",
     "A block in the middle writes nothing.", ofCompiler},
    {"update_program",
     "What a step leaves in parameters, state and metrics is, operand by operand, what the configuration makes of "
     "them, "
     "and all of that state is there under its name, begins as it must, and is saved.",
     "One parameter's gradient is left out of the norm; a moment is called a constant, and no checkpoint has it.",
     ofSources},
    {"clipping", "Gradients are clipped to gradient_clipping, once, by the norm of all of them.",
     "Each stage clips by the norm of its own gradients.", ofSources},
    {"scale", "Gradients and the printed loss are means over all micro-batches of all ranks, scaled once.",
     "The loss is divided by the accumulation steps, and gradients are again.", ofSources},
    {"momentum", "Where the schedule is OneCycle, each update takes the momentum that it sets; else none is set.",
     "beta1 stays at 0.9 while the learning rate rises tenfold.", ofSources},
    {"learning_rate", "The schedule gives the configuration's learning rates, at its edges and between.",
     "Warm-up counts micro-batches instead of updates.", ofSources},
    {"precision",
     "Something is computed in bfloat16 or float16 exactly where bf16 or fp16 is enabled, the loss scaled by fp16's "
     "rule.",
     "bf16 is asked for, and float32 is computed at twice the memory.", ofSources},
    {"reductions", "Ranks sum gradients in the type of communication_data_type, float32 where it is left out.",
     "float32 is asked for, and gradients are rounded to 8 bits of precision on their way.", ofSources},
    {"updates",
     "Each update takes its own step's gradient, learning rate and factor; or, where deepstatic.delayed_update is "
     "true, "
     "all of these of the step before. Such a plan is stale.",
     "Updates of the step before are a step's time faster and train another model, and nobody has asked for them.",
     ofSources},
    {"buckets", "Buckets of several parameters have at most as many elements as the section zero_optimization allows.",
     "\"auto\" is taken from another hidden size than the model's.", ofSources},
    // What exporters lose (compiler/import/Hazards.h).
    {"optimized-export",
     "Each parameter of the module is an initializer of the file, under its PyTorch name, unchanged.",
     "By default torch.onnx.export merges equal small parameters: all fresh norm scales become one, and train as one. "
     "It also transposes and renames weights.",
     "Export with models/export.py, or with torch.onnx.export(..., dynamo=True, optimize=False); or give the module's "
     "weights with --weights FOLDER, whose values say where each parameter is (docs/hugging-face.md)."},
    {"attach-loss", "A plan trains on one scalar; a graph that ends in logits has none.",
     "transformers' exporter and torch.onnx.export write the forward pass of a model without labels.",
     "Let ds-opt put the loss behind the logits: --attach-loss causal-lm, masked-lm, token-classification, "
     "classification, segmentation, "
     "multi-label or regression, or \"deepstatic\": {\"loss\": ...} in the configuration (docs/attach-loss.md). The "
     "data then need "
     "labels."},
    {"folded-constants", "A weight that the exporter computed from others trains as it stands.",
     "The TorchScript exporter writes onnx::MatMul_123, a transposed weight without its name, and convolutions with "
     "their batch normalizations in them: trained values belong to no parameter of the module any more.",
     "Give the module's weights with --weights FOLDER, whose values say which was only transposed, or export with "
     "models/export.py, or with do_constant_folding=False."},
    {"batch-norm-mode", "Batch normalization of a module in training mode is written in training mode.",
     "The dynamo exporter writes it in inference mode: it normalizes by running statistics that never change, and a "
     "ResNet trains to another loss.",
     "Export with models/export.py, which translates it right. --batch-norm=train trains it as the module did, "
     "--batch-norm=as-written keeps the statistics as they are."},
    {"dropout-mode", "A dropout with a ratio says whether it is for training.",
     "Of scaled_dot_product_attention(dropout_p=0.1) the exporter writes a Dropout that drops nothing: the model "
     "overfits, and no error says why.",
     "Export with attn_implementation=\"eager\" and model.train(). --dropout=force drops as the ratio says, "
     "--dropout=as-written as the file says, --dropout=off never."},
    {"label-smoothing", "The loss has the label_smoothing of the module's loss.",
     "cross_entropy(..., label_smoothing=0.1) is exported without it: 2.106 where PyTorch has 2.037.",
     "Set label_smoothing=0, or write the smoothed loss out in the module: "
     "0.9 * cross_entropy - 0.1 * log_softmax.mean()."},
    {"past-keys", "A training step reads whole sequences, and no keys and values of earlier tokens.",
     "A model with a cache was exported as generation runs it: one token, and the keys and values of those before it.",
     "Inputs such as past_key_values.0.key are cut off by a length of 0, where a symbolic dimension counts their "
     "tokens. Where their number is fixed, the graph is that of a later token: export the model again with "
     "use_cache=False (docs/attach-loss.md)."},
    {"fixed-batch", "The first dimension of every input is the micro-batch's, under one name.",
     "With an example batch of 1, torch.export fixes the dimension at 1 and says nothing; the model then takes one "
     "sample at a time. ds-opt opens it where all that is computed of the inputs has a part for each sample.",
     "Export with an example batch of 2 or more, and with dynamic_shapes that call dimension 0 of every input "
     "'batch'."},
};

} // namespace

std::string explain(const std::string &id) {
  std::string known;
  for (const Explanation &one : explanations) {
    if (one.id == id)
      return id + "\n  " + std::string(one.holds) + "\nfor example\n  " + std::string(one.example) + "\nthen\n  " +
             std::string(one.then) + "\n";
    known += (known.empty() ? "" : ", ") + std::string(one.id);
  }
  throw Error("ds-opt explain knows no '" + id + "'; it explains " + known +
              ", and every key of ds_config.json, such as zero_optimization.stage");
}

} // namespace ds::certify
