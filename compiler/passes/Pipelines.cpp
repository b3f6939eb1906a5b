//===- Pipelines.cpp - the compiler, read from top to bottom ----------------===//
#include "compiler/passes/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

#include "llvm/ADT/STLExtras.h"

#include <functional>
#include <limits>

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
  if (options.tensorParallel == 1) // else ranks add up terms of products, and a bias once
    addOptional(pm, options, createFuseBias());
  pm.addPass(createCSEPass());
  if (options.adapters.rank != 0) // the bias stays with its product
    pm.addPass(createAddAdapters(options.adapters));
  // Once products name their transposed side; gradients of the whole are not the sum of the parts'.
  addOptional(pm, options, createRegroupAttention());
  if (options.device == kernels::Device::Cuda) { // on a CPU what they save is 1 % of a step
    addOptional(pm, options, createFoldHeadTransposes());
    if (options.tensorParallel == 1) // else heads are cut, each with its query, key and value
      addOptional(pm, options, createPackHeads());
    addOptional(pm, options, createPadVocabulary());
    addOptional(pm, options, createRegroupGelu());
  }
  addOptional(pm, options, createRegroupRmsNorm());
  pm.addPass(createVerifySimpleForm());
}

void buildGradientPipeline(OpPassManager &pm, const CompileOptions &options) {
  const int64_t microbatches = options.microbatches * options.dataParallel;
  // Gradients flow through the casts that it makes.
  if (!options.narrow.empty()) {
    pm.addPass(createLowerPrecision({.to = options.narrow}));
    addOptional(pm, options, createNarrowFrozen());
  }
  if (!options.ownAlgorithm) {
    if (options.countsTargets)
      pm.addPass(createCountTargets());
    pm.addPass(createDifferentiate());
    // All scales at once; no other pass multiplies a gradient by a number. Of targets, the update divides by their
    // count.
    pm.addPass(createScaleGradients({.microbatches = options.countsTargets ? 1 : microbatches}));
    if (!options.sums.empty()) // what follows reads gradients in the type of their sums
      pm.addPass(createNarrowGradients({.type = options.sums}));
    if (!options.masters.empty()) // what follows reads state in the type that it is kept in
      pm.addPass(createNarrowMasters({.type = options.masters}));
    InsertOptimizerOptions optimizer = options.optimizer;
    optimizer.microbatches = microbatches;
    pm.addPass(createInsertOptimizer(optimizer));
    if (options.narrow == "f16")
      pm.addPass(createScaleLoss(options.lossScale));
    if (options.delaysUpdates) // once all that an update reads is settled
      pm.addPass(createDelayUpdates());
  }
  // Gradients of reshapes and transposes meet those of their neighbours, and share what the forward pass computed.
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  if (!options.narrow.empty()) // one reader of a sum is easy to see now
    pm.addPass(createWidenSums());
  addOptional(pm, options, createFoldTransposes());
  // Before anything else is fused into products: what is left of them in 16 bits may be.
  if (!options.fp8.empty())
    pm.addPass(createQuantizeProducts({.blocks = options.fp8 == "block"}));
  if (options.device == kernels::Device::Cuda) {
    addOptional(pm, options, createFuseBiasGradients());     // oneDNN has no such epilogue
    addOptional(pm, options, createFuseResidualGradients()); // a CPU's bfloat16 kernels round once
  }
  addOptional(pm, options, createConcatPads());
  // Not where stages may share a parameter: each adds its part of the gradient to the other's.
  if (microbatches == 1 && !options.pipeline.isCut())
    addOptional(pm, options, createElideAccumulation());
  pm.addPass(createInferInputLimits());
  pm.addPass(createVerifyTrainForm());
}

/// The ZeRO stage by which gradients and state are laid out. With one micro-batch a step, stages 1 and 2 send the same
/// sums, and stage 2 sends them in the backward: a rank then holds slices of gradients instead of whole ones.
static int64_t laidOutStage(const CompileOptions &options) {
  const int64_t asked = options.zero.stage;
  return asked == 1 && options.microbatches == 1 ? 2 : asked;
}

