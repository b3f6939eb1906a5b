//===- ScheduleCalls.cpp - list the calls of every role ---------------------===//
//
// 1. A scheduling problem of ranks, chunks and micro-batches; its order of tasks comes from
//    compiler/scheduling/PipelineSchedule.h (GPipe, 1F1B, interleaved 1F1B, ZB-H1, all micro-batches of a layer after
//    another, with their papers).
// 2. A role for each coordinate of axis pipe, whose ranks are those of the mesh. It calls its tasks in that order,
//    feeds one micro-batch ahead of the forward that reads them, and receives one task ahead.
// 3. For the report, the same order is played with the costs of the stages, which gives the bubble.
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/Cost.h"
#include "compiler/analysis/Stages.h"
#include "compiler/passes/pipeline/Passes.h"
#include "compiler/scheduling/PipelineSchedule.h"
#include "dialects/Dist/Mesh.h"
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

dist::Phase phaseOf(scheduling::TaskKind kind) {
  switch (kind) {
  case scheduling::TaskKind::Forward:
    return dist::Phase::Forward;
  case scheduling::TaskKind::Backward:
    return dist::Phase::Backward;
  case scheduling::TaskKind::Weight:
    return dist::Phase::Weight;
  }
  llvm_unreachable("a task of no kind");
}

struct ScheduleCalls : ds::impl::ScheduleCallsBase<ScheduleCalls> {
  using ScheduleCallsBase::ScheduleCallsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    const FragmentIndex fragments(module);
    fragments_ = &fragments;
    mesh_ = dist::requireMesh(module);
    if (!mesh_)
      return signalPassFailure();
    const std::optional<scheduling::PipelineSchedule> kind = scheduling::pipelineScheduleFromName(schedule);
    if (!kind) {
      module.emitError() << "schedule \"" << schedule.getValue() << "\" is none of "
                         << llvm::join(scheduling::pipelineScheduleNames(), ", ");
      return signalPassFailure();
    }
    problem_.kind = *kind;
    problem_.ranks = dist::axisSize(mesh_, dist::pipeAxis);
    problem_.chunks = fragments.stages() / problem_.ranks;
    problem_.microbatches = microbatches;
    if (problem_.splitsWeights())
      problem_.backward = problem_.weight = 1;
    if (failed(checkFragments()))
      return signalPassFailure();
    if (const std::optional<std::string> reason = problem_.check()) {
      module.emitError() << *reason;
      return signalPassFailure();
    }
    builder_ = OpBuilder::atBlockEnd(module.getBody());
    const scheduling::TaskOrder order = scheduling::schedulePipeline(problem_);
    for (int64_t rank = 0; rank < problem_.ranks; ++rank)
      makeRole(rank, order.byRank[size_t(rank)]);
    if (fragments.stages() > 1)
      describe(order);
  }

