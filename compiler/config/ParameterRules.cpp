//===- ParameterRules.cpp - parameters of optimizers and schedulers -------===//
#include "compiler/config/KeyRules.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <span>
#include <string_view>

namespace ds::config {
namespace {

using enum Treatment;

constexpr std::string_view ours = "our update kernel serves every variant";

// DeepSpeed's FusedAdam; `adam_w_mode` true is torch.optim.AdamW, false torch.optim.Adam.
constexpr Parameter adam[] = {
    {{"adam_w_mode", "bool", "true", "", "", false}, Honoured, ""},
    {{"amsgrad", "bool", "false", "", "", false}, DefaultOnly, ""},
    {{"betas", "list", "[0.9, 0.999]", "", "", false}, Honoured, ""},
    {{"bias_correction", "bool", "true", "", "", false}, DefaultOnly, ""},
    {{"eps", "float", "1e-8", "", "", false}, Honoured, ""},
    {{"fp32_optimizer_states", "bool", "true", "", "", false}, DefaultOnly, ""},
    {{"lr", "float", "0.001", "", "", false}, Honoured, ""},
    {{"set_grad_none", "bool", "true", "", "", false}, Subsumed, "gradients are written anew every step"},
    {{"torch_adam", "bool", "false", "", "", false}, Subsumed, ours},
    {{"weight_decay", "float", "0.0", "", "", false}, Honoured, ""},
};

// torch.optim.SGD, which DeepSpeed takes by its name.
constexpr Parameter sgd[] = {
    {{"dampening", "float", "0", "", "", false}, DefaultOnly, ""},
    {{"differentiable", "bool", "false", "", "", false}, DefaultOnly, ""},
    {{"foreach", "bool|null", "null", "", "", false}, Subsumed, ours},
    {{"fused", "bool|null", "null", "", "", false}, Subsumed, ours},
    {{"lr", "float", "0.001", "", "", false}, Honoured, ""},
    {{"maximize", "bool", "false", "", "", false}, DefaultOnly, ""},
    {{"momentum", "float", "0", "", "", false}, Honoured, ""},
    {{"nesterov", "bool", "false", "", "", false}, Honoured, ""},
    {{"weight_decay", "float", "0", "", "", false}, Honoured, ""},
};

// torch.optim.Adagrad; DeepSpeed's DeepSpeedCPUAdagrad has its `amsgrad` and `fp32_optimizer_states` besides.
constexpr Parameter adagrad[] = {
    {{"amsgrad", "bool", "false", "", "", false}, DefaultOnly, ""},
    {{"differentiable", "bool", "false", "", "", false}, DefaultOnly, ""},
    {{"eps", "float", "1e-10", "", "", false}, Honoured, ""},
    {{"foreach", "bool|null", "null", "", "", false}, Subsumed, ours},
    {{"fp32_optimizer_states", "bool", "true", "", "", false}, DefaultOnly, ""},
    {{"fused", "bool|null", "null", "", "", false}, Subsumed, ours},
    {{"initial_accumulator_value", "float", "0", "", "", false}, DefaultOnly, ""},
    {{"lr", "float", "0.01", "", "", false}, Honoured, ""},
    {{"lr_decay", "float", "0", "", "", false}, Honoured, ""},
    {{"maximize", "bool", "false", "", "", false}, DefaultOnly, ""},
    {{"weight_decay", "float", "0", "", "", false}, Honoured, ""},
};

// DeepSpeed's FusedLion; DeepSpeedCPULion has its `fp32_optimizer_states` besides.
constexpr Parameter lion[] = {
    {{"betas", "list", "[0.9, 0.99]", "", "", false}, Honoured, ""},
    {{"fp32_optimizer_states", "bool", "true", "", "", false}, DefaultOnly, ""},
    {{"lr", "float", "0.001", "", "", false}, Honoured, ""},
    {{"set_grad_none", "bool", "true", "", "", false}, Subsumed, "gradients are written anew every step"},
    {{"weight_decay", "float", "0.0", "", "", false}, Honoured, ""},
};

// DeepSpeed's FusedLamb; whoever asks for max_grad_norm is sent to gradient_clipping.
constexpr Parameter lamb[] = {
    {{"amsgrad", "bool", "false", "", "", false}, DefaultOnly, ""},
    {{"betas", "list", "[0.9, 0.999]", "", "", false}, Honoured, ""},
    {{"bias_correction", "bool", "true", "", "", false}, Honoured, ""},
    {{"eps", "float", "1e-8", "", "", false}, Honoured, ""},
    {{"eps_inside_sqrt", "bool", "false", "", "", false}, DefaultOnly, ""},
    {{"lr", "float", "0.001", "", "", false}, Honoured, ""},
    {{"max_coeff", "float", "10.0", "", "", false}, Honoured, ""},
    {{"min_coeff", "float", "0.01", "", "", false}, Honoured, ""},
    {{"weight_decay", "float", "0.0", "", "", false}, Honoured, ""},
};

constexpr Parameter lastBatchIteration = {
    {"last_batch_iteration", "int", "-1", "", "", false}, DefaultOnly, "a schedule begins at the first update"};
constexpr Parameter warmupNumSteps = {{"warmup_num_steps", "int", "1000", "", "", false}, Honoured, ""};
constexpr Parameter warmupType = {{"warmup_type", "str", R"("log")", R"(["log", "linear"])", "", false}, Honoured, ""};
constexpr Parameter warmupMinLr = {{"warmup_min_lr", "float", "0.0", "", "", false}, Honoured, ""};
constexpr Parameter totalNumSteps = {{"total_num_steps", "int", "", "", "", false}, Honoured, ""};

constexpr Parameter warmupLR[] = {
    lastBatchIteration, {{"warmup_max_lr", "float|null", "null", "", "", false}, Honoured, "null: optimizer.params.lr"},
    warmupMinLr,        warmupNumSteps,
    warmupType,
};
constexpr Parameter warmupDecayLR[] = {
    lastBatchIteration, totalNumSteps,  {{"warmup_max_lr", "float", "0.001", "", "", false}, Honoured, ""},
    warmupMinLr,        warmupNumSteps, warmupType,
};
constexpr Parameter warmupCosineLR[] = {
    {{"cos_min_ratio", "float", "0.0001", "", "", false}, Honoured, ""}, lastBatchIteration, totalNumSteps,
    {{"warmup_min_ratio", "float", "0.0", "", "", false}, Honoured, ""}, warmupNumSteps,     warmupType,
};

constexpr Parameter lrRangeTest[] = {
    lastBatchIteration,
    {{"lr_range_test_min_lr", "float", "0.001", "", "", false}, Honoured, ""},
    {{"lr_range_test_staircase", "bool", "false", "", "", false}, Honoured, ""},
    {{"lr_range_test_step_rate", "float", "1.0", "", "", false}, Honoured, ""},
    {{"lr_range_test_step_size", "int", "2000", "", "", false}, Honoured, ""},
};
constexpr std::string_view asFirst = "null: as the first half";
constexpr Parameter oneCycle[] = {
    {{"cycle_first_stair_count", "int", "0", "", "", false}, Honoured, ""},
    {{"cycle_first_step_size", "int", "2000", "", "", false}, Honoured, ""},
    {{"cycle_max_lr", "float", "", "", "", false}, Honoured, ""},
    {{"cycle_max_mom", "float", "0.9", "", "", false}, Honoured, ""},
    {{"cycle_min_lr", "float", "", "", "", false}, Honoured, ""},
    {{"cycle_min_mom", "float", "0.8", "", "", false}, Honoured, ""},
    {{"cycle_momentum", "bool", "true", "", "", false}, Honoured, "an optimizer without betas keeps its momentum"},
    {{"cycle_second_stair_count", "int|null", "null", "", "", false}, Honoured, asFirst},
    {{"cycle_second_step_size", "int|null", "null", "", "", false}, Honoured, asFirst},
    {{"decay_lr_rate", "float", "0.0", "", "", false}, Honoured, ""},
    {{"decay_mom_rate", "float", "0.0", "", "", false}, Honoured, ""},
    {{"decay_step_size", "int", "0", "", "", false}, Honoured, ""},
    lastBatchIteration,
};

constexpr std::string_view optimizers[] = {"AdamW", "Adam", "SGD", "Adagrad", "Lion", "Lamb"};
constexpr std::string_view schedulers[] = {"WarmupLR", "WarmupDecayLR", "WarmupCosineLR", "LRRangeTest", "OneCycle"};

bool equalIgnoringCase(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

std::optional<std::string_view> find(std::span<const std::string_view> names, std::string_view written) {
  for (std::string_view name : names)
    if (equalIgnoringCase(name, written))
      return name;
  return std::nullopt;
}

} // namespace

std::span<const Parameter> optimizerParameters(std::string_view type) {
  if (type == "AdamW" || type == "Adam")
    return adam;
  if (type == "SGD")
    return sgd;
  if (type == "Adagrad")
    return adagrad;
  if (type == "Lion")
    return lion;
  if (type == "Lamb")
    return lamb;
  return {};
}

std::span<const Parameter> schedulerParameters(std::string_view type) {
  if (type == "WarmupLR")
    return warmupLR;
  if (type == "WarmupDecayLR")
    return warmupDecayLR;
  if (type == "WarmupCosineLR")
    return warmupCosineLR;
  if (type == "LRRangeTest")
    return lrRangeTest;
  if (type == "OneCycle")
    return oneCycle;
  return {};
}

std::span<const std::string_view> availableOptimizers() { return optimizers; }
std::span<const std::string_view> availableSchedulers() { return schedulers; }
std::optional<std::string_view> availableOptimizer(std::string_view written) { return find(optimizers, written); }
std::optional<std::string_view> availableScheduler(std::string_view written) { return find(schedulers, written); }

} // namespace ds::config
