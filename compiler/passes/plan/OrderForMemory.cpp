//===- OrderForMemory.cpp - fewer bytes at once by another order ------------===//
//
// Works on commands, after buffers are chosen: what must not change is what commands do to the same bytes. A routine
// sees its own commands and, of buffers that others use, whether they live before it and after it. What lives
// throughout whatever the order is left out: state, what spans repeated routines, and what a queue other than compute
// uses.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/plan/Passes.h"
#include "compiler/passes/plan/RoleSteps.h"
#include "compiler/scheduling/OrderProblem.h"
#include "dialects/Plan/Plan.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

namespace ds {
#define GEN_PASS_DEF_ORDERFORMEMORY
#include "compiler/passes/plan/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

/// Bytes of a buffer that a command uses.
struct Access {
  int64_t command, begin, end;

  bool meets(const Access &other) const { return begin < other.end && other.begin < end; }
};

/// The calls of a role's routines, numbered through its programs.
class CallOrder {
public:
  explicit CallOrder(plan::RoleOp role) {
    int64_t number = 0;
    for (auto program : role.getOps<plan::ProgramOp>()) {
      llvm::DenseSet<Attribute> called;
      for (auto call : program.getOps<plan::CallOp>()) {
        Attribute routine = call.getRoutineAttr().getAttr();
        first_.try_emplace(routine, number++);
        if (!called.insert(routine).second)
          repeated_.insert(routine);
      }
    }
  }

  /// The number of the first call; nothing if there is none.
  std::optional<int64_t> firstOf(plan::RoutineOp routine) const {
    const auto it = first_.find(routine.getSymNameAttr());
    return it == first_.end() ? std::nullopt : std::optional(it->second);
  }
  bool isRepeated(plan::RoutineOp routine) const { return repeated_.contains(routine.getSymNameAttr()); }

private:
  llvm::DenseMap<Attribute, int64_t> first_;
  llvm::DenseSet<Attribute> repeated_;
};

/// One routine as an OrderProblem.
class RoutineProblem {
public:
  RoutineProblem(plan::RoutineOp routine, const CallOrder &calls) : routine_(routine), calls_(calls) {
    for (auto command : routine.getOps<plan::CommandOpInterface>()) {
      addAccesses(command);
      addPlace(command);
      commands_.push_back(command);
    }
    problem_.commands = int64_t(commands_.size());
    for (auto &[buffer, uses] : users_)
      addBuffer(cast<plan::BufferOp>(buffer), uses);
  }

  const scheduling::OrderProblem &problem() const { return problem_; }

  void reorder(ArrayRef<int64_t> order) {
    Block &body = routine_.getBody().front();
    for (int64_t command : order)
      commands_[size_t(command)]->moveBefore(&body, body.end());
  }
  void restore() { reorder(llvm::to_vector(llvm::seq<int64_t>(0, problem_.commands))); }

private:
  int64_t number() const { return int64_t(commands_.size()); }

  /// Edges from earlier commands that use the same bytes, where one of the two writes them.
  void addAccesses(plan::CommandOpInterface command) {
    for (auto [i, operand] : llvm::enumerate(command.getBuffers())) {
      Operation *buffer = operand.getDefiningOp();
      const auto [begin, end] = command.getByteRange(i);
      const Access access{number(), begin, end};
      const bool writes = command.writes(i);
      addEdges(writes_[buffer], access);
      if (writes)
        addEdges(reads_[buffer], access);
      (writes ? writes_ : reads_)[buffer].push_back(access);
      auto &uses = users_[buffer];
      if (uses.empty() || uses.back() != number())
        uses.push_back(number());
      if (!computes(command))
        elsewhere_.insert(buffer);
    }
  }

  void addEdges(ArrayRef<Access> earlier, const Access &access) {
    for (const Access &other : earlier)
      if (other.command != access.command && other.meets(access))
        problem_.edges.push_back({other.command, access.command});
  }

  /// Edges that keep in place what others than this queue see.
  void addPlace(plan::CommandOpInterface command) {
    if (!isa<plan::KernelOp, plan::FillOp>(command.getOperation())) {
      if (lastPinned_)
        problem_.edges.push_back({*lastPinned_, number()});
      lastPinned_ = number();
    }
    const bool fence = !computes(command) || !command.getWaits().empty() || !command.getSignals().empty();
    if (fence)
      for (int64_t before = lastFence_.value_or(0); before < number(); ++before)
        problem_.edges.push_back({before, number()});
    else if (lastFence_)
      problem_.edges.push_back({*lastFence_, number()});
    if (fence)
      lastFence_ = number();
  }

  static bool computes(plan::CommandOpInterface command) {
    auto queue = SymbolTable::lookupNearestSymbolFrom<plan::QueueOp>(command, command.getQueueAttr());
    return queue && queue.getKind() == plan::QueueKind::Compute;
  }