/// Of a parameter, its gradient and two moments, as far as a rank holds them: per byte of the parameter.
static double heldBytes(const CompileOptions &options) {
  const double shared = 1.0 / double(options.dataParallel);
  const int64_t stage = laidOutStage(options);
  // With ranks beside it, one works with 16 bits of the parameter.
  const bool works = !options.narrow.empty() && options.dataParallel > 1 && (stage == 1 || stage == 2) &&
                     options.offload.parameters.empty() && options.masters.empty();
  const double gradient = options.sums.empty() || !options.masters.empty() ? 1 : 0.5;
  const double moments = options.masters.empty() || options.optimizer.narrowMoments ? 2 : 4;
  const auto held = [&](double bytes, int64_t sharedFrom) { return stage < sharedFrom ? bytes : bytes * shared; };
  return held(1, 3) + held(gradient, 2) + held(moments, 1) - (works ? 0.5 - shared : 0);
}

void buildCutPipeline(OpPassManager &pm, const CompileOptions &options) {
  // First, so that whoever needs to know how many ranks there are asks one place.
  pm.addPass(createDeclareMesh(
      {.pipe = options.pipeline.ranks, .data = options.dataParallel, .tensor = options.tensorParallel}));
  // The single-device program is complete; all later passes keep its meaning. No CSE from here on.
  pm.addPass(createRecordReference());
  if (options.tensorParallel > 1)
    pm.addPass(createPartitionTensors());
  // Before anything is computed twice or fused: no chain leads from one stage into another.
  const PipelineOptions &pipeline = options.pipeline;
  if (pipeline.isCut())
    pm.addPass(createCutPipelineStages({.stages = pipeline.ranks * pipeline.chunks,
                                        .partition = pipeline.partition,
                                        .microbatches = options.microbatches,
                                        .schedule = pipeline.schedule,
                                        .memory = pipeline.memory,
                                        .stateBytes = heldBytes(options)}));
  // Before outlining: a chain computed once in the forward pass is one value for the backward.
  addOptional(pm, options, createRepeatElementwise({.once = pipeline.isCut(), .keepOperands = options.keepsOperands}));
}

void buildShareOutPipeline(OpPassManager &pm, const CompileOptions &options) {
  const PipelineOptions &pipeline = options.pipeline;
  // What the backward still keeps may be computed again, by the same ops: what is fused or gathered follows from the
  // whole.
  if (const ChooseRecomputeOptions &recompute = options.recompute;
      recompute.level > 0 || recompute.full || !recompute.rules.empty()) {
    pm.addPass(createChooseRecompute(recompute));
    pm.addPass(createRecompute());
  }
  if (options.fusesGelu)
    addOptional(pm, options, createFuseGelu());
  if (options.device == kernels::Device::Cuda) // a CPU's steps do not wait for memory there
    addOptional(pm, options, createFuseLossGradient());
  addOptional(pm, options, createFuseElementwise());
  if (options.device == kernels::Device::Cuda) // which sums are no part of a longer loop
    addOptional(pm, options, createFuseResidualSums());
  pm.addPass(createOutlineFragments({.splitWeights = pipeline.schedule == "zb-h1" && pipeline.ranks > 1}));
  pm.addPass(createScheduleCalls({.microbatches = options.microbatches, .schedule = pipeline.schedule}));
  buildZeroPipeline(pm, options);
  // Last: what is kept for the backward is settled.
  const std::vector<std::string> &rules = options.offload.activations, &values = options.offload.values;
  if (!rules.empty() || !values.empty())
    pm.addPass(
        createOffloadActivations({.rules = {rules.begin(), rules.end()}, .values = {values.begin(), values.end()}}));
  pm.addPass(createVerifyDistForm());
}

void buildDistributePipeline(OpPassManager &pm, const CompileOptions &options) {
  buildCutPipeline(pm, options);
  buildShareOutPipeline(pm, options);
}

/// Whether one launch for many parameters is worth their lying side by side: on GPUs, unless state of single ones lies
/// elsewhere, or an update needs the norm of its parameter.
static bool mergesLaunches(const CompileOptions &options) {
  return options.device == kernels::Device::Cuda && options.offload.parameters.empty() &&
         options.offload.optimizer.empty() && options.optimizer.optimizer != "lamb";
}

