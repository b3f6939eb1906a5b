//===- CutPipelineStages.cpp - decide which stage runs each op ----------------===//
//
// 1. Units: the ops of the forward that compute (ForwardChain.h). What is repeated wherever it is needed is none.
// 2. Cuts: compiler/scheduling/PipelinePartition.h on their costs, forward and backward, and the bytes that cross each
//    position.
// 3. A backward op runs where its forward op does, which its location names, but never in a later stage than what it
//    reads of gradients, nor in an earlier one than the stages that need what becomes of it; sums of gradients, which
//    belong to no forward op, run where the last of them is made. Evaluation follows the forward in the same way.
// 4. The gradient of a parameter that several stages read is added up by each of them for itself; ds-join-stages sums
//    these.
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/ForwardChain.h"
#include "compiler/analysis/Stages.h"
#include "compiler/analysis/TrainStep.h"
#include "compiler/passes/pipeline/Passes.h"
#include "compiler/scheduling/PartitionMethod.h"
#include "compiler/scheduling/PipelineSchedule.h"
#include "dialects/Dist/Mesh.h"
#include "dialects/Train/LocationName.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/Regex.h"

namespace ds {
#define GEN_PASS_DEF_CUTPIPELINESTAGES
#include "compiler/passes/pipeline/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

struct CutPipelineStages : ds::impl::CutPipelineStagesBase<CutPipelineStages> {
  using CutPipelineStagesBase::CutPipelineStagesBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    symbols_ = &symbols;
    auto microbatch = symbols.lookup<func::FuncOp>("microbatch"), evaluate = symbols.lookup<func::FuncOp>("evaluate");
    if (!microbatch || !evaluate || !microbatch.getBody().hasOneBlock() || !evaluate.getBody().hasOneBlock()) {
      module.emitError("needs @microbatch and @evaluate, of one block each; see ds-verify-train-form");
      return signalPassFailure();
    }
    dist::MeshOp mesh = dist::requireMesh(module);
    if (!mesh)
      return signalPassFailure();
    ranks_ = dist::axisSize(mesh, dist::pipeAxis);
    if (stages < 1) {
      module.emitError() << "stages is " << stages.getValue() << "; it must be at least 1";
      return signalPassFailure();
    }
    ForwardChain chain(microbatch, symbols);
    if (failed(cut(chain)))
      return signalPassFailure();
    if (stages_ == 1)
      return;
    if (failed(checkState(chain)))
      return signalPassFailure();
    followForward(chain);
    boundBackward(chain);
    for (Operation *op : chain.backward)
      placeBackward(op);
    splitTies(chain);
    placeEvaluation(evaluate);
  }

private:
  static void setStage(Operation *op, int64_t stage) {
    op->setAttr(pipelineStageAttribute, IntegerAttr::get(IntegerType::get(op->getContext(), 64), stage));
  }

  /// Writes the stage of every unit: as a user has written some, or where the best cuts are.
  LogicalResult cut(const ForwardChain &chain) {
    if (llvm::any_of(chain.units, [](Operation *op) { return stageOf(op).has_value(); }))
      return completeByHand(chain);
    stages_ = stages;
    if (stages == 1)
      return cutLayers(chain), success();
    scheduling::PartitionProblem problem = chain.problem();
    problem.stages = stages;
    if (failed(balance(problem, chain)))
      return failure();
    if (std::optional<std::string> reason = problem.check())
      return refuseCut() << *reason;
    limitMemory(problem);
    std::optional<scheduling::Partition> cuts = cutAtCandidates(problem);
    if (!cuts && problem.memoryBytes > 0) { // an estimate refuses nothing: the plan's bytes are exact
      problem.memoryBytes = 0;
      cuts = cutAtCandidates(problem);
    }
    if (!cuts)
      return refuseCut() << "there are " << llvm::count(scheduling::candidateCuts(problem), 1)
                         << " places where it may be cut; ask for at most one stage more than that"
                         << (llvm::none_of(
                                 chain.carriedState(),
                                 [](const ForwardChain::CarriedState &state) { return state.first < state.last; })
                                 ? ""
                                 : "; what reads and what changes a buffer that forward changes lies in one stage");
    if (std::optional<std::string> reason = scheduling::verify(problem, *cuts))
      return getOperation().emitError() << "was cut wrongly: " << *reason;
    for (auto [index, op] : llvm::enumerate(chain.units))
      setStage(op, llvm::upper_bound(cuts->cuts, int64_t(index)) - cuts->cuts.begin());
    return success();
  }

