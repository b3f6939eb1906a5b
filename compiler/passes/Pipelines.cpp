//===- Pipelines.cpp - the compiler, read from top to bottom ----------------===//
#include "compiler/passes/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace ds {

static void addOptional(OpPassManager &pm, const CompileOptions &options, std::unique_ptr<Pass> pass) {
  const std::string_view name = pass->getArgument();
  assert(llvm::is_contained(optionalPasses, name));
  if (!llvm::is_contained(options.without, name))
    pm.addPass(std::move(pass));
}

void buildSimplifyPipeline(OpPassManager &pm, const CompileOptions &options) {
  // A file may ask for derivatives itself, by any value: before one of them is simplified away.
  pm.addPass(createSplitAlgorithm());
  pm.addPass(createExpandGradients());
  // Import leaves transposes of transposes and scalings by one.
  pm.addPass(createCanonicalizerPass());
  // Before differentiation, so that the gradients too read weights as they are stored and carry no extra sums.
  addOptional(pm, options, createFoldTransposes());
  addOptional(pm, options, createFuseBias());
  pm.addPass(createCSEPass());
  // Once products name their transposed side; gradients of the whole are not the sum of the parts'.
  addOptional(pm, options, createRegroupAttention());
  addOptional(pm, options, createRegroupRmsNorm());
}

void buildGradientPipeline(OpPassManager &pm, const CompileOptions &options) {
  const int64_t microbatches = options.microbatches * options.dataParallel;
  // Gradients flow through the casts that it makes.
  if (options.bf16)
    pm.addPass(createLowerPrecision());
  if (!options.ownAlgorithm) {
    pm.addPass(createDifferentiate());
    // All scales at once; no other pass multiplies a gradient by a number.
    pm.addPass(createScaleGradients({microbatches}));
    InsertOptimizerOptions optimizer = options.optimizer;
    optimizer.microbatches = microbatches;
    pm.addPass(createInsertOptimizer(optimizer));
  }
  // Gradients of reshapes and transposes meet those of their neighbours, and share what the forward pass computed.
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  if (options.bf16) // one reader of a sum is easy to see now
    pm.addPass(createWidenSums());
  addOptional(pm, options, createFoldTransposes());
  addOptional(pm, options, createConcatPads());
  if (microbatches == 1)
    addOptional(pm, options, createElideAccumulation());
  pm.addPass(createInferInputLimits());
  pm.addPass(createVerifyTrainForm());
}

/// Of a parameter, its gradient and two moments, as far as a rank holds them: per byte of the parameter.
static double heldBytes(const CompileOptions &options) {
  const double shared = 1.0 / double(options.dataParallel);
  const int64_t whole = options.zero.stage == 0 ? 4 : 3 - options.zero.stage; // what ZeRO leaves whole
  return double(whole) + double(4 - whole) * shared;
}

void buildDistributePipeline(OpPassManager &pm, const CompileOptions &options) {
  // First, so that whoever needs to know how many ranks there are asks one place.
  pm.addPass(createDeclareMesh({options.pipeline.ranks, options.dataParallel, /*expert=*/1, /*tensor=*/1}));
  // The single-device program is complete; all later passes keep its meaning. No CSE from here on.
  pm.addPass(createRecordReference());
  // Before anything is computed twice or fused: no chain leads from one stage into another.
  const PipelineOptions &pipeline = options.pipeline;
  if (pipeline.ranks > 1)
    pm.addPass(createCutPipelineStages({pipeline.ranks * pipeline.chunks, pipeline.partition, options.microbatches,
                                        pipeline.schedule, pipeline.memory, heldBytes(options)}));
  // Before outlining: a chain computed once in the forward pass is one value for the backward.
  addOptional(pm, options, createRepeatElementwise());
  // What the backward still keeps may be computed again, by the same ops: what is fused or gathered follows from the
  // whole.
  if (const RecomputeSettings &recompute = options.recompute;
      recompute.level > 0 || recompute.full || !recompute.rules.empty()) {
    ChooseRecomputeOptions choice{recompute.level, recompute.full, recompute.checkpoints, {}};
    llvm::append_range(choice.rules, recompute.rules);
    pm.addPass(createChooseRecompute(choice));
    pm.addPass(createRecompute());
  }
  addOptional(pm, options, createFuseElementwise());
  pm.addPass(createOutlineFragments({pipeline.schedule == "zb-h1" && pipeline.ranks > 1}));
  pm.addPass(createScheduleCalls({options.microbatches, pipeline.schedule}));
  buildZeroPipeline(pm, options);
  pm.addPass(createVerifyDistForm());
}

void buildZeroPipeline(OpPassManager &pm, const CompileOptions &options) {
  if (options.dataParallel == 1) { // nobody to share with
    if (options.pipeline.ranks > 1)
      pm.addPass(createJoinStages());
    return;
  }
  const ZeroOptions &zero = options.zero;
  // First a decision on paper, which a user may have written already; then the layout that all that follows relies on:
  // one collective, or one update, is one contiguous piece of memory.
  pm.addPass(
      createPlanBuckets({zero.stage, zero.bucketElements, zero.persistenceThreshold, zero.modelPersistenceThreshold}));
  pm.addPass(createLayOutBuckets());
  // Right and slow: reduce when the last contribution is there, gather before every use.
  pm.addPass(createInsertReductions());
  // After the reductions, which stand at the head of @update: what it reads of gradients are sums.
  pm.addPass(createShardOptimizer());
  // Sums over the ranks are there, and who reads a parameter still names it.
  if (options.pipeline.ranks > 1)
    pm.addPass(createJoinStages());
  pm.addPass(createInsertParameterGathers());
  // Now less: what stays gathered within a fragment, then what stays between fragments in the room that is left.
  addOptional(pm, options, createElideRedundantGathers({zero.maxLive, zero.maxReuseDistance}));
  addOptional(pm, options, createKeepParametersGathered({zero.maxLive, zero.maxReuseDistance, options.microbatches}));
  // What may begin early is moved there while a collective is still one op, whose place is when it begins.
  if (zero.overlap)
    addOptional(pm, options, createAdvanceReductions({options.microbatches}));
  // Before gathers are moved: those that meet ahead of one use would make it wait for the next one's.
  addOptional(pm, options, createCombineCollectives({zero.bucketElements}));
  if (!zero.overlap)
    return;
  addOptional(pm, options, createHoistGathers({zero.maxLive, zero.prefetch}));
  // Last: from here on only a done looks at who needs it.
  addOptional(pm, options, createSplitAsyncCollectives({zero.bucketElements}));
}