private:
  /// Every stage has what the schedule calls of it, every rank an update.
  LogicalResult checkFragments() {
    SmallVector<dist::Phase> phases{dist::Phase::Forward, dist::Phase::Backward, dist::Phase::Update,
                                    dist::Phase::Evaluate};
    if (problem_.splitsWeights())
      phases.push_back(dist::Phase::Weight);
    for (dist::Phase phase : phases) {
      const bool ofRank = dist::FragmentOp::isOfRank(phase);
      for (int64_t number = 0; number < (ofRank ? problem_.ranks : fragments_->stages()); ++number)
        if (!fragments_->find(phase, number))
          return getOperation().emitError()
                 << "has no fragment of phase " << stringifyPhase(phase) << (ofRank ? " and pipe " : " and stage ")
                 << number << "; ds-outline-fragments makes it";
    }
    return success();
  }

  //===-- what the report says -----------------------------------------------------===//

  double secondsOf(dist::Phase phase, int64_t stage) {
    double sum = 0;
    if (dist::FragmentOp fragment = fragments_->find(phase, stage))
      for (Operation &op : fragment.getBody().front())
        sum += isa<dist::DistDialect>(op.getDialect()) ? 0 : seconds(&op);
    return sum;
  }

  /// Makes the dist.pipeline.
  void describe(const scheduling::TaskOrder &order) {
    OpBuilder::InsertionGuard guard(builder_);
    scheduling::StageCosts costs;
    const int64_t stages = fragments_->stages();
    for (int64_t stage = 0; stage < stages; ++stage) {
      costs.forward.push_back(secondsOf(dist::Phase::Forward, stage));
      costs.backward.push_back(secondsOf(dist::Phase::Backward, stage));
      costs.weight.push_back(secondsOf(dist::Phase::Weight, stage));
    }
    const std::optional<scheduling::Timeline> timeline = scheduling::simulate(problem_, order.byRank, costs);
    auto pipeline = dist::PipelineOp::create(builder_, getOperation().getLoc(), schedule.getValue(), problem_.chunks,
                                             APFloat(timeline ? timeline->bubbleFraction : order.bubbleFraction));
    builder_.setInsertionPointToStart(&pipeline.getBody().emplaceBlock());
    for (int64_t stage = 0; stage < stages; ++stage)
      describeStage(stage, costs, order.inFlight[size_t(stage)]);
  }

  void describeStage(int64_t stage, const scheduling::StageCosts &costs, int64_t inFlight) {
    dist::FragmentOp forward = fragments_->find(dist::Phase::Forward, stage);
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
    for (dist::FragmentOp fragment : fragmentsOf(getOperation(), dist::Phase::Receive))
      for (auto receive : fragment.getOps<dist::ReceiveOp>())
        if (receive.getChannel() == channel)
          return int64_t(fragment.getStage().value_or(0));
    return 0;
  }

  //===-- calls ----------------------------------------------------------------------===//

  void makeRole(int64_t rank, ArrayRef<scheduling::PipelineTask> tasks) {
    OpBuilder::InsertionGuard guard(builder_);
    const std::string name = problem_.ranks == 1 ? "main" : "stage" + std::to_string(rank);
    auto role =
        dist::RoleOp::create(builder_, getOperation().getLoc(), name, dist::ranksAt(mesh_, dist::pipeAxis, rank));
    builder_.setInsertionPointToStart(&role.getBody().emplaceBlock());
    scheduleStep(rank, tasks);
    startProgram("evaluate");
    for (int64_t stage = rank; stage < fragments_->stages(); stage += problem_.ranks) {
      call(fragments_->find(dist::Phase::Feed, stage), 0);
      dist::FragmentOp evaluate = fragments_->find(dist::Phase::Evaluate, stage);
      call(fragments_->receiverFor(evaluate), 0);
      call(evaluate, 0);
    }
  }

  /// Feeds run one micro-batch ahead of the compute that reads them, receives one task. A stage's first feed is at the
  /// start of the step or, where the stage begins when all micro-batches have left the one before, one task ahead: so
  /// its routines follow each other.
  void scheduleStep(int64_t rank, ArrayRef<scheduling::PipelineTask> tasks) {
    OpBuilder::InsertionGuard guard(builder_);
    startProgram("step");
    const bool byLayer = problem_.kind == scheduling::PipelineSchedule::AccumulateByLayer;
    for (int64_t stage = rank; stage < (byLayer ? rank + 1 : fragments_->stages()); stage += problem_.ranks)
      call(fragments_->find(dist::Phase::Feed, stage), 0);
    if (!tasks.empty())
      receive(tasks.front());
    for (size_t i = 0; i < tasks.size(); ++i) {
      const scheduling::PipelineTask &task = tasks[i];
      if (task.kind == scheduling::TaskKind::Forward && task.microbatch + 1 < microbatches)
        call(fragments_->find(dist::Phase::Feed, task.stage), task.microbatch + 1);
      else if (task.kind == scheduling::TaskKind::Forward && byLayer && task.stage + 1 < fragments_->stages())
        call(fragments_->find(dist::Phase::Feed, task.stage + 1), 0);
      if (i + 1 < tasks.size())
        receive(tasks[i + 1]);
      call(fragments_->find(phaseOf(task.kind), task.stage), task.microbatch);
    }
    call(fragments_->find(dist::Phase::Update, rank), microbatches - 1);
  }

  void receive(const scheduling::PipelineTask &task) {
    call(fragments_->receiverFor(fragments_->find(phaseOf(task.kind), task.stage)), task.microbatch);
  }

  void startProgram(StringRef name) {
    auto program = dist::ProgramOp::create(builder_, getOperation().getLoc(), name);
    builder_.setInsertionPointToStart(&program.getBody().emplaceBlock());
  }

  /// A stage may have nothing to feed, and a task nothing to receive: then `fragment` is null.
  void call(dist::FragmentOp fragment, int64_t microbatch) {
    if (fragment)
      dist::CallOp::create(builder_, builder_.getUnknownLoc(), fragment.getSymName(), microbatch);
  }

  const FragmentIndex *fragments_ = nullptr;
  dist::MeshOp mesh_;
  scheduling::ScheduleProblem problem_;
  OpBuilder builder_{static_cast<MLIRContext *>(nullptr)};
};

} // namespace