  InFlightDiagnostic refuseCut() {
    return getOperation().emitError() << "the model cannot be cut into " << stages.getValue()
                                      << " stages, for which deepstatic.pipeline.stages and chunks ask: ";
  }

  /// Where one rank runs all micro-batches of a layer before the next, a stage a layer, unless chunks are asked for.
  void cutLayers(const ForwardChain &chain) {
    if (scheduling::pipelineScheduleFromName(schedule) != scheduling::PipelineSchedule::AccumulateByLayer)
      return;
    const scheduling::PartitionProblem problem = chain.problem();
    if (problem.check())
      return; // nothing computes
    const std::vector<int64_t> begins = joinShort(problem, scheduling::layerBeginsOfModel(problem));
    stages_ = int64_t(begins.size());
    for (auto [index, op] : llvm::enumerate(chain.units))
      setStage(op, llvm::upper_bound(begins, int64_t(index)) - begins.begin() - 1);
  }

  /// What takes less than a quarter of the mean layer's time (an embedding, a norm) is a part of the layer behind it;
  /// behind the last one, of that before it. Nothing would be hidden beside it.
  static std::vector<int64_t> joinShort(const scheduling::PartitionProblem &problem, ArrayRef<int64_t> begins) {
    const auto units = int64_t(problem.units.size());
    const auto secondsUpTo = [&](int64_t begin, int64_t end) { return scheduling::stageSeconds(problem, begin, end); };
    const double least = secondsUpTo(0, units) / double(begins.size()) / 4;
    std::vector<int64_t> kept{0};
    for (const int64_t begin : begins.drop_front())
      if (secondsUpTo(kept.back(), begin) >= least && secondsUpTo(begin, units) >= least)
        kept.push_back(begin);
    return kept;
  }

  static std::optional<scheduling::Partition> cutAtCandidates(scheduling::PartitionProblem problem) {
    problem.mayCut = scheduling::candidateCuts(problem);
    return scheduling::partition(problem);
  }

  /// Each stage has its share of a rank's memory.
  void limitMemory(scheduling::PartitionProblem &problem) {
    const std::optional<scheduling::PipelineSchedule> kind = scheduling::pipelineScheduleFromName(schedule);
    if (memory <= 0 || !kind || stages % ranks_ != 0)
      return;
    scheduling::ScheduleProblem calls;
    calls.kind = *kind;
    calls.ranks = ranks_;
    calls.chunks = stages / ranks_;
    calls.microbatches = microbatches;
    if (calls.check())
      return;
    problem.memoryBytes = memory / calls.chunks;
    for (int64_t stage = 0; stage < stages; ++stage)
      problem.inFlight.push_back((calls.inFlightLimit(stage) + calls.chunks - 1) / calls.chunks);
    for (scheduling::PartitionProblem::Unit &unit : problem.units)
      unit.stateBytes = int64_t(double(unit.stateBytes) * stateBytes);
  }

