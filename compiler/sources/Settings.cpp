//===- Settings.cpp - whether a plan computes what its configuration asks -===//
#include "compiler/sources/Settings.h"

#include "compiler/sources/ConfigFile.h"
#include "compiler/sources/LearningRate.h"
#include "compiler/sources/LossScale.h"
#include "compiler/sources/ReferenceOps.h"
#include "compiler/sources/Sources.h"
#include "compiler/sources/Targets.h"
#include "compiler/sources/UpdateProgram.h"
#include "core/DType.h"
#include "core/Error.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Mesh.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace ds::sources {
namespace {

namespace proto = plan::proto;

std::string text(double number) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.9g", number);
  return buffer;
}

[[noreturn]] void refuse(const std::string &what, double has, double wanted, const std::string &why) {
  throw Error(what + " is " + text(has) + " in the plan, but " + text(wanted) + " by " + why);
}

void requireEqual(const std::string &what, double has, double wanted, const std::string &why) {
  if (has != wanted)
    refuse(what, has, wanted, why);
}

Claim batches(const proto::Plan &plan, const ConfigFile &config) {
  const proto::Training &training = plan.training();
  const std::string why = "the configuration, for " + std::to_string(plan::batchRanks(plan)) + " data-parallel ranks";
  requireEqual("train_micro_batch_size_per_gpu", double(training.micro_batch_size()), double(config.microBatch), why);
  requireEqual("gradient_accumulation_steps", double(training.accumulation_steps()), double(config.accumulation), why);
  requireEqual("train_batch_size", double(training.train_batch_size()), double(config.trainBatch), why);
  return {"batch", "a step takes " + std::to_string(config.trainBatch) + " samples: " +
                       std::to_string(config.accumulation) + " micro-batches of " + std::to_string(config.microBatch) +
                       " on each of " + std::to_string(plan::batchRanks(plan)) + " data-parallel ranks"};
}

/// The parameter that an update is of.
std::string parameterOf(const proto::Plan &plan, const proto::ReferenceOp &update) {
  for (const uint32_t variable : update.variables())
    if (plan.variables(int(variable)).kind() == proto::Variable::PARAMETER)
      return plan.variables(int(variable)).name();
  return "";
}

void requireUpdate(const proto::Plan &plan, const ConfigFile &config, const proto::ReferenceOp &op) {
  const std::string name = parameterOf(plan, op);
  const Group *group = groupOf(config, name);
  const std::string why = group ? "group \"" + group->match + "\" of the configuration" : "the configuration";
  for (const auto &[setting, wanted] : config.settings)
    requireEqual(setting + " of " + name, numberOf(op, setting),
                 group && setting == "weight_decay" ? group->decay : wanted, why);
}

Claim optimizer(const proto::Plan &plan, const ConfigFile &config) {
  std::set<std::string> updated;
  for (const char *kind : {"adamw", "sgd", "adagrad", "lion", "lamb"})
    for (const proto::ReferenceOp *op : opsOf(plan, std::string("train.") + kind)) {
      const std::string name = parameterOf(plan, *op);
      if (kind != config.optimizer)
        throw Error("the plan updates " + name + " by " + kind + ", but optimizer.type asks for " + config.optimizer);
      requireUpdate(plan, config, *op);
      if (!updated.insert(name).second)
        throw Error("the reference program of the plan updates " + name + " twice");
    }
  for (const proto::Variable &variable : plan.variables())
    if (variable.trainable() && !updated.contains(variable.name()))
      throw Error("the plan says that " + variable.name() + " is trained, but its reference program never updates it");
  std::string settings;
  for (const auto &[name, value] : config.settings)
    settings += ", " + name + " " + text(value);
  return {"optimizer", "each of " + std::to_string(updated.size()) + " trained parameters is updated by " +
                           config.optimizer + settings +
                           (config.groups.empty()
                                ? ""
                                : ", but as " + std::to_string(config.groups.size()) + " groups of parameters say")};
}

Claim clipping(const proto::Plan &plan, const ConfigFile &config) {
  const auto factors = opsOf(plan, "train.clip_factor");
  if (factors.size() != (config.clip > 0 ? 1 : 0))
    throw Error("the plan clips gradients " + std::to_string(factors.size()) + " times, but gradient_clipping is " +
                text(config.clip));
  if (!factors.empty())
    requireEqual("gradient_clipping", numberOf(*factors[0], "max_norm"), config.clip, "the configuration");
  return {"clipping", config.clip > 0 ? "gradients are clipped to a global norm of " + text(config.clip)
                                      : "gradients are not clipped"};
}

