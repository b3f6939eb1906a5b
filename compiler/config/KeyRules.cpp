//===- KeyRules.cpp - the table behind every answer -----------------------===//
#include "compiler/config/KeyRules.h"
#include <cstddef>
#include <span>
#include <string_view>

namespace ds::config {
namespace {

using enum Treatment;

constexpr std::string_view oneStage = "one stage: there is nothing to order";
constexpr std::string_view noNvme = "nothing is kept on NVMe";

/// A path without a rule gets DefaultOnly.
constexpr KeyRule rules[] = {
    {"train_batch_size", Honoured, "", ""},
    {"train_micro_batch_size_per_gpu", Honoured, "", ""},
    {"gradient_accumulation_steps", Honoured, "", ""},
    {"gradient_clipping", Honoured, "", ""},
    {"optimizer.type", Honoured, "", ""},
    {"optimizer.params", Honoured, "", ""},
    {"optimizer.legacy_fusion", Subsumed, "every update is one fused kernel", ""},
    {"scheduler.type", Honoured, "", ""},
    {"scheduler.params", Honoured, "", ""},
    {"deepstatic.device_memory", Honoured, "", ""},
    {"deepstatic.pipeline.schedule", Subsumed, oneStage, ""},
    {"deepstatic.recompute", DefaultOnly, "nothing is recomputed; a plan that does not fit is refused", R"("none")"},
    {"deepstatic.checkpoint", DefaultOnly, "no checkpoint is written yet", ""},
    {"aio", Subsumed, noNvme, ""},
    {"compile.deepcompile", Subsumed, "every plan is compiled ahead of the run", ""},
    {"communication_data_type", DefaultOnly, "", R"("fp32")"},
    {"data_types.grad_accum_dtype", DefaultOnly, "gradients accumulate in the type of their parameter", R"("fp32")"},
    {"dataloader_drop_last", DefaultOnly, "samples go round at the end of the data", ""},
    {"disable_python_gc", Subsumed, "no Python runs during training", ""},
    {"dump_state", Subsumed, "the plan stores the resolved configuration", ""},
    {"log_level", Subsumed, "--quiet and --verbose say how much is printed", ""},
    {"memory_breakdown", Subsumed, "ds-opt report shows every byte", ""},
    {"pipeline.stages", DefaultOnly, "", "1"},
    {"sequence_parallel_size", DefaultOnly, "", "1"},
    {"steps_per_print", Subsumed, "ds-run prints a line per tenth of the run; --metrics has every step", ""},
    {"tensor_parallel.autotp_size", DefaultOnly, "", "1"},
    {"timers", Subsumed, "ds-run --metrics times every step", ""},
    {"vocabulary_size", Subsumed, "sizes come from the graph", ""},
    {"wall_clock_breakdown", Subsumed, "ds-run --metrics times every step, not its parts", ""},
    {"zero_allow_untested_optimizer", Subsumed, "every optimizer that is accepted is tested", ""},
    {"zero_force_ds_cpu_optimizer", Subsumed, "one update formula everywhere", ""},
    {"zero_optimization.cpu_offload", DefaultOnly, "", "false"},
    {"zero_optimization.cpu_offload_param", DefaultOnly, "", "false"},
    {"zero_optimization.cpu_offload_use_pin_memory", DefaultOnly, "", "false"},
};

/// Sections that do nothing until a key of theirs says so.
constexpr OffSwitch switches[] = {
    {"autotuning", "enabled", "false"},
    {"bf16", "enabled", "false"},
    {"comet", "enabled", "false"},
    {"comms_logger", "enabled", "false"},
    {"compile", "deepcompile", "false"},
    {"csv_monitor", "enabled", "false"},
    {"data_efficiency", "enabled", "false"},
    {"expert_parallel", "enabled", "false"},
    {"flops_profiler", "enabled", "false"},
    {"fp16", "enabled", "false"},
    {"hybrid_engine", "enabled", "false"},
    {"tensorboard", "enabled", "false"},
    {"torch_autocast", "enabled", "false"},
    {"wandb", "enabled", "false"},
    {"weight_quantization", "enabled", "false"},
    {"zero_optimization", "stage", "0"},
    {"zero_optimization.offload_optimizer", "device", R"("none")"},
    {"zero_optimization.offload_param", "device", R"("none")"},
};

/// Below zero_optimization, what asks for more than tuning: stage 0 is no excuse for leaving it undone.
constexpr std::string_view zeroFeatures[] = {"cpu_offload", "offload_", "zenflow", "zero_hpz", "zero_quantized"};

bool below(std::string_view path, std::string_view section) {
  return path.starts_with(section) && (path.size() == section.size() || path[section.size()] == '.');
}

} // namespace

KeyRule ruleFor(std::string_view path) {
  KeyRule best{path, DefaultOnly, "", ""};
  size_t length = 0;
  for (const KeyRule &rule : rules)
    if (below(path, rule.path) && rule.path.size() > length) {
      best = rule;
      length = rule.path.size();
    }
  return best;
}

std::span<const OffSwitch> offSwitches() { return switches; }

bool governs(const OffSwitch &offSwitch, std::string_view path) {
  if (!below(path, offSwitch.section) || path.size() == offSwitch.section.size())
    return false;
  const std::string_view rest = path.substr(offSwitch.section.size() + 1);
  if (rest == offSwitch.key)
    return false;
  if (offSwitch.section == "zero_optimization")
    for (std::string_view feature : zeroFeatures)
      if (rest.starts_with(feature))
        return false;
  return true;
}

} // namespace ds::config
