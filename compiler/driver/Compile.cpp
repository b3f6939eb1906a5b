//===- Compile.cpp - from a model and a configuration to a plan -----------===//
#include "compiler/driver/Compile.h"

#include "compiler/analysis/Cost.h"
#include "compiler/config/Hjson.h"
#include "compiler/driver/ChooseRatio.h"
#include "compiler/driver/ChooseSchedule.h"
#include "compiler/driver/CombineLengths.h"
#include "compiler/driver/Diagnostics.h"
#include "compiler/driver/ModelFacts.h"
#include "compiler/driver/PassOptions.h"
#include "compiler/driver/PlanHeader.h"
#include "compiler/driver/PlanOffloaded.h"
#include "compiler/driver/PlanWithinMemory.h"
#include "compiler/driver/RunPipeline.h"
#include "compiler/driver/TensorLimits.h"
#include "compiler/export/Export.h"
#include "compiler/import/files/Files.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/plan/RoleSteps.h"
#include "core/Error.h"
#include "core/Files.h"
#include "core/HeapReserve.h"
#include "core/Sha256.h"
#include "dialects/Dist/Dist.h"
#include "dialects/Plan/Plan.h"
#include "dialects/Train/Train.h"
#include "runtime/plan/format/PlanFile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/Support/FileSystem.h"

#include <cstring>
#include <filesystem>
#include <google/protobuf/text_format.h>

using namespace mlir;
using namespace ds;
using namespace ds::driver;
namespace fs = std::filesystem;

Emit ds::driver::emitFromName(std::string_view name) {
  constexpr std::pair<std::string_view, Emit> names[] = {{"train", Emit::Train}, {"grad", Emit::Grad},
                                                         {"dist", Emit::Dist},   {"schedule", Emit::Schedule},
                                                         {"plan", Emit::Plan},   {"plan-text", Emit::PlanText}};
  for (auto [word, emit] : names)
    if (word == name)
      return emit;
  throw Error("--emit " + std::string(name) + " is none of train, grad, dist, schedule, plan, plan-text");
}

static std::string readText(const std::string &path) {
  if (std::optional<std::string> text = readWhole(path, config::hjsonSizeLimit + 1))
    return *std::move(text);
  throw Error(path + ": cannot be read: " + std::strerror(errno) + "; --config takes a DeepSpeed ds_config.json");
}

/// Where machine files are looked for: installed beside the tool, in its source tree, in the current folder.
static std::vector<fs::path> machineFolders() {
  const fs::path tool = llvm::sys::fs::getMainExecutable(nullptr, nullptr);
  return {tool.parent_path() / "../share/deepstatic/models/machines", tool.parent_path() / "../../../models/machines",
          fs::path("models/machines")};
}

static std::string print(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  OpPrintingFlags flags;
  flags.elideLargeElementsAttrs(64).elideLargeResourceString(64);
  module.print(stream, flags);
  return text;
}

static void loadDialects(MLIRContext &context) {
  reserveHeap(dialectBytes);
  context.loadDialect<func::FuncDialect, train::TrainDialect, dist::DistDialect, plan::PlanDialect>();
}

/// The optimizer is either the configuration's or the model's; returns whether it is the model's.
static bool checkOptimizer(const config::Config &config, ModuleOp module, const std::string &file) {
  auto forward = module.lookupSymbol<func::FuncOp>("forward");
  const bool own = forward && forward->hasAttr("train.algorithm"),
             given = config.optimizer.type != config::Optimizer::Type::None;
  const auto refuse = [&](const std::string &what, const std::string &instead) {
    throw Error(file + ": " + what + ", but the model brings its own training algorithm (training_info); " + instead);
  };
  if (!own && !given)
    throw Error(file + ": " + std::string(config::missingOptimizer), std::string(config::missingOptimizerTry));
  if (!own)
    return false;
  if (given)
    refuse("optimizer.type is \"" + std::string(config::name(config.optimizer.type)) + "\"",
           "leave \"optimizer\" out, or give the forward graph alone");
  if (config.scheduler.type != config::Scheduler::Type::None)
    refuse("scheduler.type is \"" + std::string(config::name(config.scheduler.type)) + "\"", "leave \"scheduler\" out");
  if (config.worldRanks != 1)
    refuse("--ranks is " + std::to_string(config.worldRanks),
           "which updates from one micro-batch; compile it for 1 rank");
  if (config.accumulationSteps != 1)
    refuse("gradient_accumulation_steps is " + std::to_string(config.accumulationSteps),
           "which updates after every micro-batch; set it to 1");
  if (config.bf16)
    refuse("bf16.enabled is true", "which is computed as the file says; set it to false");
  if (config.fp16)
    refuse("fp16.enabled is true", "which is computed as the file says; set it to false");
  if (!config.sums.empty())
    refuse("data_types.grad_accum_dtype is \"" + std::string(config.sums == "f16" ? "fp16" : "bf16") + "\"",
           "which sums as the file says; leave it out");
  if (config.lossByTokens)
    refuse("deepstatic.loss_normalization is \"tokens\"", "which computes its loss itself; leave it at \"microbatch\"");
  if (config.delayedUpdate)
    refuse("deepstatic.delayed_update is true", "whose updates the file orders; set it to false");
  for (const config::KeyAnswer &answer : config.answers)
    if (answer.path == "gradient_clipping" && config.gradientClipping)
      refuse("gradient_clipping is " + answer.valueJson, "leave it out, or set it to 0");
  return true;
}