/// Parameters of one rank side by side: updates, sums of squares and casts of many are one launch.
static void buildLaunchPipeline(OpPassManager &pm, const CompileOptions &options) {
  constexpr int64_t elements = int64_t(1) << 25; // the gradients of a bucket live as long as one of them
  pm.addPass(createPlanBuckets({.bucketElements = elements, .forLaunches = true}));
  pm.addPass(createLayOutBuckets());
  pm.addPass(createShardOptimizer());
  if (options.pipeline.ranks > 1)
    pm.addPass(createJoinStages());
  pm.addPass(createInsertParameterGathers());
  addOptional(pm, options, createElideRedundantGathers({}));
  if (options.roundsOnce || options.microbatches == 1)
    addOptional(pm, options, createKeepParametersGathered({.microbatches = options.microbatches}));
  addOptional(pm, options, createNarrowGathers());
  // Last: until here slices and what is gathered of them are told apart.
  pm.addPass(createElideSingleGathers());
}

/// Once in a fragment, at least: where parameters lie elsewhere, they come to the device rounded.
static void addRoundOnce(OpPassManager &pm, const CompileOptions &options) {
  const OffloadOptions &offload = options.offload;
  const bool areAway = !offload.parameters.empty();
  const bool stay = !areAway && offload.optimizer == "host"; // for the step, rounded alone
  // All of a file would be read and rounded before the first forward begins; by layers, before the layer does.
  const bool wait = offload.parameters == "nvme" && options.pipeline.schedule != "accumulate-by-layer";
  const bool keeps =
      stay || (options.microbatches > 1 && !wait && (areAway || (options.roundsOnce && !options.holdsSlices())));
  if (keeps || areAway)
    addOptional(pm, options, createRoundOnce({.microbatches = options.microbatches, .keeps = keeps}));
}

void buildZeroPipeline(OpPassManager &pm, const CompileOptions &options) {
  if (options.dataParallel == 1) { // nobody to share with
    if (mergesLaunches(options))
      buildLaunchPipeline(pm, options);
    else if (options.pipeline.ranks > 1)
      pm.addPass(createJoinStages());
    addRoundOnce(pm, options);
    return;
  }
  ZeroOptions zero = options.zero;
  if (zero.stage < 3) { // what is gathered are the 16 bits that every rank works with
    zero.maxLive = zero.maxReuseDistance = unlimited;
    zero.prefetch = zero.bucketElements;
  }
  // First a decision on paper, which a user may have written already; then the layout that all that follows relies on:
  // one collective, or one update, is one contiguous piece of memory.
  pm.addPass(createPlanBuckets({.stage = laidOutStage(options),
                                .bucketElements = zero.bucketElements,
                                .persistenceThreshold = zero.persistenceThreshold,
                                .modelPersistenceThreshold = zero.modelPersistenceThreshold,
                                // What lies elsewhere comes rounded to each command, and nothing whole stays.
                                .worksIn16Bits = options.offload.parameters.empty()}));
  pm.addPass(createLayOutBuckets());
  // Right and slow: reduce when the last contribution is there, gather before every use.
  pm.addPass(createInsertReductions({.microbatches = options.microbatches}));
  // After the reductions, which stand at the head of @update: what it reads of gradients are sums.
  pm.addPass(createShardOptimizer());
  // Sums over the ranks are there, and who reads a parameter still names it.
  if (options.pipeline.ranks > 1)
    pm.addPass(createJoinStages());
  pm.addPass(createInsertParameterGathers());
  // Now less: what stays gathered within a fragment, then what stays between fragments in the room that is left.
  addOptional(pm, options,
              createElideRedundantGathers({.maxLive = zero.maxLive, .maxReuseDistance = zero.maxReuseDistance}));
  addOptional(
      pm, options,
      createKeepParametersGathered(
          {.maxLive = zero.maxLive, .maxReuseDistance = zero.maxReuseDistance, .microbatches = options.microbatches}));
  // What may begin early is moved there while a collective is still one op, whose place is when it begins.
  if (zero.overlap)
    addOptional(pm, options, createAdvanceReductions({.microbatches = options.microbatches}));
  // Before gathers are moved: those that meet ahead of one use would make it wait for the next one's.
  addOptional(pm, options, createCombineCollectives({.elements = zero.bucketElements}));
  if (zero.overlap)
    addOptional(pm, options, createHoistGathers({.maxLive = zero.maxLive, .prefetch = zero.prefetch}));
  // Where gathers stand is settled, and it counts elements: of what type they are does not matter to it.
  addOptional(pm, options, createNarrowGathers());
  addRoundOnce(pm, options); // slices that are gathered several times, too
  if (!zero.reductionType.empty())
    pm.addPass(createNarrowReductions({.type = zero.reductionType}));
  if (!zero.overlap)
    return;
  // Last: from here on only a done looks at who needs it.
  addOptional(pm, options, createSplitAsyncCollectives({.maxHeld = zero.bucketElements}));
  pm.addPass(createVerifyOverlappedForm());
}