  /// Puts what the user wants stages to share evenly in place of time.
  LogicalResult balance(scheduling::PartitionProblem &problem, const ForwardChain &chain) {
    using Method = scheduling::PartitionMethod;
    const std::optional<Method> method = Method::fromName(partition.getValue());
    if (!method)
      return getOperation().emitError() << "partition \"" << partition.getValue()
                                        << "\" is none of best, uniform, parameters, type:REGEX";
    if (method->kind == Method::Kind::Best)
      return success();
    if (std::string reason; method->kind == Method::Kind::Type && !llvm::Regex(method->pattern).isValid(reason))
      return getOperation().emitError() << "partition \"" << partition.getValue()
                                        << "\" holds no regular expression: " << reason;
    std::vector<int64_t> parameterBytes;
    std::vector<std::string> layers;
    for (auto [unit, op] : llvm::zip(problem.units, chain.units)) {
      parameterBytes.push_back(unit.stateBytes);
      layers.push_back(method->kind == Method::Kind::Type ? layerOf(op, method->pattern) : "");
    }
    const std::vector<double> weights = scheduling::weightsToBalance(method->kind, problem, parameterBytes, layers);
    if (llvm::all_of(weights, [](double weight) { return weight == 0; }))
      return getOperation().emitError()
             << "partition \"" << partition.getValue()
             << "\" leaves nothing to share: no module's name matches; that of an op half-way is \""
             << train::locationName(chain.units[chain.units.size() / 2]->getLoc()) << "\"";
    for (auto [unit, weight] : llvm::zip(problem.units, weights))
      unit.seconds = weight;
    problem.secondsPerByte = 0;
    return success();
  }

  /// The outermost scope of an op's name, "model/layers.0", that the expression matches; empty if it matches none.
  static std::string layerOf(Operation *op, StringRef pattern) {
    const llvm::Regex expression(pattern, llvm::Regex::IgnoreCase);
    const std::string name = train::locationName(op->getLoc());
    for (size_t end = name.find('/'); end != std::string::npos; end = name.find('/', end + 1)) {
      const size_t begin = name.rfind('/', end - 1);
      if (expression.match(StringRef(name).slice(begin == std::string::npos ? 0 : begin + 1, end)))
        return name.substr(0, end);
    }
    return "";
  }

  /// One rank holds what a micro-batch leaves to the next.
  LogicalResult checkState(const ForwardChain &chain) {
    for (const ForwardChain::CarriedState &state : chain.carriedState()) {
      carried_[state.variable] = *stageOf(chain.units[size_t(state.first)]);
      if (Operation *first = chain.units[size_t(state.first)], *last = chain.units[size_t(state.last)];
          stageOf(first) != stageOf(last))
        return last->emitOpError()
               << "changes '" << state.variable.getValue() << "' in stage " << *stageOf(last) << ", and stage "
               << *stageOf(first)
               << " reads or changes it; one stage must do both: cut the stages elsewhere, or have one";
    }
    return success();
  }

  /// A unit without a stage follows the one before it.
  LogicalResult completeByHand(const ForwardChain &chain) {
    int64_t stage = 0;
    Operation *before = nullptr;
    for (Operation *op : chain.units) {
      const int64_t own = stageOf(op).value_or(stage);
      if (own < stage || own > stage + 1) {
        InFlightDiagnostic error = op->emitOpError()
                                   << "has " << pipelineStageAttribute << " " << own << " behind an op of stage "
                                   << stage << "; stages follow each other in program order, without gaps";
        if (before)
          error.attachNote(before->getLoc()) << "the op before it";
        return error;
      }
      setStage(op, stage = own);
      before = op;
    }
    stages_ = stage + 1;
    if (stages > 1 && stages_ != stages)
      return getOperation().emitError() << "has ops of " << stages_ << " stages, and " << stages.getValue()
                                        << " were asked for";
    return success();
  }

  /// What a later op's stage follows from: the names of units, and who reads a parameter or writes
  /// a variable.
  void followForward(const ForwardChain &chain) {
    for (Operation *op : chain.units) {
      if (const std::string name = nameOf(op); !name.empty())
        byName_.try_emplace(name, *stageOf(op));
      for (StringAttr name : train::writtenVariables(op))
        readers_[name].insert(*stageOf(op));
      for (StringAttr name : variablesReadBy(op))
        if (auto variable = symbols_->lookup<train::VariableOp>(name);
            variable && variable.getKind() == train::VariableKind::Parameter)
          readers_[name].insert(*stageOf(op));
    }
  }

  static SmallVector<StringAttr> variablesReadBy(Operation *op) {
    SmallVector<StringAttr> names;
    for (Value operand : op->getOperands())
      if (auto read = underView(operand).getDefiningOp<train::ReadOp>())
        names.push_back(read.getVariableAttr().getAttr());
    return names;
  }