/// Refuses products in 8 bits that a machine's GPUs do not have.
static void requireFp8(const std::string &fp8, const config::Machine &machine) {
  const int capability = config::computeCapability(machine.isa);
  if (fp8 == "off" || machine.device != "cuda" || (fp8 == "tensor" ? capability >= 89 : capability == 90))
    return;
  const std::string rule = capability < 89 ? "GPUs multiply numbers of 8 bits from compute capability 8.9 on"
                                           : "only GPUs of compute capability 9.0 have scales of such blocks";
  throw Error("deepstatic.fp8 is \"" + fp8 + "\", but " + rule + ", and machine " + machine.name + " has isa " +
                  (machine.isa.empty() ? "sm_80" : machine.isa),
              std::string("--set deepstatic.fp8=") + (capability < 89 ? "off" : "tensor"));
}

/// The machine with the memory that the user grants of it.
static config::Machine loadMachine(const CompileRequest &request, const config::Config &config) {
  config::Machine machine = config::loadMachine(request.machine, machineFolders());
  if (machine.deviceMemory > 0 && config.deviceMemory > machine.deviceMemory)
    throw Error((request.overrides.deviceMemory ? "--device-memory is " : "deepstatic.device_memory is ") +
                std::to_string(*config.deviceMemory) + " bytes, but machine " + machine.name + " has only " +
                std::to_string(machine.deviceMemory) + " for a rank; grant it at most that");
  machine.deviceMemory = config.deviceMemory.value_or(machine.deviceMemory);
  machine.hostMemory = config.hostMemory.value_or(machine.hostMemory);
  requireFp8(config.fp8, machine);
  return machine;
}

/// In words.
static config::AutoValue chosenOffload(const OffloadOptions &offload, int64_t room) {
  std::string what;
  for (const auto &[chosen, name] : {std::pair(!offload.activations.empty() || !offload.values.empty(), "activations"),
                                     {!offload.optimizer.empty(), "optimizer state"},
                                     {!offload.parameters.empty(), "parameters"}})
    if (chosen)
      what += (what.empty() ? "" : ", ") + std::string(name);
  return {.path = "deepstatic.offload",
          .valueJson = "\"" + (what.empty() ? "none" : what) + "\"",
          .why = room > 0 ? "as little as fits into " + std::to_string(room) + " bytes of device memory" +
                                (offload.values.empty()
                                     ? ""
                                     : ": " + std::to_string(offload.values.size()) + " tensors of activations")
                          : "the device's memory is unknown; --device-memory says it"};
}

/// For passes that ask how long work takes.
static void setRates(ModuleOp module, const Rates &rates, bool tf32) {
  if (rates.known())
    module->setAttr(
        ratesAttribute,
        Builder(module.getContext())
            .getDenseF64ArrayAttr({rates.bytes, rates.commandSeconds, tf32 ? rates.tf32 : rates.float32, rates.tf32,
                                   rates.bfloat16, rates.fp8, rates.attention, rates.multiprocessors}));
}

/// For passes that ask how long transfers take.
static void setLinks(ModuleOp module, const config::Machine &machine) {
  Builder builder(module.getContext());
  SmallVector<NamedAttribute> links;
  for (const config::Link &link : machine.links)
    if (StringRef(link.between).contains('-'))
      links.push_back(
          builder.getNamedAttr(link.between, builder.getDenseF64ArrayAttr({link.bytesPerSecond, link.latencySeconds})));
  module->setAttr(linksAttribute, builder.getDictionaryAttr(links));
}

