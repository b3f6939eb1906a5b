//===- Passes.h - the compiler's passes and pipelines ---------------------===//
#pragma once

#include "compiler/passes/fusion/Passes.h"
#include "compiler/passes/offload/Passes.h"
#include "compiler/passes/pipeline/Passes.h"
#include "compiler/passes/plan/Passes.h"
#include "compiler/passes/plan/RoleTrials.h"
#include "compiler/passes/recompute/Passes.h"
#include "compiler/passes/tensor/Passes.h"
#include "compiler/passes/train/Passes.h"
#include "compiler/passes/zero/Passes.h"
#include "kernels/Device.h"

#include "mlir/Pass/PassOptions.h"

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ds {

// What the pipelines are asked for. ds-opt compile says all of it, from the configuration and the machine, where the
// defaults of users stand; here nothing is limited and nothing done unless it is asked for.

/// How the data-parallel ranks share out what they hold, in elements.
struct ZeroOptions {
  int64_t stage = 0;
  int64_t bucketElements = unlimited; ///< of a bucket of several parameters, and of what is under way at once
  int64_t persistenceThreshold = 0, modelPersistenceThreshold = unlimited;
  int64_t maxLive = unlimited, maxReuseDistance = unlimited, prefetch = unlimited;
  bool overlap = false;      ///< collectives run beside compute
  std::string reductionType; ///< of gradients on the wire, "bf16" or "f16"; "": as they are
};

/// How the model is cut along its depth.
struct PipelineOptions {
  int64_t ranks = 1, chunks = 1; ///< of the pipe axis; stages of each
  std::string schedule;          ///< of ds-schedule-calls
  std::string partition;         ///< of ds-cut-pipeline-stages
  int64_t memory = 0;            ///< bytes of a rank; 0: unknown

  bool isCut() const { return ranks > 1 || schedule == "accumulate-by-layer"; }
};

/// What lies elsewhere while the device does not need it.
struct OffloadOptions {
  std::string parameters;               ///< in "host", "nvme"; "": in device memory
  std::vector<std::string> activations; ///< rules of ds-offload-activations
  std::vector<std::string> values;      ///< that leave beside these, by name; neither: all stay
  std::string optimizer;     ///< moments, which the host's processors update: in "host", "nvme"; "": in device memory
  double optimizerStays = 0; ///< share of these that stays in device memory all the same
  bool speculates = false;   ///< updates from files do not wait for the norm by which gradients are clipped
  bool sparesHostMemory = false; ///< files are read late, and compute waits early for what they take
  bool gradientsInFiles = false; ///< where moments are; else in host memory
};

struct CompileOptions {
  kernels::Device device = kernels::Device::Cpu;
  std::string isa = "sm_80";        ///< on CUDA: what the device has at least
  bool tf32 = false;                ///< on CUDA, float32 factors of products may be rounded to TF32
  AddAdaptersOptions adapters;      ///< of rank 0: none
  InsertOptimizerOptions optimizer; ///< but for the micro-batches
  std::string narrow;               ///< compute with "bf16" or "f16", state stays f32; "": as the file says
  std::string sums;                 ///< gradients are summed in "bf16" or "f16"; "": in their parameter's type
  std::string masters;              ///< trained parameters are kept in "bf16" or "f16"; "": as the file says
  std::string fp8;                  ///< linear layers in 8 bits, a scale for each "tensor" or "block"; "": none
  ScaleLossOptions lossScale;       ///< of f16
  bool countsTargets = false;       ///< losses and gradients are weighed by the targets of the whole batch
  bool delaysUpdates = false;       ///< each update is of the gradient of the step before: other results
  bool ownAlgorithm = false;        ///< the step was made by ds-split-algorithm
  int64_t microbatches = 1;         ///< of one rank and optimizer step
  int64_t dataParallel = 1;         ///< ranks of the data axis
  int64_t tensorParallel = 1;       ///< ranks of the tensor axis
  PipelineOptions pipeline;
  ChooseRecomputeOptions recompute; ///< what the backward computes again: docs/memory.md
  bool fusesGelu = false;           ///< products take it along: on CUDA, where that is no slower
  bool keepsOperands = false;       ///< but not what products read: of ds-repeat-elementwise
  ZeroOptions zero;
  OffloadOptions offload;
  bool roundsOnce = true;              ///< parameters once a step, which takes memory: of ds-round-once
  int64_t hostMemory = 0;              ///< bytes of a rank; 0: unknown
  int64_t threads = 1;                 ///< compute workers of a rank
  int64_t workspaceBytesPerThread = 0; ///< of ds-select-kernels
  int64_t alignment = 1;               ///< bytes
  std::vector<std::string> without;    ///< of optionalPasses, those that are left out

  /// Whether a rank holds slices of parameters, and gathers what they are rounded to.
  bool holdsSlices() const { return dataParallel > 1 && zero.stage > 0; }
};

/// Passes without which a plan is right too, only larger or slower.
inline constexpr std::array<std::string_view, 36> optionalPasses = {
    "ds-narrow-frozen", "ds-fold-transposes", "ds-fuse-bias", "ds-regroup-attention", "ds-fold-head-transposes",
    "ds-pack-heads", "ds-regroup-rms-norm", "ds-concat-pads", "ds-elide-accumulation", "ds-repeat-elementwise",
    "ds-fuse-elementwise", "ds-elide-copies", "ds-reuse-dying-operands", "ds-order-for-memory", "ds-peel-backward",
    "ds-advance-updates", "ds-split-updates", "ds-read-ahead", "ds-elide-pending-copies", "ds-round-once",
    // On several ranks.
    "ds-elide-redundant-gathers", "ds-keep-parameters-gathered", "ds-advance-reductions", "ds-combine-collectives",
    "ds-hoist-gathers", "ds-narrow-gathers", "ds-split-async-collectives",
    // On CUDA.
    "ds-pad-vocabulary", "ds-regroup-gelu", "ds-fuse-gelu", "ds-fuse-bias-gradients", "ds-fuse-residual-gradients",
    "ds-fuse-loss-gradient", "ds-fuse-residual-sums", "ds-choose-captured-programs", "ds-compile-elementwise"};

/// @forward -> the same, smaller: what import leaves to be tidied up.
void buildSimplifyPipeline(mlir::OpPassManager &, const CompileOptions &);
/// @forward -> @microbatch, @update, @evaluate.
void buildGradientPipeline(mlir::OpPassManager &, const CompileOptions &);
/// train -> dist: fragments and schedules.
void buildDistributePipeline(mlir::OpPassManager &, const CompileOptions &);
/// Its two parts: stages, which whatever is computed again does not change; and the rest.
void buildCutPipeline(mlir::OpPassManager &, const CompileOptions &);
void buildShareOutPipeline(mlir::OpPassManager &, const CompileOptions &);
/// dist, every rank alike -> dist, gradients summed and state shared out over the data axis.
void buildZeroPipeline(mlir::OpPassManager &, const CompileOptions &);
/// dist -> plan without offsets: kernels on buffers, on ordered queues.
void buildLowerPipeline(mlir::OpPassManager &, const CompileOptions &);
/// dist -> plan with offsets.
void buildPlanPipeline(mlir::OpPassManager &, const CompileOptions &);
/// Its two parts: buffers, of which RoleTrials.h tells what bytes they will need; and the rest.
void buildBufferPipeline(mlir::OpPassManager &, const CompileOptions &);
void buildOffsetPipeline(mlir::OpPassManager &, const CompileOptions &);
/// What the rest does, for a trial.
TrialOptions trialOptions(const CompileOptions &);

/// Registers every pass and pipeline by flag.
void registerPassesAndPipelines();

} // namespace ds
