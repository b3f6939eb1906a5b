//===- ScheduleCalls.cpp - list the calls of every role ---------------------===//
#include "compiler/analysis/Cost.h"
#include "compiler/analysis/Stages.h"
#include "compiler/passes/pipeline/Passes.h"
#include "compiler/scheduling/PipelineSchedule.h"
#include "dialects/Dist/Dist.h"
#include "dialects/Train/LocationName.h"

#include "mlir/IR/Builders.h"

#include "llvm/ADT/StringExtras.h"

namespace ds {
#define GEN_PASS_DEF_SCHEDULECALLS
#include "compiler/passes/pipeline/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

StringRef phaseOf(scheduling::TaskKind kind) {
  switch (kind) {
  case scheduling::TaskKind::Forward:
    return "forward";
  case scheduling::TaskKind::Backward:
    return "backward";
  case scheduling::TaskKind::Weight:
    return "weight";
  }
  llvm_unreachable("a task of no kind");
}

struct ScheduleCalls : ds::impl::ScheduleCallsBase<ScheduleCalls> {
  using ScheduleCallsBase::ScheduleCallsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    symbols_ = &symbols;
    stages_ = std::max<int64_t>(1, int64_t(fragmentsOf(module, "forward").size()));
    for (StringRef kind : {"forward", "backward", "update", "evaluate"})
      if (const std::string name = fragmentName(kind, 0, kind == "update" ? ranks : stages_);
          !symbols.lookup<dist::FragmentOp>(name)) {
        module.emitError() << "has no fragment @" << name << "; ds-outline-fragments makes it";
        return signalPassFailure();
      }
    if (dataParallel < 1) {
      module.emitError() << "data-parallel is " << dataParallel.getValue() << "; it must be at least 1";
      return signalPassFailure();
    }
    const std::optional<scheduling::PipelineSchedule> kind = scheduling::pipelineScheduleFromName(schedule);
    if (!kind) {
      module.emitError() << "schedule \"" << schedule.getValue() << "\" is none of "
                         << llvm::join(scheduling::pipelineScheduleNames(), ", ");
      return signalPassFailure();
    }
    problem_.kind = *kind;
    problem_.ranks = ranks;
    problem_.chunks = ranks > 0 ? stages_ / ranks : 0;
    problem_.microbatches = microbatches;
    if (problem_.splitsWeights())
      problem_.backward = problem_.weight = 1;
    if (const std::optional<std::string> reason = problem_.check()) {
      module.emitError() << *reason;
      return signalPassFailure();
    }
    builder_ = OpBuilder::atBlockEnd(module.getBody());
    dist::MeshOp::create(builder_, module.getLoc(), "mesh", builder_.getStrArrayAttr({"pipe", "data", "tensor"}),
                         ArrayRef<int64_t>{ranks, dataParallel, 1});
    const scheduling::TaskOrder order = scheduling::schedulePipeline(problem_);
    for (int64_t rank = 0; rank < ranks; ++rank)
      makeRole(rank, order.byRank[size_t(rank)]);
    if (ranks > 1)
      describe(order);
  }

private:
  //===-- what the report says -----------------------------------------------------===//

  double secondsOf(StringRef kind, int64_t stage) {
    double sum = 0;
    if (auto fragment = symbols_->lookup<dist::FragmentOp>(fragmentName(kind, stage, stages_)))
      for (Operation &op : fragment.getBody().front())
        sum += isa<dist::DistDialect>(op.getDialect()) ? 0 : seconds(&op);
    return sum;
  }

  /// Makes the dist.pipeline.
  void describe(const scheduling::TaskOrder &order) {
    OpBuilder::InsertionGuard guard(builder_);
    scheduling::StageCosts costs;
    for (int64_t stage = 0; stage < stages_; ++stage) {
      costs.forward.push_back(secondsOf("forward", stage));
      costs.backward.push_back(secondsOf("backward", stage));
      costs.weight.push_back(secondsOf("weight", stage));
    }
    const std::optional<scheduling::Timeline> timeline = scheduling::simulate(problem_, order.byRank, costs);
    auto pipeline =
        dist::PipelineOp::create(builder_, getOperation().getLoc(), schedule.getValue(), problem_.chunks,
                                 APFloat(timeline ? timeline->bubbleFraction : order.bubbleFraction));
    builder_.setInsertionPointToStart(&pipeline.getBody().emplaceBlock());
    for (int64_t stage = 0; stage < stages_; ++stage)
      describeStage(stage, costs, order.inFlight[size_t(stage)]);
  }