/// State and parameters lie elsewhere.
static void buildOffloadPipeline(OpPassManager &pm, const CompileOptions &options) {
  const OffloadOptions &offload = options.offload;
  // A GPU's link brings a whole table before a host has added up its rows.
  const bool fewRows = options.device == kernels::Device::Cpu;
  if (!offload.optimizer.empty() && offload.optimizerStays > 0)
    pm.addPass(createKeepOptimizerState({.share = offload.optimizerStays}));
  if (!offload.parameters.empty() && offload.optimizer.empty())
    addOptional(pm, options, createSplitUpdates({.elements = std::numeric_limits<int64_t>::max(), .parameters = true}));
  if (!offload.parameters.empty())
    pm.addPass(createOffloadParameters(
        {.space = offload.parameters, .hostUpdates = !offload.optimizer.empty(), .hostLookups = fewRows}));
  else if (offload.optimizer == "host") // a file would be read twice a step; updates need them in host memory anyway
    pm.addPass(createOffloadParameters({.space = offload.optimizer, .hostLookups = fewRows, .forStep = true}));
  if (!offload.optimizer.empty()) {
    if (offload.optimizer == "nvme")
      addOptional(pm, options, createSplitUpdates({.elements = std::numeric_limits<int64_t>::max()}));
    // Files take long: there is more to do beside the last micro-batch's backward than what its update leaves.
    if (offload.optimizer == "nvme" && options.microbatches > 1 && !offload.gradientsInFiles)
      addOptional(pm, options, createPeelBackward());
    // First what may be updated in the backward; then updates find gradients where they lie.
    addOptional(pm, options, createAdvanceUpdates({.space = offload.optimizer, .speculates = offload.speculates}));
    const std::string gradients = offload.gradientsInFiles ? "nvme" : "host";
    pm.addPass(createOffloadGradients({.space = gradients, .hostSums = fewRows}));
    pm.addPass(createOffloadOptimizer({.space = offload.optimizer, .pending = gradients}));
  }
  // Where all lies is settled.
  if (!offload.optimizer.empty() || !offload.parameters.empty())
    pm.addPass(createRunOnHost());
  if (offload.optimizer.empty())
    return;
  if (options.delaysUpdates) // updates of the step before have been made by then
    addOptional(pm, options, createElidePendingCopies());
  if (offload.speculates) // the tail of a step finds old state in the files
    pm.addPass(createKeepOldState());
  if (!offload.sparesHostMemory) // what is read early waits there
    addOptional(pm, options, createReadAhead());
}

void buildBufferPipeline(OpPassManager &pm, const CompileOptions &options) {
  // What is computed is settled, and what it needs of scratch; where it lies is not.
  pm.addPass(createSelectKernels({.device = options.device,
                                  .tf32 = options.tf32,
                                  .threads = options.threads,
                                  .workspaceBytesPerThread = options.workspaceBytesPerThread}));
  // Right and slow: a buffer a value, a copy wherever a value is wanted in a certain place, one command after another.
  pm.addPass(createAllocateBuffers({.device = options.device}));
  // While all runs on one queue: another is only a matter of events then.
  buildOffloadPipeline(pm, options);
  // Now less: while routines are straight lines, so that a look at two buffers' uses decides.
  addOptional(pm, options, createElideCopies());
}