  void addBuffer(plan::BufferOp buffer, std::vector<int64_t> users) {
    if (buffer.getScope() == plan::Scope::Plan || elsewhere_.contains(buffer) ||
        (buffer.getScope() == plan::Scope::Step && calls_.isRepeated(routine_)))
      return;
    const std::optional<int64_t> here = calls_.firstOf(routine_);
    bool before = false, after = false;
    for (Operation *user : buffer->getUsers()) {
      if (isa<plan::MetricOp>(user))
        after = true;
      auto routine = user->getParentOfType<plan::RoutineOp>();
      const std::optional<int64_t> there = routine ? calls_.firstOf(routine) : std::nullopt;
      before |= there && *there < here;
      after |= there && *there > here;
    }
    if (!before || !after)
      problem_.buffers.push_back({int64_t(buffer.getBytes()), std::move(users), before, after});
  }

  plan::RoutineOp routine_;
  const CallOrder &calls_;
  SmallVector<Operation *> commands_;
  scheduling::OrderProblem problem_;
  llvm::MapVector<Operation *, std::vector<int64_t>> users_;        // commands by buffer
  llvm::DenseMap<Operation *, SmallVector<Access>> reads_, writes_; // by buffer; looked up
  llvm::DenseSet<Operation *> elsewhere_;                           // buffers that another queue uses; looked up
  std::optional<int64_t> lastPinned_, lastFence_;
};

struct OrderForMemory : ds::impl::OrderForMemoryBase<OrderForMemory> {
  using OrderForMemoryBase::OrderForMemoryBase;

  void runOnOperation() override {
    if (alignment < 1 || !llvm::isPowerOf2_64(alignment)) {
      getOperation().emitError() << "alignment " << alignment.getValue() << " is not a power of two";
      return signalPassFailure();
    }
    const Placing placing{alignment, getAnalysis<KnownSolutions>()};
    for (auto role : getOperation().getOps<plan::RoleOp>())
      if (failed(orderForMemory(role, placing)))
        return signalPassFailure();
  }
};

std::vector<int64_t> solve(const scheduling::OrderProblem &problem, KnownSolutions &known) {
  std::vector<int64_t> numbers = {3, problem.commands, int64_t(problem.edges.size())};
  for (const auto &[first, second] : problem.edges)
    llvm::append_values(numbers, first, second);
  for (const auto &[bytes, users, before, after] : problem.buffers) {
    llvm::append_values(numbers, bytes, int64_t(before), int64_t(after), int64_t(users.size()));
    llvm::append_range(numbers, users);
  }
  return known.of(numbers, /*enough=*/0, [&](int64_t) { return scheduling::orderForMemory(problem); });
}

/// Puts the commands of all routines into orders in which less is alive at once. Routines that have another order now.
FailureOr<std::vector<RoutineProblem>> reorder(plan::RoleOp role, KnownSolutions &known) {
  const CallOrder calls(role);
  std::vector<RoutineProblem> changed;
  for (auto routine : role.getOps<plan::RoutineOp>()) {
    RoutineProblem commands(routine, calls);
    if (auto reason = commands.problem().check())
      return routine.emitOpError() << "cannot be ordered: " << *reason;
    const std::vector<int64_t> order = solve(commands.problem(), known);
    if (auto reason = commands.problem().verify(order))
      return routine.emitOpError() << "was ordered wrongly: " << *reason;
    if (llvm::is_sorted(order))
      continue;
    commands.reorder(order);
    changed.push_back(std::move(commands));
  }
  return changed;
}

} // namespace

std::optional<RoleBytes> ds::arenaBytes(plan::RoleOp role) {
  RoleBytes bytes;
  for (auto arena : role.getOps<plan::ArenaOp>()) {
    if (!arena.getBytes())
      return std::nullopt;
    bytes.all += int64_t(*arena.getBytes());
    if (arena.getSpace() == plan::MemorySpace::Device)
      bytes.device += int64_t(*arena.getBytes());
  }
  return bytes;
}

FailureOr<RoleBytes> ds::leastBytesReordered(plan::RoleOp role, const Placing &placing) {
  FailureOr<std::vector<RoutineProblem>> changed = reorder(role, placing.known);
  if (failed(changed))
    return failure();
  const FailureOr<RoleBytes> bytes = leastBytes(role, placing.alignment);
  for (RoutineProblem &commands : *changed)
    commands.restore();
  return bytes;
}

LogicalResult ds::orderForMemory(plan::RoleOp role, const Placing &placing) {
  const std::optional<RoleBytes> before = arenaBytes(role);
  if (!before)
    return role.emitOpError() << "has no offsets, so nothing says which order is better; run ds-assign-offsets first";
  FailureOr<std::vector<RoutineProblem>> changed = reorder(role, placing.known);
  if (failed(changed))
    return failure();
  if (changed->empty())
    return success();
  const FailureOr<bool> isSmaller = assignOffsets(role, placing, before->all);
  if (succeeded(isSmaller) && !*isSmaller)
    for (RoutineProblem &commands : *changed)
      commands.restore();
  return isSmaller;
}