/// `--dim batch=N` is a micro-batch of N samples.
static config::ConfigOverrides overridesOf(const CompileRequest &request, const std::string &configuration) {
  config::ConfigOverrides overrides = request.overrides;
  const auto batch = request.model.dims.find("batch");
  if (batch == request.model.dims.end())
    return overrides;
  for (const std::string &set : overrides.sets)
    if (StringRef(set).starts_with("train_micro_batch_size_per_gpu="))
      throw Error("--dim batch=" + std::to_string(batch->second) + " and --set " + set +
                  " both say how many samples a micro-batch has; leave one of them out");
  const config::Node file = config::parseHjson(configuration, overrides.fileName);
  const config::Node *written = config::at(file, "train_micro_batch_size_per_gpu");
  if (written && written->kind == config::Node::Kind::Int && written->integer != batch->second)
    throw Error("--dim batch=" + std::to_string(batch->second) + ", but train_micro_batch_size_per_gpu is " +
                std::to_string(written->integer) + " in " + overrides.fileName + "; leave one of them out");
  overrides.sets.push_back("train_micro_batch_size_per_gpu=" + std::to_string(batch->second));
  return overrides;
}

/// What a model computes in float16 needs the loss scale that "fp16" brings.
static void requireLossScale(ModuleOp module, const std::string &model) {
  module.walk([&](Operation *op) {
    for (Type type : op->getResultTypes())
      if (const auto tensor = dyn_cast<RankedTensorType>(type); tensor && tensor.getElementType().isF16())
        throw Error(model + ": the model computes in float16 itself, whose gradients vanish without a loss scale",
                    "--set fp16.enabled=true, or cast to bfloat16 in the model");
  });
}

/// Imports and simplifies.
static OwningOpRef<ModuleOp> importModel(const CompileRequest &request, const config::Config &config,
                                         CompileOptions &options, MLIRContext &context,
                                         const DiagnosticCollector &diagnostics) {
  import::ImportOptions model = request.model;
  model.dims["batch"] = config.microBatchSize;
  model.attach = config.loss;
  OwningOpRef<ModuleOp> module = import::importModel(context, model);
  if (!module)
    diagnostics.raise("import");
  if (!config.fp16)
    requireLossScale(*module, request.model.path);
  options.ownAlgorithm = checkOptimizer(config, *module, request.overrides.fileName);
  if (options.ownAlgorithm && options.adapters.rank != 0)
    throw Error("--lora " + std::to_string(options.adapters.rank) +
                    ": the model brings its own training algorithm (training_info), which updates no adapters",
                "give the forward graph alone");
  runPipeline(*module, "simplification", buildSimplifyPipeline, options, diagnostics);
  return module;
}

/// What decides where state lies must decide the same for every length.
static void requireSharable(const Lengths &lengths, const config::Config &config) {
  const std::string several = ", but --dim " + lengths.dimension + " has several sizes; give one";
  if (config.pipeline.stages > 1)
    throw Error("deepstatic.pipeline.stages is " + std::to_string(config.pipeline.stages) + several);
  if (config.offloadAuto)
    throw Error("deepstatic.offload is \"auto\"" + several + ", or say what is to leave");
  if (config.pipeline.scheduleAuto)
    throw Error("deepstatic.pipeline.schedule is \"auto\"" + several + ", or name the schedule");
  if (config.offloadRatioAuto)
    throw Error("zero_optimization.offload_optimizer.ratio is \"auto\"" + several + ", or write the ratio");
}

/// A loss in a file has its digest in the plan, and its path from the plan's folder.
static void noteLossFile(const std::string &folder, const std::string &digest, AttachedLoss &loss) {
  if (sha256OfFile(loss.file) != digest)
    throw Error(loss.file + " was changed while it was read; compile it again");
  loss.sha256 = hexOf(digest);
  loss.file = fs::absolute(loss.file).lexically_proximate(fs::absolute(folder.empty() ? "." : folder)).string();
}

/// The plan says which loss it has, also where the model's class said it.
static void noteAttachedLoss(ModuleOp module, config::Config &config) {
  const auto kind = module->getAttrOfType<StringAttr>("train.attached_loss");
  if (!kind) // the model's own, or a file
    return;
  if (!config.loss)
    config.loss = AttachedLoss{.kind = lossKindFromName(kind.getValue()).value()};
  config.loss->logits = module->getAttrOfType<StringAttr>("train.attached_logits").str();
}

/// The single-device program before it is differentiated, and what it is made by.
struct Program {
  config::Config config;
  CompileOptions options;
  OwningOpRef<ModuleOp> module;
};