  static SmallVector<StringAttr> variablesOf(Operation *op) {
    SmallVector<StringAttr> names = variablesReadBy(op);
    llvm::append_range(names, train::writtenVariables(op));
    return names;
  }

  /// The stage of the value's op, under views; nothing for what is repeated.
  static std::optional<int64_t> stageOf(Value value) {
    Operation *op = underView(value).getDefiningOp();
    return op ? ds::stageOf(op) : std::nullopt;
  }
  static std::optional<int64_t> stageOf(Operation *op) { return ds::stageOf(op); }

  /// A cast has the name of what it converts, which may be far in front of it.
  static std::string nameOf(Operation *op) {
    const std::string name = train::locationName(op->getLoc());
    return name.empty() || !isa<train::CastOp>(op) ? name : name + " cast";
  }

  std::optional<int64_t> namedStage(Operation *op) const {
    for (const std::string &name : {nameOf(op), train::locationName(op->getLoc())})
      if (auto it = byName_.find(name); it != byName_.end())
        return it->second;
    return std::nullopt;
  }

  /// The earliest stage that may run each op of the backward: that of the readers whose gradients come of it.
  void boundBackward(const ForwardChain &chain) {
    for (Operation *op : llvm::reverse(chain.backward)) {
      int64_t &bound = earliest_[op];
      if (StringAttr parameter = parameterOf(op); parameter && !readers_[parameter].empty())
        bound = readers_[parameter].front();
      for (Operation *user : op->getUsers())
        bound = std::max(bound, earliest_.lookup(user));
    }
  }

  void placeBackward(Operation *op) {
    if (isa<train::LossGradientOp>(op))
      return later_.insert(op), setStage(op, stages_ - 1);
    std::optional<int64_t> earliest; // of the gradients that it reads
    bool reads = false;
    for (Value operand : op->getOperands()) {
      Operation *producer = underView(operand).getDefiningOp();
      reads |= producer && stageOf(producer).has_value();
      if (producer && later_.contains(producer) && stageOf(producer))
        earliest = std::min(earliest.value_or(stages_), *stageOf(producer));
    }
    later_.insert(op);
    if (isViewOfState(op) || (!reads && isMemoryEffectFree(op)))
      return; // repeated
    const int64_t latest = earliest.value_or(stages_ - 1);
    const int64_t named = isa<train::AddOp>(op) ? latest : namedStage(op).value_or(latest);
    setStage(op, std::clamp(named, earliest_.lookup(op), latest));
    StringAttr parameter = parameterOf(op);
    if (const auto &stages = readers_[parameter]; parameter && stages.size() == 1)
      setStage(op, std::min(stages.front(), latest));
  }

  /// The parameter whose gradient an op adds up or, with one micro-batch, stores; null for other ops.
  StringAttr parameterOf(Operation *op) const {
    if (!isa<train::AccumulateOp, train::StoreOp>(op))
      return {};
    auto variable = symbols_->lookup<train::VariableOp>(op->getAttrOfType<FlatSymbolRefAttr>("variable").getValue());
    const bool isGradient = variable && variable.getKind() == train::VariableKind::Gradient && variable.getOf();
    return isGradient ? variable.getOfAttr().getAttr() : StringAttr();
  }

  /// A sum over uses in several stages becomes one a stage.
  /// Where one rank runs several stages, all of a step's gradients of one use are then added before those of another.
  void splitTies(const ForwardChain &chain) {
    for (Operation *op : chain.backward) {
      StringAttr parameter = parameterOf(op);
      if (!parameter || readers_[parameter].size() < 2)
        continue;
      llvm::MapVector<int64_t, Value> parts; // by stage
      collect(op->getOperand(0), op, readers_[parameter].getArrayRef(), parts);
      for (auto &[stage, value] : parts) {
        Operation *own = OpBuilder(op).clone(*op);
        own->setOperand(0, value);
        setStage(own, stage);
      }
      Operation *sum = op->getOperand(0).getDefiningOp();
      op->erase();
      if (microbatches > 1 && parts.size() > 1)
        train::raiseNumerics(getOperation(), train::Numerics::Reassociated);
      while (sum && isa<train::AddOp>(sum) && sum->use_empty()) {
        Operation *next = sum->getOperand(0).getDefiningOp();
        sum->erase();
        sum = next;
      }
    }
  }