/// The mean over all micro-batches: gradients by their seed, the loss by a division of its sum. Or that over all
/// targets.
Claim scale(const proto::Plan &plan, const ConfigFile &config) {
  const double microbatches = double(config.accumulation * plan::batchRanks(plan));
  const auto seeds = opsOf(plan, "train.loss_gradient");
  if (seeds.size() != 1)
    throw Error("the reference program of the plan begins its backward pass " + std::to_string(seeds.size()) +
                " times; it must be once");
  if (config.tokens) {
    requireEqual("the scale of gradients", numberOf(*seeds[0], "scale"), 1, "deepstatic.loss_normalization");
    return {"scale", requireTargets(plan)};
  }
  const std::string why = "1 / (gradient_accumulation_steps * data-parallel ranks)";
  requireEqual("the scale of gradients", numberOf(*seeds[0], "scale"), 1 / microbatches, why);
  return {"scale", "gradients and the loss are means over " + text(microbatches) + " micro-batches, scaled once"};
}

Cycle cycleOf(const proto::ReferenceOp &op) {
  const auto count = [&](std::string_view name) { return int64_t(numberOf(op, name)); };
  return {.up = count("cycle_first_step_size"),
          .down = count("cycle_second_step_size"),
          .upStairs = count("cycle_first_stair_count"),
          .downStairs = count("cycle_second_stair_count"),
          .decay = count("decay_step_size")};
}

/// What the plan's reference program says of its learning rate.
Schedule scheduleOf(const proto::ReferenceOp &op) {
  Schedule said{.type = textOf(op, "schedule"),
                .linear = textOf(op, "warmup_type") == "linear",
                .lr = numberOf(op, "lr"),
                .least = numberOf(op, "warmup_min_lr"),
                .most = numberOf(op, "warmup_max_lr"),
                .leastRatio = numberOf(op, "warmup_min_ratio"),
                .cosineRatio = numberOf(op, "cos_min_ratio"),
                .warmup = int64_t(numberOf(op, "warmup_num_steps")),
                .total = int64_t(numberOf(op, "total_num_steps"))};
  if (said.type == "LRRangeTest") {
    said.least = numberOf(op, "lr_range_test_min_lr");
    said.slope = numberOf(op, "lr_range_test_step_rate");
    said.length = std::max<int64_t>(1, int64_t(numberOf(op, "lr_range_test_step_size")));
    said.stairs = numberOf(op, "lr_range_test_staircase") != 0;
  } else if (said.type == "OneCycle") {
    said.least = numberOf(op, "cycle_min_lr");
    said.most = numberOf(op, "cycle_max_lr");
    said.slope = numberOf(op, "decay_lr_rate");
    said.cycle = cycleOf(op);
  }
  return said;
}

/// Every update takes the schedule's momentum, or none does.
Claim momentum(const proto::Plan &plan, const ConfigFile &config) {
  const auto cycled = opsOf(plan, "train.cycled_momentum");
  if (cycled.size() != (config.momentum.on ? 1 : 0))
    throw Error("the reference program of the plan cycles its momentum " + std::to_string(cycled.size()) +
                " times, but the configuration asks for " + (config.momentum.on ? "one cycle" : "none"));
  if (cycled.empty())
    return {"momentum", "no schedule changes the momentum"};
  const CycledMomentum said{.on = true,
                            .least = numberOf(*cycled[0], "cycle_min_mom"),
                            .most = numberOf(*cycled[0], "cycle_max_mom"),
                            .slope = numberOf(*cycled[0], "decay_mom_rate"),
                            .cycle = cycleOf(*cycled[0])};
  const std::vector<int64_t> updates = sampledUpdates(config.schedule);
  for (const int64_t update : updates)
    requireEqual("the momentum of update " + std::to_string(update), cycledMomentum(said, update),
                 cycledMomentum(config.momentum, update), "the configuration");
  return {"momentum", "momenta of " + std::to_string(updates.size()) + " updates follow from the configuration"};
}

