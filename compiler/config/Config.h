//===- Config.h - a DeepSpeed configuration, every default filled in ------===//
#pragma once

#include "compiler/scheduling/PipelineSchedule.h"
#include "compiler/scheduling/Recompute.h"
#include "core/AttachedLoss.h"
#include "core/Error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace ds::config {

// What a configuration says, once it is resolved. Defaults stand in the tables of keys and parameters (KnownKeys,
// ParameterRules), not here.

/// AdamW also stands for DeepSpeed's "Adam", whose `adam_w_mode` is true unless written otherwise.
struct Optimizer {
  enum class Type { None, AdamW, Sgd, Adagrad, Lion, Lamb }; // none: the model must bring its own
  Type type = Type::None;
  double lr = 0;
  double beta1 = 0, beta2 = 0; // AdamW, Lion, Lamb
  double epsilon = 0;          // AdamW, Adagrad, Lamb
  double weightDecay = 0;
  bool adamWMode = false;            // AdamW: false adds the decay to the gradient (plain Adam)
  double momentum = 0;               // SGD
  bool nesterov = false;             // SGD
  double lrDecay = 0;                // Adagrad
  double maxCoeff = 0, minCoeff = 0; // Lamb: bounds of the trust ratio
  bool biasCorrection = false;       // Lamb: of the rate
};

struct RangeTest {
  double minLr = 0, stepRate = 0;
  int64_t stepSize = 0;
  bool staircase = false;
};

struct OneCycle {
  double minLr = 0, maxLr = 0, decayLrRate = 0;
  int64_t firstStep = 0, secondStep = 0;     // updates
  int64_t firstStairs = 0, secondStairs = 0; // 0: no stairs
  int64_t decayStep = 0;                     // updates; 0: no decay
  bool cycleMomentum = false;
  double minMomentum = 0, maxMomentum = 0, decayMomentumRate = 0;
};

/// The learning rate of update j, counted from 0; the formulas are DeepSpeed's (docs/config.md).
struct Scheduler {
  enum class Type { None, WarmupLR, WarmupDecayLR, WarmupCosineLR, LRRangeTest, OneCycle };
  enum class Warmup { Log, Linear };
  Type type = Type::None;
  Warmup warmup = Warmup::Log;
  double warmupMinLr = 0;     // WarmupLR, WarmupDecayLR
  double warmupMaxLr = 0;     // WarmupLR (default: the optimizer's lr), WarmupDecayLR
  int64_t warmupNumSteps = 0; // as written; the formulas use max(2, this)
  int64_t totalNumSteps = 0;  // WarmupDecayLR, WarmupCosineLR
  double warmupMinRatio = 0;  // WarmupCosineLR, of the optimizer's lr
  double cosMinRatio = 0;     // WarmupCosineLR, of the optimizer's lr
  RangeTest rangeTest;        // LRRangeTest
  OneCycle oneCycle;          // OneCycle
};

/// An entry of deepstatic.parameter_groups: of the parameters whose names match, and no entry's before.
struct ParameterGroup {
  std::string match;                 // a regular expression
  std::optional<double> weightDecay; // none: the optimizer's
  double lrFactor = 1;               // of the schedule's rate
};

/// The section zero_optimization, in elements; what is subsumed is left out.
struct Zero {
  int64_t stage = 0;
  int64_t reduceBucketSize = 0, allgatherBucketSize = 0;
  bool overlapComm = false;  // null in the file: exactly for stage 3
  std::string reductionType; // of gradients on the wire: "bf16", "f16" or, as they are, ""
  // Stage 3.
  int64_t prefetchBucketSize = 0;
  int64_t maxLiveParameters = 0, maxReuseDistance = 0;
  int64_t paramPersistenceThreshold = 0, modelPersistenceThreshold = 0;

  /// Most elements of a bucket of several parameters. It is what is reduced, and what is gathered, in one piece, so the
  /// smallest limit holds.
  int64_t bucketElements() const;
};

/// How the model is cut along its length. Micro-batches are the accumulation steps.
struct Pipeline {
  int64_t stages = 1; // ranks along the pipe, each of which runs `chunks` stages of the model
  int64_t chunks = 1;
  scheduling::PipelineSchedule schedule = {};
  bool scheduleAuto = false; // of one stage: ds-opt plans in several orders, and takes the one whose step is shortest
  std::string partition;     // what PartitionMethod::fromName reads

  /// Whether a step runs more than one piece of the model.
  bool isCut() const { return stages > 1 || schedule == scheduling::PipelineSchedule::AccumulateByLayer; }
};