/// `overrides` must have no model yet; where keys are "auto", the model's facts answer them.
static Program importProgram(const CompileRequest &request, const std::string &configuration,
                             config::ConfigOverrides overrides, config::Config config, const config::Machine &machine,
                             MLIRContext &context, const DiagnosticCollector &diagnostics) {
  CompileOptions options = compileOptions(request, config, machine);
  OwningOpRef<ModuleOp> module = importModel(request, config, options, context, diagnostics);
  if (!config.autos.empty()) { // nothing that the import took from it changes
    const std::optional<AttachedLoss> loss = std::move(config.loss);
    overrides.model = modelFacts(*module);
    config = config::resolveConfig(configuration, overrides);
    config.loss = loss;
    const bool ownAlgorithm = options.ownAlgorithm;
    options = compileOptions(request, config, machine);
    options.ownAlgorithm = ownAlgorithm;
  }
  noteAttachedLoss(*module, config);
  return {std::move(config), std::move(options), std::move(module)};
}

/// Returns whether the configuration itself names something that lies elsewhere.
static bool leavesSomething(const OffloadOptions &offload) {
  return !offload.activations.empty() || !offload.optimizer.empty() || !offload.parameters.empty();
}

/// Plans what memory decides: roundings, recompute, places. Returns null where nothing has to be decided.
static OwningOpRef<ModuleOp> planByMemory(const CompileRequest &request, const config::Config &config,
                                          const config::Machine &machine, ModuleOp module, CompileOptions &options,
                                          const DiagnosticCollector &diagnostics) {
  const int64_t room = roomOf(machine);
  const bool leaves = leavesSomething(options.offload) || config.offloadAuto;
  if (leaves)
    setLinks(module, machine);
  const bool searches = config.recompute.mode == config::Recompute::Mode::Auto;
  if (config.offloadAuto && leavesSomething(options.offload))
    options.roundsOnce = false; // how long compute waits decides there, not what fits first
  else if (OwningOpRef<ModuleOp> planned = planRoundingOnce(module, room, searches, options, diagnostics))
    return planned;
  if (room > 0 && (searches || leaves)) {
    request.progress("fitting it into memory");
    return config.offloadAuto ? planOffloaded(module, room, searches, offloadChoices(options),
                                              describedMachine(machine), options, diagnostics)
                              : planWithinMemory(module, room, searches, options, diagnostics);
  }
  if (options.offload.optimizer == "nvme" && machine.hostMemory > 0) // gradients may have to lie in files, too
    return planWithinMemory(module, std::numeric_limits<int64_t>::max(), false, options, diagnostics);
  return nullptr;
}

static CompileResult compileOne(const CompileRequest &request, MLIRContext &context,
                                const DiagnosticCollector &diagnostics) {
  request.progress("reading the configuration");
  const std::string configuration = readText(request.configPath);
  config::ConfigOverrides overrides = overridesOf(request, configuration);
  config::Config config = config::resolveConfig(configuration, overrides);
  const config::Machine machine = loadMachine(request, config);
  const bool sharesState = !request.lengths.sizes.empty();
  if (sharesState)
    requireSharable(request.lengths, config);
  requireCutOverTensor(request, config);

  request.progress("importing the model");
  const std::string modelDigest = sha256OfFile(import::modelFile(request.model.path));
  const std::string lossFile = config.loss ? config.loss->file : "";
  const std::string lossDigest = lossFile.empty() ? "" : sha256OfFile(lossFile);
  if (!lossFile.empty() && !config.loss->sha256.empty() && config.loss->sha256 != hexOf(lossDigest))
    throw Error("deepstatic.loss: the SHA-256 of " + lossFile + " is " + hexOf(lossDigest) + ", not " +
                config.loss->sha256 + "; give the file that it was, or leave sha256 out");
  Program program = importProgram(request, configuration, overrides, std::move(config), machine, context, diagnostics);
  config = std::move(program.config);
  CompileOptions &options = program.options;
  OwningOpRef<ModuleOp> &module = program.module;
  if (request.emit == Emit::Train)
    return {print(*module), {}};
  request.progress("differentiating");
  runPipeline(*module, "differentiation", buildGradientPipeline, options, diagnostics);
  if (request.emit == Emit::Grad)
    return {print(*module), {}};
  setRates(*module, machine.rates, config.tf32);
  if (sharesState)
    (*module)->setAttr(stateFirstAttribute, UnitAttr::get(&context));
  OwningOpRef<ModuleOp> planned = planByMemory(request, config, machine, *module, options, diagnostics);
  if (config.offloadAuto)
    config.autos.push_back(chosenOffload(options.offload, roomOf(machine)));
  const bool distributed = request.emit == Emit::Dist || request.emit == Emit::Schedule;
  if (planned && !distributed)
    module = std::move(planned);
  else {
    request.progress("distributing");
    runPipeline(*module, "distribution", buildDistributePipeline, options, diagnostics);
    if (distributed)
      return {print(*module), {}};
    request.progress("planning");
    runPipeline(*module, "planning", buildPlanPipeline, options, diagnostics);
  }
  noteRatio(*module, config);
  if (request.emit == Emit::Plan)
    return {print(*module), {}};
  request.progress("writing the plan");
  CompileResult result;
  result.autos = config.autos;
  noteRecompute(*module, config.recompute, result.plan);
  const std::string folder = fs::path(request.output).parent_path().string();
  if (!lossFile.empty())
    noteLossFile(folder, lossDigest, *config.loss);
  describe(request, config, machine, *module, result.plan);
  if (failed(exporting::exportPlan(*module, {folder}, result.plan)))
    diagnostics.raise("export");
  recordSources(request, overrides.sets, modelDigest, configuration, folder, result.plan);
  if (request.emit == Emit::PlanText)
    google::protobuf::TextFormat::PrintToString(result.plan, &result.text);
  return result;
}

