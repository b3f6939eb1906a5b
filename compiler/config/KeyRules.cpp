//===- KeyRules.cpp - the table behind every answer -----------------------===//
#include "compiler/config/KeyRules.h"
#include <cstddef>
#include <span>
#include <string_view>

namespace ds::config {
namespace {

using enum Treatment;

constexpr std::string_view inPlace = "a bucket is gathered in place, by one collective without a copy";
constexpr std::string_view toOwner = "gradients are reduced to the rank that owns them, and not all-reduced";
constexpr std::string_view byBucket = "buckets are gathered, not modules";
constexpr std::string_view wholeExports = "exported weights are whole";
constexpr std::string_view noModules = "a plan has kernels, each with the name of its op, and no modules";
constexpr std::string_view ioThreads = "copies to and from NVMe run on two threads of their own, one for each way";
constexpr std::string_view toPeers = "each tensor rank of a stage sends to its own peer in the next";
constexpr std::string_view nextParameter = "a parameter comes while the one before it is used, into bytes of the plan";
constexpr std::string_view twoUpdates = "copies for one update run beside the update before it";
constexpr std::string_view byRecompute = "deepstatic.recompute says what is computed again";
constexpr std::string_view noFragments = "every tensor has its place in one arena before the run begins";
constexpr std::string_view noBoundary = "a command waits for what it reads, and for nothing else";
constexpr std::string_view ownPart = "a tensor rank keeps its part; with one such rank, that is the whole";
constexpr std::string_view byGraph = "the graph says where weights are cut";

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
    {"deepstatic.delayed_update", Honoured, "", ""},
    {"deepstatic.device_memory", Honoured, "", ""},
    {"deepstatic.fp8", Honoured, "", ""},
    {"deepstatic.loss", Honoured, "", ""},
    {"deepstatic.loss_normalization", Honoured, "", ""},
    {"deepstatic.parameter_groups", Honoured, "", ""},
    {"deepstatic.pipeline", Honoured, "", ""},
    {"deepstatic.nvme_path", Honoured, "", ""},
    {"deepstatic.offload", Honoured, "", ""},
    {"deepstatic.recompute", Honoured, "", ""},
    {"deepstatic.tensor_parallel", Honoured, "", ""},
    {"deepstatic.tf32", Honoured, "", ""},
    {"deepstatic.checkpoint", Honoured, "", ""},
    {"activation_checkpointing.contiguous_memory_optimization", Subsumed, noFragments, ""},
    {"activation_checkpointing.cpu_checkpointing", Honoured, "", ""},
    {"activation_checkpointing.number_checkpoints", Honoured, "", ""},
    {"activation_checkpointing.partition_activations", Subsumed, ownPart, ""},
    {"activation_checkpointing.profile", Subsumed, "ds-run --trace times every command", ""},
    {"activation_checkpointing.synchronize_checkpoint_boundary", Subsumed, noBoundary, ""},
    {"aio", Subsumed, ioThreads, ""},
    {"aio.block_size", Honoured, "", ""},
    {"aio.queue_depth", Honoured, "", ""},
    {"aio.use_gds", Subsumed, "what is on NVMe passes through host memory, where it is updated", ""},
    {"compile.deepcompile", Subsumed, "every plan is compiled ahead of the run", ""},
    {"bf16.enabled", Honoured, "", ""},
    {"bf16.bf16_master_weights_and_grads", Honoured, "", ""},
    {"bf16.bf16_optimizer_states", Honoured, "", ""},
    {"bf16.check_grad_overflow", Subsumed, "no step is left out: bfloat16 has the range of float32", ""},
    {"bf16.immediate_grad_update", Subsumed, "a gradient is added to its sum when it is computed", ""},
    {"communication_data_type", Honoured, "", ""},
    {"comms_logger.debug", Subsumed, "ds-run --trace has every call with its op", ""},
    {"comms_logger.enabled", Honoured, "ds-run prints the table", ""},
    {"comms_logger.prof_all", DefaultOnly, "the table has all collectives", ""},
    {"comms_logger.prof_ops", DefaultOnly, "the table has all collectives", ""},
    {"comms_logger.verbose", Subsumed, "ds-run --trace has every call", ""},
    {"flops_profiler.detailed", Subsumed, "the table has a line for each kernel", ""},
    {"flops_profiler.enabled", Honoured, "ds-run prints the table", ""},
    {"flops_profiler.module_depth", Subsumed, noModules, ""},
    {"flops_profiler.output_file", Honoured, "", ""},
    {"flops_profiler.profile_step", Honoured, "", ""},
    {"flops_profiler.recompute_fwd_factor", Subsumed, "what is computed again is counted as the plan has it", ""},
    {"flops_profiler.top_modules", Subsumed, noModules, ""},
    {"fp16.enabled", Honoured, "", ""},
    {"fp16.auto_cast", Subsumed, "what a parameter reaches is float16, and inputs are cast where they meet it", ""},
    {"fp16.consecutive_hysteresis", Honoured, "", ""},
    {"fp16.fp16_master_weights_and_grads", Honoured, "", ""},
    {"fp16.hysteresis", Honoured, "", ""},
    {"fp16.initial_scale_power", Honoured, "", ""},
    {"fp16.loss_scale", Honoured, "", ""},
    {"fp16.loss_scale_window", Honoured, "", ""},
    {"fp16.min_loss_scale", Honoured, "", ""},
    {"data_types.grad_accum_dtype", Honoured, "", ""},
    {"csv_monitor", Honoured, "ds-run writes the files", ""},
    {"dataloader_drop_last", DefaultOnly, "samples go round at the end of the data", ""},
    {"disable_python_gc", Subsumed, "no Python runs during training", ""},
    {"dump_state", Subsumed, "the plan stores the resolved configuration", ""},
    {"log_level", Subsumed, "--quiet and --verbose say how much is printed", ""},
    {"memory_breakdown", Subsumed, "ds-opt report shows every byte", ""},
    {"pipeline.activation_checkpoint_interval", DefaultOnly, byRecompute, ""},
    {"pipeline.grad_partitioned", Subsumed, toPeers, ""},
    {"pipeline.partition", Honoured, "", ""},
    {"pipeline.pipe_partitioned", Subsumed, toPeers, ""},
    {"pipeline.seed_layers", Subsumed, "no layer is initialized; the graph holds the weights", ""},
    {"pipeline.stages", Honoured, "", ""},
    {"sequence_parallel_size", DefaultOnly, "", "1"},
    {"steps_per_print", Honoured, "", ""},
    {"tensor_parallel.autotp_size", Honoured, "", ""},
    {"tensor_parallel.dtype", Subsumed, "bf16 and fp16 say what is computed in", ""},
    {"tensor_parallel.injection_policy_tuple", DefaultOnly, byGraph, ""},
    {"tensor_parallel.partition_config", DefaultOnly, byGraph, ""},
    {"tensor_parallel.preset_model", DefaultOnly, byGraph, ""},
    {"tensor_parallel.tp.mpu", DefaultOnly, "the plan says which ranks share a tensor", ""},
    {"tensor_parallel.tp.tp_grain_size", DefaultOnly, "a weight is cut evenly, or not at all", ""},
    {"tensor_parallel.tp.tp_group", DefaultOnly, "the plan says which ranks share a tensor", ""},
    {"tensor_parallel.tp.tp_size", Honoured, "", ""},
    {"tensorboard", Honoured, "ds-run writes the file", ""},
    {"timers", Subsumed, "ds-run --metrics times every step", ""},
    {"vocabulary_size", Subsumed, "sizes come from the graph", ""},
    {"wall_clock_breakdown", Honoured, "ds-run prints the table", ""},
    {"zero_allow_untested_optimizer", Subsumed, "every optimizer that is accepted is tested", ""},
    {"zero_force_ds_cpu_optimizer", Subsumed, "one update formula everywhere", ""},
    {"zero_optimization.allgather_bucket_size", Honoured, "", ""},
    {"zero_optimization.allgather_partitions", Subsumed, inPlace, ""},
    {"zero_optimization.compute_grad_norm", Subsumed, "the norm is always computed; it costs one pass", ""},
    {"zero_optimization.contiguous_gradients", Subsumed, "gradients are computed where they are reduced from", ""},
    {"zero_optimization.cpu_offload", DefaultOnly, "", "false"},
    {"zero_optimization.cpu_offload_param", DefaultOnly, "", "false"},
    {"zero_optimization.cpu_offload_use_pin_memory", DefaultOnly, "", "false"},
    {"zero_optimization.enable_sanity_checks", Subsumed, "a plan is checked whole before it runs", ""},
    {"zero_optimization.ignore_unused_parameters", Subsumed,
     "the compiler knows which parameters the loss reaches; the others stay as they are", ""},
    {"zero_optimization.leaf_module", Subsumed, byBucket, ""},
    {"zero_optimization.legacy_stage1", Subsumed, "there is one stage 1", ""},
    {"zero_optimization.load_from_fp32_weights", Subsumed, "weights are read as they are stored", ""},
    {"zero_optimization.log_trace_cache_warnings", Subsumed, "the order of gathers is fixed when compiling", ""},
    {"zero_optimization.memory_efficient_linear", Subsumed, "the compiler decides what is kept for the backward", ""},
    {"zero_optimization.overlap_comm", Honoured, "", ""},
    {"zero_optimization.offload_optimizer.buffer_count", Subsumed, twoUpdates, ""},
    {"zero_optimization.offload_optimizer.cpuadam_cores_perc", Subsumed, "a rank has as many threads as the plan says",
     ""},
    {"zero_optimization.offload_optimizer.device", Honoured, "", ""},
    {"zero_optimization.offload_optimizer.fast_init", Subsumed, "state begins as zeros, in one arena", ""},
    {"zero_optimization.offload_optimizer.nvme_path", Honoured, "", ""},
    {"zero_optimization.offload_optimizer.pin_memory", Subsumed, "arenas in host memory begin at a page", ""},
    {"zero_optimization.offload_optimizer.pipeline_read", Subsumed, twoUpdates, ""},
    {"zero_optimization.offload_optimizer.pipeline_write", Subsumed, twoUpdates, ""},
    {"zero_optimization.offload_optimizer.ratio", Honoured, "", ""},
    {"zero_optimization.offload_param.buffer_count", Subsumed, nextParameter, ""},
    {"zero_optimization.offload_param.buffer_size", Subsumed, nextParameter, ""},
    {"zero_optimization.offload_param.device", Honoured, "", ""},
    {"zero_optimization.offload_param.max_in_cpu", Subsumed, nextParameter, ""},
    {"zero_optimization.offload_param.nvme_path", Honoured, "", ""},
    {"zero_optimization.offload_param.pin_memory", Subsumed, "arenas in host memory begin at a page", ""},
    {"zero_optimization.override_module_apply", Subsumed, "no module is initialized; the graph holds the weights", ""},
    {"zero_optimization.pipeline_loading_checkpoint", Subsumed, "each rank reads the ranges that it owns", ""},
    {"zero_optimization.reduce_bucket_size", Honoured, "", ""},
    {"zero_optimization.reduce_scatter", Subsumed, toOwner, ""},
    {"zero_optimization.round_robin_gradients", Subsumed, "every rank owns an equal slice of every bucket", ""},
    {"zero_optimization.stage", Honoured, "", ""},
    {"zero_optimization.stage3_allgather_sequential", Subsumed, inPlace, ""},
    {"zero_optimization.stage3_gather_16bit_weights_on_model_save", Subsumed, wholeExports, ""},
    {"zero_optimization.stage3_gather_fp16_weights_on_model_save", Subsumed, wholeExports, ""},
    {"zero_optimization.stage3_max_live_parameters", Honoured, "", ""},
    {"zero_optimization.stage3_max_reuse_distance", Honoured, "", ""},
    {"zero_optimization.stage3_model_persistence_threshold", Honoured, "", ""},
    {"zero_optimization.stage3_module_granularity_threshold", Subsumed, byBucket, ""},
    {"zero_optimization.stage3_param_persistence_threshold", Honoured, "", ""},
    {"zero_optimization.stage3_prefetch_bucket_size", Honoured, "", ""},
    {"zero_optimization.stage3_use_all_reduce_for_fetch_params", Subsumed, inPlace, ""},
    {"zero_optimization.sub_group_size", Subsumed,
     "a group holds at least one parameter, and here each is a group; from files a large one goes in pieces", ""},
    {"zero_optimization.use_multi_rank_bucket_allreduce", Subsumed, toOwner, ""},
    {"zero_optimization.zero_hpz_partition_size", Subsumed,
     "what the backward needs again stays gathered, as stage3_max_live_parameters and stage3_max_reuse_distance allow",
     ""},
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
constexpr std::string_view zeroFeatures[] = {"cpu_offload", "offload_", "zenflow", "zero_quantized"};

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