/// How layers are cut across: tensor ranks share the products of each.
struct Tensor {
  int64_t size = 1; // ranks
};

/// What the backward computes again instead of keeping it (docs/memory.md).
struct Recompute {
  enum class Mode {
    Auto,  // the least that fits into the device's memory
    Level, // `level`
    Full,  // all that can be
    Rules, // `rules`
  };
  struct Rule : scheduling::RecomputeRule {
    bool away = false; // kept, but not in device memory
  };
  Mode mode = {};
  int64_t level = 0;       // as ds-choose-recompute counts; 0: nothing
  int64_t checkpoints = 0; // Full: runs of layers; 0: each layer by itself
  std::vector<Rule> rules; // the first that matches decides; else: kept
};

/// A section such as `tensorboard`: where ds-run writes a run's numbers.
struct Monitor {
  bool enabled = false;
  std::string outputPath, jobName; // the folder outputPath/jobName
};

/// What ds-run tells of where the time of a step goes.
struct Profiling {
  bool wallClock = false;    // of phases
  int64_t stepsPerPrint = 0; // of them; 0: at the end
  bool collectives = false;  // at the end
  int64_t flopsStep = 0;     // after which FLOPs of kernels are told; 0: never
  std::string flopsFile;     // empty: the terminal
};

/// What became of one key that the user wrote.
struct KeyAnswer {
  std::string path;      // "zero_optimization.stage"
  std::string valueJson; // one line of JSON
  std::string status;    // "honoured" | "subsumed" | "rejected"
  std::string note;      // why; empty where "honoured" says it all

  bool operator==(const KeyAnswer &) const = default;
};

/// What a key that said "auto" stands for.
struct AutoValue {
  std::string path;      // "zero_optimization.reduce_bucket_size"
  std::string valueJson; // one line of JSON
  std::string why;       // "the model's hidden size 768 squared"

  bool operator==(const AutoValue &) const = default;
};

/// Computes with float16, the loss scaled (docs/precision.md).
struct Fp16 {
  double lossScale = 0; // 0: dynamic
  int64_t initialScalePower = 0, lossScaleWindow = 0, hysteresis = 0;
  bool consecutiveHysteresis = false;
  double minLossScale = 0;

  bool isDynamic() const { return lossScale == 0; }
  double firstScale() const; // of the first step
};

/// Where activations lie between forward and backward, by the names of the ops that compute them.
struct OffloadRule {
  std::string modules; // a regular expression
  std::string device;  // "none": device memory, "cpu", "nvme"
};

/// The files of ranks that keep state on NVMe (docs/nvme.md).
struct NvmeFiles {
  std::string folder;
  int64_t blockBytes = 0, queueDepth = 0; // section aio
};

struct Config {
  // trainBatchSize = microBatchSize * accumulationSteps * ranks, in samples.
  int64_t trainBatchSize = 0;
  int64_t microBatchSize = 0;
  int64_t accumulationSteps = 0;
  int64_t ranks = 1;                // data-parallel width: worldRanks / (pipeline.stages * tensor.size)
  int64_t worldRanks = 1;           // --ranks
  std::string sums;                 // gradients are summed in "bf16" or "f16"; "": in their parameter's type
  std::string masters;              // trained parameters are kept in "bf16" or "f16"; "": as the file has them
  bool narrowMoments = false;       // and so is their optimizer state; else float32
  bool bf16 = false;                // computes with bfloat16 (docs/precision.md)
  bool lossByTokens = false;        // losses are weighed by the targets of the whole batch (docs/loss.md)
  std::optional<AttachedLoss> loss; // none: the model has its own, or its file says which (docs/attach-loss.md)
  std::optional<Fp16> fp16;
  Optimizer optimizer;
  Scheduler scheduler;
  std::vector<ParameterGroup> parameterGroups; // the first that matches decides
  Zero zero;
  Pipeline pipeline;
  Tensor tensor;
  Recompute recompute;
  bool cpuCheckpointing = false;    // activation_checkpointing.cpu_checkpointing
  bool offloadAuto = false;         // deepstatic.offload is "auto": what the memory asks for
  std::vector<OffloadRule> offload; // deepstatic.offload; the first that matches decides; else: they stay
  std::string offloadParameters;    // zero_optimization.offload_param.device, likewise
  std::string offloadOptimizer;     // zero_optimization.offload_optimizer.device: "none", "cpu" or "nvme"
  double offloadRatio = 1;          // zero_optimization.offload_optimizer.ratio: share of that state that lies there
  bool offloadRatioAuto = false;    // what the clock says, of steps that fit into memory
  bool delayedUpdate = false;       // deepstatic.delayed_update: updates are of the step before, which changes results
  std::optional<NvmeFiles> nvme;    // none: nothing lies on NVMe
  int64_t checkpointBuffer = 0;     // bytes of a rank, of --save; 0: a step waits until its checkpoint is written
  Monitor tensorboard, csvMonitor;
  Profiling profiling;
  std::string fp8;                        // deepstatic.fp8: "off", "tensor" or "block" (docs/precision.md)
  bool tf32 = false;                      // a GPU may round float32 factors of matrix products to TF32
  std::optional<double> gradientClipping; // largest global norm; none: gradients stay as they are
  std::optional<int64_t> deviceMemory;    // bytes a rank, from --device-memory or deepstatic.device_memory
  std::optional<int64_t> hostMemory;      // bytes a rank, from --host-memory
  std::vector<KeyAnswer> answers;         // in the order of the file; new keys of --set last
  std::vector<AutoValue> autos;           // in the same order