Claim learningRates(const proto::Plan &plan, const ConfigFile &config) {
  const auto ops = opsOf(plan, "train.learning_rate");
  if (ops.size() != 1)
    throw Error("the reference program of the plan computes its learning rate " + std::to_string(ops.size()) +
                " times; it must be once");
  const Schedule said = scheduleOf(*ops[0]);
  const std::vector<int64_t> updates = sampledUpdates(config.schedule);
  for (const int64_t update : updates)
    requireEqual("the learning rate of update " + std::to_string(update), learningRate(said, update),
                 learningRate(config.schedule, update), "the configuration");
  return {"learning_rate", "the schedule is " + config.schedule.type + "; learning rates of " +
                               std::to_string(updates.size()) + " updates from 0 to " + std::to_string(updates.back()) +
                               " follow from the configuration"};
}

/// Whether products are of 8 bits; throws where not as the configuration asks.
bool requireFp8(const proto::Plan &plan, const std::string &asked) {
  bool has = false;
  for (const proto::ReferenceOp &op : plan.reference().ops()) {
    if (op.op() != "train.fp8_matmul")
      continue;
    has = true;
    if (const bool isBlocked = !textOf(op, "a_block").empty(); asked != (isBlocked ? "block" : "tensor"))
      throw Error("the plan multiplies numbers of 8 bits with a scale for each " +
                  std::string(isBlocked ? "block" : "tensor") + ", but deepstatic.fp8 is \"" + asked + "\"");
  }
  return has;
}

/// Values of the reference program that gradients are summed from, or that are read from such sums.
std::set<uint32_t> valuesOfSums(const proto::Plan &plan) {
  std::set<uint32_t> values;
  for (const proto::ReferenceOp &op : plan.reference().ops()) {
    const bool isSum = (op.op() == "train.accumulate" || op.op() == "train.store") &&
                       plan.variables(int(op.variables(0))).kind() == proto::Variable::GRADIENT;
    if (isSum || op.op() == "train.read")
      values.insert(isSum ? op.operands(0) : op.results(0));
  }
  return values;
}

/// What gradients are summed in.
std::string sumsOf(const proto::Plan &plan) {
  for (const proto::Variable &variable : plan.variables())
    if (variable.kind() == proto::Variable::GRADIENT && variable.dtype() == proto::DTYPE_BF16)
      return "bf16";
    else if (variable.kind() == proto::Variable::GRADIENT && variable.dtype() == proto::DTYPE_F16)
      return "fp16";
  return "fp32";
}

/// Trained parameters are kept in the type that the configuration asks for; those of float64 models stay float64.
void requireMasters(const proto::Plan &plan, const ConfigFile &config) {
  const proto::DType wanted = config.masters == "bf16"   ? proto::DTYPE_BF16
                              : config.masters == "fp16" ? proto::DTYPE_F16
                                                         : proto::DTYPE_F32;
  const std::string type = config.fp16 ? "fp16" : "bf16";
  for (const proto::Variable &variable : plan.variables())
    if (variable.trainable() && variable.dtype() != wanted && variable.dtype() != proto::DTYPE_F64)
      throw Error("the plan keeps " + variable.name() + " in " + std::string(name(DType(variable.dtype()))) + ", but " +
                  type + "." + type + "_master_weights_and_grads is " + (config.masters == "fp32" ? "false" : "true"));
}

/// What is narrow in a plan is of the one type that the configuration asks for, and so are sums of gradients.
Claim precision(const proto::Plan &plan, const ConfigFile &config) {
  const bool areFloats = std::ranges::any_of(plan.variables(), [](const proto::Variable &variable) {
    return variable.trainable() && variable.dtype() != proto::DTYPE_F64;
  });
  requireMasters(plan, config);
  if (const std::string sums = sumsOf(plan); areFloats && sums != config.sums)
    throw Error("the plan sums gradients in " + sums + ", but data_types.grad_accum_dtype is \"" + config.sums + "\"");
  if (areFloats && (config.sums != "fp32" || config.masters != "fp32") && plan.numerics() != "lossy")
    throw Error("the plan says that its numerics are " + plan.numerics() +
                ", but sums or parameters of 16 bits make them lossy");
  const std::set<uint32_t> ofSums = valuesOfSums(plan);
  const auto computesIn = [&](proto::DType dtype) {
    for (int i = 0; i < plan.reference().values_size(); ++i)
      if (plan.reference().values(i).dtype() == dtype && !ofSums.contains(uint32_t(i)))
        return true;
    return false;
  };
  const auto require = [&](proto::DType dtype, const std::string &name, const std::string &key, bool wanted) {
    if (const bool narrow = computesIn(dtype); narrow != wanted)
      throw Error("the plan computes " + std::string(narrow ? "" : "nothing ") + "in " + name + ", but " + key +
                  ".enabled is " + (wanted ? "true" : "false"));
  };
  require(proto::DTYPE_BF16, "bfloat16", "bf16", config.bf16);
  require(proto::DTYPE_F16, "float16", "fp16", config.fp16.has_value());
  const bool hasFp8 = requireFp8(plan, config.fp8);
  std::string sums =
      config.sums == "fp32" ? "" : "; gradients are summed in " + config.sums + ", as data_types.grad_accum_dtype asks";
  if (config.masters != "fp32")
    sums = "; parameters are kept and gradients summed in " + config.masters + ", as " + config.masters + "." +
           config.masters + "_master_weights_and_grads asks" +
           (config.narrowMoments ? ", and moments, as bf16.bf16_optimizer_states asks" : "");
  if (config.fp16)
    return {"precision",
            "activations are float16, as fp16.enabled asks, and " + requireLossScale(plan, *config.fp16) + sums};
  if (!config.bf16)
    return {"precision", "nothing is computed in 16 bits" + sums};
  return {"precision", std::string("activations are bfloat16, as bf16.enabled asks") +
                           (hasFp8 ? ", and linear layers multiply 8 bits, as deepstatic.fp8 asks" : "") + sums};
}