  /// The terms of a sum, added up in their order by the last of `readers` that is no later than the term's stage.
  static void collect(Value value, Operation *user, ArrayRef<int64_t> readers, llvm::MapVector<int64_t, Value> &parts) {
    SmallVector<Value> open = {value}; // the next at the end
    while (!open.empty()) {
      const Value next = open.pop_back_val();
      if (auto add = next.getDefiningOp<train::AddOp>(); add && add->hasOneUse()) {
        open.append({add.getRhs(), add.getLhs()});
        continue;
      }
      int64_t stage = readers.front();
      for (const int64_t reader : readers)
        if (reader <= stageOf(next).value_or(0))
          stage = std::max(stage, reader);
      Value &sum = parts[stage];
      if (!sum) {
        sum = next;
        continue;
      }
      OpBuilder builder(user);
      sum = train::AddOp::create(builder, user->getLoc(), sum, next);
      setStage(sum.getDefiningOp(), stage);
    }
  }

  /// The stage that hands on what it reads of state that the forward changes; nothing for other ops.
  std::optional<int64_t> carriedBy(Operation *op) const {
    auto read = dyn_cast<train::ReadOp>(op);
    const auto state = read ? carried_.find(read.getVariableAttr().getAttr()) : carried_.end();
    return state == carried_.end() ? std::nullopt : std::optional(state->second);
  }

  /// Each op by its name, but where what it reads or writes of state is, and never behind that of what follows from it.
  void placeEvaluation(func::FuncOp evaluate) {
    llvm::DenseMap<Operation *, int64_t> latest; // looked up
    for (Operation &op : llvm::reverse(evaluate.getBody().front().without_terminator())) {
      int64_t &bound = latest[&op] = stages_ - 1;
      for (StringAttr name : variablesOf(&op))
        if (const auto &stages = readers_[name]; !stages.empty() && !carried_.contains(name))
          bound = std::min(bound, stages.back());
      for (Operation *user : op.getUsers())
        if (auto it = latest.find(user); it != latest.end())
          bound = std::min(bound, it->second);
    }
    for (Operation &op : evaluate.getBody().front().without_terminator())
      if (const std::optional<int64_t> stage = carriedBy(&op))
        setStage(&op, *stage);
      else if (!isViewOfState(&op))
        placeInEvaluation(&op, latest.lookup(&op));
  }

  void placeInEvaluation(Operation *op, int64_t latest) {
    int64_t earliest = -1; // nothing that has a stage is read
    for (Value operand : op->getOperands())
      earliest = std::max(earliest, stageOf(operand).value_or(-1));
    std::optional<int64_t> wanted = namedStage(op);
    for (StringAttr name : variablesOf(op))
      if (const auto &stages = readers_[name];
          !stages.empty() && !carried_.contains(name) && !(wanted && stages.contains(*wanted)))
        for (const int64_t stage : stages)
          if (stage >= earliest && stage <= latest)
            wanted = stage;
    if (earliest >= 0 || wanted || !isMemoryEffectFree(op))
      setStage(op, std::clamp(wanted.value_or(earliest < 0 ? stages_ - 1 : earliest), std::max<int64_t>(earliest, 0),
                              latest));
  }

  const SymbolTable *symbols_ = nullptr;
  int64_t stages_ = 1, ranks_ = 1;
  llvm::StringMap<int64_t> byName_;                                      // looked up
  llvm::DenseMap<StringAttr, llvm::SmallSetVector<int64_t, 2>> readers_; // stages, ascending, by variable; looked up
  llvm::DenseMap<StringAttr, int64_t> carried_;                          // stage of state that micro-batches change
  llvm::DenseSet<Operation *> later_;                                    // of the backward; looked up
  llvm::DenseMap<Operation *, int64_t> earliest_;                        // stage of each of these; looked up
};

} // namespace