TrialOptions trialOptions(const CompileOptions &options) {
  return {.alignment = options.alignment,
          .patience = options.offload.sparesHostMemory ? 1.0 : 8.0,
          .reuses = !llvm::is_contained(options.without, "ds-reuse-dying-operands"),
          .reorders = !llvm::is_contained(options.without, "ds-order-for-memory")};
}

static void buildQueuePipeline(OpPassManager &pm, const CompileOptions &options) {
  const TrialOptions trial = trialOptions(options);
  // What is stored has its place now; only what is read last anyway gives its bytes away.
  addOptional(
      pm, options,
      createReuseDyingOperands({.alignment = trial.alignment, .reorders = trial.reorders, .patience = trial.patience}));
  // Last: events order what buffers are used for, and nothing may use them otherwise from here on.
  pm.addPass(createOrderQueues({.patience = trial.patience}));
}

void buildLowerPipeline(OpPassManager &pm, const CompileOptions &options) {
  buildBufferPipeline(pm, options);
  buildQueuePipeline(pm, options);
}

void buildOffsetPipeline(OpPassManager &pm, const CompileOptions &options) {
  buildQueuePipeline(pm, options);
  pm.addPass(createAssignOffsets({.alignment = options.alignment}));
  // Exact bytes decide whether another order is better, so both are laid out.
  addOptional(pm, options, createOrderForMemory({.alignment = options.alignment}));
  // Once it is known what a run executes, and from which arenas.
  if (options.device == kernels::Device::Cuda)
    addOptional(pm, options, createChooseCapturedPrograms());
  // Where operands lie says how many bytes a thread may read at once.
  if (options.device == kernels::Device::Cuda)
    addOptional(pm, options, createCompileElementwise({.isa = options.isa, .alignment = options.alignment}));
  // Export only copies fields from here.
  pm.addPass(createVerifyPlanForm());
}

void buildPlanPipeline(OpPassManager &pm, const CompileOptions &options) {
  buildBufferPipeline(pm, options);
  buildOffsetPipeline(pm, options);
}

namespace {
/// The pipelines by hand. A flag is the name of a field of CompileOptions, whose default is its own.
class PipelineFlags : public PassPipelineOptions<PipelineFlags> {
public:
  CompileOptions compileOptions() const {
    for (const auto &copy : copies_)
      copy();
    return options_;
  }

private:
  template <typename T> struct Flag : Option<T> {
    template <typename... Arguments>
    Flag(PipelineFlags &flags, StringRef name, T &field, StringRef description, Arguments &&...arguments)
        : Option<T>(flags, name, llvm::cl::desc(description), llvm::cl::init(field),
                    std::forward<Arguments>(arguments)...) {
      flags.copies_.push_back([this, &field] { field = this->getValue(); });
    }
  };

  CompileOptions options_;
  std::vector<std::function<void()>> copies_; // from flags to fields