/// Ranks sum in the type that the configuration asks for; losses, and sums of squares, in float32 and float64 always.
/// Ranks of one micro-batch add up activations in the type that those have.
Claim reductions(const proto::Plan &plan, const ConfigFile &config) {
  const plan::AxisSet batch = plan::batchAxes(plan);
  const auto sumsIn = [&](proto::DType dtype) {
    for (const proto::Role &role : plan.roles())
      for (const proto::Routine &routine : role.routines())
        for (const proto::Command &command : routine.commands())
          for (const proto::CollectivePart &part : command.collective().parts())
            if (part.source().dtype() == dtype && command.collective().kind() != proto::CollectiveCommand::ALL_GATHER &&
                plan::axesOf(plan, command.collective().communicator()) - batch !=
                    plan::axesOf(plan, command.collective().communicator()))
              return true;
    return false;
  };
  const bool shares = plan::batchRanks(plan) > 1;
  for (const auto &[dtype, name] : {std::pair(proto::DTYPE_BF16, "bf16"), std::pair(proto::DTYPE_F16, "fp16")})
    if (const bool wanted = shares && config.reductionType == name; sumsIn(dtype) != wanted)
      throw Error("the plan sums " + std::string(wanted ? "nothing" : "gradients") + " over ranks in " + name +
                  ", but communication_data_type is \"" + config.reductionType + "\"");
  const std::string &type = shares ? config.reductionType : config.sums;
  return {"reductions", "ranks sum gradients in " + (type == "fp32" && !shares ? "float32" : type) +
                            ", as communication_data_type asks"};
}

/// Each takes this step's gradient and scalars, or all take those of the step before (UpdateProgram.cpp).
Claim updates(const proto::Plan &plan, const ConfigFile &config) {
  if (plan.stale() != config.delayed)
    throw Error(std::string("the updates of the plan are of ") + (plan.stale() ? "the step before" : "their own step") +
                ", but deepstatic.delayed_update is " + (config.delayed ? "true" : "false"));
  return {"updates", plan.stale() ? "updates are stale: each is of the gradient and the scalars of the step before, as "
                                    "deepstatic.delayed_update asks"
                                  : "each update is of its own step's gradient"};
}

Claim buckets(const proto::Plan &plan, const ConfigFile &config) {
  if (plan::batchRanks(plan) == 1)
    return {"buckets", "one data-parallel rank has nobody to share with"};
  requireEqual("the limit of a bucket", double(plan.bucket_elements()), double(config.bucket), "the configuration");
  return {"buckets", "a bucket of several parameters has at most " + std::to_string(config.bucket) + " elements"};
}

} // namespace

std::vector<Claim> requireSettings(const proto::Plan &plan, const ConfigFile &config) {
  if (config.optimizer.empty()) // the model's own algorithm: the configuration says no more
    return {batches(plan, config), reductions(plan, config), buckets(plan, config)};
  return {batches(plan, config),    updates(plan, config),   optimizer(plan, config),
          clipping(plan, config),   scale(plan, config),     learningRates(plan, config),
          momentum(plan, config),   precision(plan, config), requireUpdateProgram(plan, config),
          reductions(plan, config), buckets(plan, config)};
}

} // namespace ds::sources