  /// Whether some ranks share the model itself, so that fewer than --ranks share the batch.
  bool sharesModel() const { return ranks != worldRanks; }
};

/// What "auto" takes from the model's graph.
struct ModelFacts {
  int64_t hiddenSize = 0; // 0: no trained parameter is a matrix
  std::string dtype;      // of the trained parameters: "float32"
};

/// What the command line says; it wins over the file.
struct ConfigOverrides {
  std::string fileName = "ds_config.json"; // for messages
  int64_t ranks = 1;                       // --ranks
  std::vector<std::string> sets;           // --set key.path=value, in order
  std::optional<int64_t> deviceMemory;     // --device-memory, bytes
  std::optional<int64_t> hostMemory;       // --host-memory, bytes
  bool byLayer = false;                    // what deepstatic.pipeline.schedule "auto" stands for: accumulate-by-layer
  std::optional<AutoValue> offloadRatio;   // what zero_optimization.offload_optimizer.ratio "auto" stands for
  std::optional<ModelFacts> model;         // none: not read yet, so what it would say is DeepSpeed's default
};

/// A refused configuration. `what()` is the first reason, `details` the others, one sentence each; `answers` has a line
/// for every key, the rejected ones included (empty where the file could not be read at all).
class ConfigError : public Error {
public:
  ConfigError(const std::string &sentence, std::vector<std::string> details = {}, std::vector<KeyAnswer> answers = {},
              std::string tryLine = {})
      : Error(sentence, std::move(tryLine)), details(std::move(details)), answers(std::move(answers)) {}

  std::vector<std::string> details;
  std::vector<KeyAnswer> answers;
};

/// Reads a DeepSpeed `ds_config.json` (HJSON), applies `overrides`, fills in every default and answers every key.
/// Throws ConfigError.
Config resolveConfig(std::string_view hjsonText, const ConfigOverrides &overrides);

/// The settings that hold under their names in the file, keys sorted, one line of JSON: the same bytes for equal
/// settings. Resolving it again, for as many ranks, changes nothing.
std::string resolvedJson(const Config &config);

/// The refusal of a configuration without optimizer for a model without one.
inline constexpr std::string_view missingOptimizer =
    "optimizer.type is missing: no Python passes an optimizer in; write e.g. \"optimizer\": "
    "{\"type\": \"AdamW\", \"params\": {\"lr\": 0.001}}";
inline constexpr std::string_view missingOptimizerTry = "--set optimizer.type=AdamW --set optimizer.params.lr=0.001";

/// A parameter of a schedule under its name in the file.
struct ScheduleParameter {
  std::string_view name;
  std::variant<double, int64_t, std::string_view> value;
};

/// What decides the learning rate, and what decides the momentum of OneCycle.
std::vector<ScheduleParameter> rateParameters(const Scheduler &scheduler, const Optimizer &optimizer);
std::vector<ScheduleParameter> momentumParameters(const Scheduler &scheduler);

/// Whether OneCycle sets the betas of each update. As in DeepSpeed, an optimizer that has none keeps its momentum.
bool cyclesMomentum(const Config &config);
inline constexpr double cycledBeta2 = 0.99; // DeepSpeed's, while OneCycle sets the first beta

std::string_view name(Optimizer::Type type);     // "AdamW", "SGD", "Adagrad", "Lion", "Lamb"
std::string_view name(Scheduler::Type type);     // "none", "WarmupLR", ...
std::string_view name(Scheduler::Warmup warmup); // "log", "linear"

} // namespace ds::config