  void describeStage(int64_t stage, const scheduling::StageCosts &costs, int64_t inFlight) {
    auto forward = symbols_->lookup<dist::FragmentOp>(fragmentName("forward", stage, stages_));
    SmallVector<std::string> names;
    for (Operation &op : forward.getBody().front())
      if (seconds(&op) > 0 && !isa<dist::DistDialect>(op.getDialect()))
        names.push_back(train::locationName(op.getLoc()));
    SmallVector<Attribute> sent, types;
    SmallVector<int64_t> receivers;
    for (auto send : forward.getOps<dist::SendOp>())
      for (Value tensor : send.getTensors()) {
        sent.push_back(builder_.getStringAttr(train::locationName(tensor.getLoc())));
        types.push_back(TypeAttr::get(tensor.getType()));
        receivers.push_back(receiverOf(send.getChannel()));
      }
    dist::StageOp::create(builder_, forward.getLoc(), names.empty() ? "" : names.front(),
                          names.empty() ? "" : names.back(), APFloat(costs.forward[size_t(stage)]),
                          APFloat(costs.backward[size_t(stage)]), APFloat(costs.weight[size_t(stage)]), inFlight,
                          builder_.getArrayAttr(sent), builder_.getArrayAttr(types), receivers);
  }

  int64_t receiverOf(StringRef channel) {
    for (dist::FragmentOp fragment : fragmentsOf(getOperation(), "receive"))
      for (auto receive : fragment.getOps<dist::ReceiveOp>())
        if (receive.getChannel() == channel)
          return fragmentNumber(fragment.getSymName()).value_or(0);
    return 0;
  }

  //===-- calls ----------------------------------------------------------------------===//

  void makeRole(int64_t rank, ArrayRef<scheduling::PipelineTask> tasks) {
    OpBuilder::InsertionGuard guard(builder_);
    const std::string name = ranks == 1 ? "main" : "stage" + std::to_string(rank);
    auto role = dist::RoleOp::create(builder_, getOperation().getLoc(), name,
                                     ArrayRef<int64_t>{rank * dataParallel, (rank + 1) * dataParallel - 1});
    builder_.setInsertionPointToStart(&role.getBody().emplaceBlock());
    scheduleStep(rank, tasks);
    startProgram("evaluate");
    for (int64_t stage = rank; stage < stages_; stage += ranks) {
      callIfThere(fragmentName("feed", stage, stages_), 0);
      callIfThere(fragmentName("receive::evaluate", stage, stages_), 0);
      call(fragmentName("evaluate", stage, stages_), 0);
    }
  }

  /// Feeds run one micro-batch ahead of the compute that reads them, receives one task.
  void scheduleStep(int64_t rank, ArrayRef<scheduling::PipelineTask> tasks) {
    OpBuilder::InsertionGuard guard(builder_);
    startProgram("step");
    for (int64_t stage = rank; stage < stages_; stage += ranks)
      callIfThere(fragmentName("feed", stage, stages_), 0);
    if (!tasks.empty())
      receive(tasks.front());
    for (size_t i = 0; i < tasks.size(); ++i) {
      const scheduling::PipelineTask &task = tasks[i];
      if (task.kind == scheduling::TaskKind::Forward && task.microbatch + 1 < microbatches)
        callIfThere(fragmentName("feed", task.stage, stages_), task.microbatch + 1);
      if (i + 1 < tasks.size())
        receive(tasks[i + 1]);
      call(fragmentName(phaseOf(task.kind), task.stage, stages_), task.microbatch);
    }
    call(fragmentName("update", rank, ranks), microbatches - 1);
  }

  void receive(const scheduling::PipelineTask &task) {
    callIfThere(fragmentName(("receive::" + phaseOf(task.kind)).str(), task.stage, stages_), task.microbatch);
  }

  void startProgram(StringRef name) {
    auto program = dist::ProgramOp::create(builder_, getOperation().getLoc(), name);
    builder_.setInsertionPointToStart(&program.getBody().emplaceBlock());
  }

  void call(StringRef fragment, int64_t microbatch) {
    dist::CallOp::create(builder_, builder_.getUnknownLoc(), fragment, microbatch);
  }
  void callIfThere(StringRef fragment, int64_t microbatch) {
    if (symbols_->lookup<dist::FragmentOp>(fragment))
      call(fragment, microbatch);
  }

  SymbolTable *symbols_ = nullptr;
  scheduling::ScheduleProblem problem_;
  int64_t stages_ = 1;
  OpBuilder builder_{static_cast<MLIRContext *>(nullptr)};
};

} // namespace