  Flag<int64_t> microbatches_{*this, "microbatches", options_.microbatches, "micro-batches of one rank and step"};
  Flag<std::string> optimizer_{*this, "optimizer", options_.optimizer.optimizer, "adamw, sgd, adagrad, lion or lamb"};
  Flag<double> lr_{*this, "lr", options_.optimizer.lr, "learning rate"};
  Flag<std::string> narrow_{*this, "narrow", options_.narrow, "compute with bf16 or f16"};
  Flag<std::string> sums_{*this, "sums", options_.sums, "sum gradients in bf16 or f16"};
  Flag<std::string> masters_{*this, "masters", options_.masters, "keep trained parameters in bf16 or f16"};
  Flag<bool> narrowMoments_{*this, "narrow-moments", options_.optimizer.narrowMoments, "and their optimizer state"};
  Flag<std::string> fp8_{*this, "fp8", options_.fp8, "linear layers in 8 bits: tensor or block"};
  Flag<bool> countsTargets_{*this, "count-targets", options_.countsTargets, "weigh losses by targets"};
  Flag<bool> delaysUpdates_{*this, "delay-updates", options_.delaysUpdates, "updates are of the step before"};
  Flag<int64_t> dataParallel_{*this, "data-parallel", options_.dataParallel, "ranks of the data axis"};
  Flag<int64_t> tensorParallel_{*this, "tensor-parallel", options_.tensorParallel, "ranks of the tensor axis"};
  Flag<int64_t> pipe_{*this, "pipe", options_.pipeline.ranks, "ranks along the pipeline"};
  Flag<int64_t> chunks_{*this, "chunks", options_.pipeline.chunks, "pipeline stages of a rank"};
  Flag<std::string> schedule_{*this, "schedule", options_.pipeline.schedule,
                              "gpipe, 1f1b, interleaved, zb-h1 or accumulate-by-layer"};
  Flag<std::string> partition_{*this, "partition", options_.pipeline.partition,
                               "best, uniform, parameters or type:REGEX"};
  Flag<int64_t> stage_{*this, "stage", options_.zero.stage, "ZeRO stage"};
  Flag<int64_t> bucketElements_{*this, "bucket-elements", options_.zero.bucketElements, "elements of a bucket"};
  Flag<int64_t> persistence_{*this, "persistence-threshold", options_.zero.persistenceThreshold,
                             "stage 3: elements of a parameter that every rank keeps whole"};
  Flag<bool> overlap_{*this, "overlap", options_.zero.overlap, "collectives run beside compute"};
  Flag<int64_t> maxLive_{*this, "max-live", options_.zero.maxLive, "stage 3: elements that may be gathered at once"};
  Flag<std::string> offloadParameters_{*this, "offload-parameters", options_.offload.parameters,
                                       "host or nvme: parameters lie there until a command reads them"};
  Flag<std::string> offloadOptimizer_{*this, "offload-optimizer", options_.offload.optimizer,
                                      "host or nvme: optimizer state lies there, and is updated by the host"};
  Flag<int64_t> threads_{*this, "threads", options_.threads, "compute workers of a rank"};
  Flag<int64_t> workspace_{*this, "workspace-bytes-per-thread", options_.workspaceBytesPerThread,
                           "most bytes of a workspace for each worker"};
  Flag<int64_t> alignment_{*this, "alignment", options_.alignment, "of every offset, bytes"};
  Flag<kernels::Device> device_{
      *this, "device", options_.device, "what kernels run on",
      llvm::cl::values(clEnumValN(kernels::Device::Cpu, "cpu", ""), clEnumValN(kernels::Device::Cuda, "cuda", ""))};
};

void registerPipeline(StringRef flag, StringRef summary, void (*build)(OpPassManager &, const CompileOptions &)) {
  PassPipelineRegistration<PipelineFlags>(
      flag, summary, [build](OpPassManager &pm, const PipelineFlags &flags) { build(pm, flags.compileOptions()); });
}
} // namespace

void registerPassesAndPipelines() {
  registerDSTrainPasses();
  registerDSFusionPasses();
  registerDSRecomputePasses();
  registerDSTensorPasses();
  registerDSPipelinePasses();
  registerDSZeroPasses();
  registerDSOffloadPasses();
  registerDSPlanPasses();
  registerPipeline("ds-simplify-pipeline", "what import leaves to be tidied up", buildSimplifyPipeline);
  registerPipeline("ds-gradient-pipeline", "@forward to @microbatch, @update, @evaluate", buildGradientPipeline);
  registerPipeline("ds-distribute-pipeline", "train to dist: fragments and schedules", buildDistributePipeline);
  registerPipeline("ds-zero-pipeline", "dist, every rank alike, to gradients summed and state shared out",
                   buildZeroPipeline);
  registerPipeline("ds-lower-pipeline", "dist to plan without offsets: kernels, buffers, queues", buildLowerPipeline);
  registerPipeline("ds-plan-pipeline", "dist to plan: kernels, buffers, offsets", buildPlanPipeline);
}

} // namespace ds