/// What is chosen by planning several times.
struct Choices {
  bool order = false; // of micro-batches
  bool ratio = false; // of the optimizer state that leaves
};

static Choices choicesOf(const CompileRequest &request) {
  const std::string configuration = readText(request.configPath);
  const config::Config config = config::resolveConfig(configuration, overridesOf(request, configuration));
  return {config.pipeline.scheduleAuto, config.offloadRatioAuto};
}

CompileResult ds::driver::compile(const CompileRequest &request) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  loadDialects(context);
  const DiagnosticCollector diagnostics(context, request.warn);
  const Lengths &lengths = request.lengths;
  const auto planOne = [&](const CompileRequest &one) { return compileOne(one, context, diagnostics); };
  if (lengths.sizes.empty()) {
    const Choices choices = choicesOf(request);
    const auto withRatio = [&](const CompileRequest &one) {
      return choices.ratio ? compileWithRatio(one, planOne) : planOne(one);
    };
    return choices.order ? compileShortest(request, withRatio) : withRatio(request);
  }
  if (request.emit != Emit::PlanFile && request.emit != Emit::PlanText)
    throw Error("--emit prints one program, but --dim " + lengths.dimension + " has several sizes; give one");
  CompileResult result;
  std::vector<plan::proto::Plan> plans;
  for (const int64_t size : lengths.sizes) {
    CompileRequest one = request;
    one.model.dims[lengths.dimension] = size;
    result = planOne(one);
    plans.push_back(std::move(result.plan));
  }
  result.plan = combineLengths(lengths.dimension, lengths.sizes, std::move(plans));
  if (request.emit == Emit::PlanText)
    google::protobuf::TextFormat::PrintToString(result.plan, &result.text);
  return result;
}

plan::proto::Plan ds::driver::programOf(const CompileRequest &request, const std::string &device) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  loadDialects(context);
  const DiagnosticCollector diagnostics(context, request.warn);
  const std::string configuration = readText(request.configPath);
  const config::ConfigOverrides overrides = overridesOf(request, configuration);
  config::Config config = config::resolveConfig(configuration, overrides);
  if (request.model.attach && config.loss) // where its file lies now
    config.loss->file = request.model.attach->file;
  config::Machine machine;
  machine.device = device;
  const Program program =
      importProgram(request, configuration, overrides, std::move(config), machine, context, diagnostics);
  runPipeline(*program.module, "differentiation", buildGradientPipeline, program.options, diagnostics);
  runPipeline(
      *program.module, "recording",
      [](OpPassManager &pm, const CompileOptions &) { pm.addPass(createRecordReference()); }, program.options,
      diagnostics);
  plan::proto::Plan plan;
  if (failed(exporting::exportProgram(*program.module, plan)))
    diagnostics.raise("export");
  return plan;
}

void ds::driver::requireReadable(const CompileRequest &request) {
  readText(request.configPath);
  config::loadMachine(request.machine, machineFolders());
  import::InputFile::open(import::modelFile(request.model.path));
}

std::string ds::driver::parametersOf(import::ImportOptions options) {
  std::string table;
  options.parameters = &table;
  options.results = import::ImportOptions::Results::Outputs; // whatever the loss is
  options.attach.reset();
  importToText(options);
  return table;
}

std::string ds::driver::importToText(const import::ImportOptions &options) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  loadDialects(context);
  DiagnosticCollector diagnostics(context);
  OwningOpRef<ModuleOp> module = import::importModel(context, options);
  if (!module)
    diagnostics.raise("import");
  return print(*module);
}