void buildPlanPipeline(OpPassManager &pm, const CompileOptions &options) {
  pm.addPass(createLowerToPlan({options.device, options.tf32, options.threads, options.workspaceBytesPerThread}));
  pm.addPass(createAssignOffsets({options.alignment}));
  // Exact bytes decide whether another order is better, so both are laid out.
  addOptional(pm, options, createOrderForMemory({options.alignment}));
  // Once it is known what a run executes, and from which arenas.
  if (options.device == kernels::Device::Cuda)
    addOptional(pm, options, createChooseCapturedPrograms());
  // Export only copies fields from here.
  pm.addPass(createVerifyPlanForm());
}

namespace {
/// The few options that pipelines take by hand; ds-opt compile sets all of them from the configuration.
struct StepOptions : PassPipelineOptions<StepOptions> {
  Option<int64_t> microbatches{*this, "microbatches", llvm::cl::desc("micro-batches of one step"), llvm::cl::init(1)};
  Option<std::string> optimizer{*this, "optimizer", llvm::cl::desc("adamw, sgd or adagrad"), llvm::cl::init("adamw")};
  Option<double> lr{*this, "lr", llvm::cl::desc("learning rate"), llvm::cl::init(1e-3)};
  Option<bool> bf16{*this, "bf16", llvm::cl::desc("compute with bf16"), llvm::cl::init(false)};
  Option<int64_t> dataParallel{*this, "data-parallel", llvm::cl::desc("ranks"), llvm::cl::init(1)};
  Option<int64_t> pipe{*this, "pipe", llvm::cl::desc("ranks along the pipeline"), llvm::cl::init(1)};
  Option<int64_t> chunks{*this, "chunks", llvm::cl::desc("pipeline stages of a rank"), llvm::cl::init(1)};
  Option<std::string> schedule{*this, "schedule", llvm::cl::desc("gpipe, 1f1b, interleaved or zb-h1"),
                               llvm::cl::init("1f1b")};
  Option<int64_t> stage{*this, "stage", llvm::cl::desc("ZeRO stage"), llvm::cl::init(0)};
  Option<int64_t> persistence{*this, "persistence-threshold",
                              llvm::cl::desc("stage 3: elements of a parameter that every rank keeps whole"),
                              llvm::cl::init(100000)};
  Option<bool> overlap{*this, "overlap", llvm::cl::desc("collectives run beside compute"), llvm::cl::init(false)};
  Option<int64_t> maxLive{*this, "max-live", llvm::cl::desc("stage 3: elements that may be gathered at once"),
                          llvm::cl::init(1000000000)};
  Option<int64_t> threads{*this, "threads", llvm::cl::desc("compute workers of a rank"), llvm::cl::init(8)};
  Option<kernels::Device> device{
      *this, "device", llvm::cl::desc("what kernels run on"), llvm::cl::init(kernels::Device::Cpu),
      llvm::cl::values(clEnumValN(kernels::Device::Cpu, "cpu", ""), clEnumValN(kernels::Device::Cuda, "cuda", ""))};

  CompileOptions compileOptions() const {
    CompileOptions options;
    options.microbatches = microbatches;
    options.optimizer.optimizer = optimizer;
    options.optimizer.lr = lr;
    options.bf16 = bf16;
    options.threads = threads;
    options.device = device;
    options.dataParallel = dataParallel;
    options.pipeline.ranks = pipe;
    options.pipeline.chunks = chunks;
    options.pipeline.schedule = schedule;
    options.zero.stage = stage;
    options.zero.persistenceThreshold = persistence;
    options.zero.maxLive = maxLive;
    options.zero.overlap = overlap;
    return options;
  }
};
} // namespace

void registerPassesAndPipelines() {
  registerDSTrainPasses();
  registerDSRecomputePasses();
  registerDSPipelinePasses();
  registerDSZeroPasses();
  registerDSPlanPasses();
  PassPipelineRegistration<>("ds-simplify-pipeline", "what import leaves to be tidied up",
                             [](OpPassManager &pm) { buildSimplifyPipeline(pm, {}); });
  PassPipelineRegistration<StepOptions>(
      "ds-gradient-pipeline", "@forward to @microbatch, @update, @evaluate",
      [](OpPassManager &pm, const StepOptions &options) { buildGradientPipeline(pm, options.compileOptions()); });
  PassPipelineRegistration<StepOptions>(
      "ds-distribute-pipeline", "train to dist: fragments and schedules",
      [](OpPassManager &pm, const StepOptions &options) { buildDistributePipeline(pm, options.compileOptions()); });
  PassPipelineRegistration<StepOptions>(
      "ds-plan-pipeline", "dist to plan: kernels, buffers, offsets",
      [](OpPassManager &pm, const StepOptions &options) { buildPlanPipeline(pm, options.compileOptions()); });
}

} // namespace ds
