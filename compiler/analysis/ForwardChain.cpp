//===- ForwardChain.cpp - the forward as a sequence of units ------------------===//
#include "compiler/analysis/ForwardChain.h"

#include "compiler/analysis/Cost.h"
#include "compiler/analysis/NarrowUses.h"
#include "dialects/Train/LocationName.h"

#include "llvm/ADT/MapVector.h"

#include <numeric>

using namespace mlir;
using namespace ds;

namespace {

/// Cheap values cost at most this share of the forward, all together.
constexpr double cheapShare = 0.01;

/// FNV-1a, the same in every process.
uint64_t hash(StringRef text, uint64_t seed = 14695981039346656037u) {
  for (const char c : text)
    seed = (seed ^ uint8_t(c)) * 1099511628211u;
  return seed;
}

uint64_t signatureOf(Operation *op) {
  std::string types;
  llvm::raw_string_ostream stream(types);
  llvm::interleaveComma(op->getOperandTypes(), stream);
  stream << "->";
  llvm::interleaveComma(op->getResultTypes(), stream);
  return hash(types, hash(op->getName().getStringRef()));
}

} // namespace

ForwardChain::ForwardChain(func::FuncOp microbatch, const SymbolTable &symbols) : symbols_(symbols) {
  for (Operation &op : microbatch.getBody().front().without_terminator())
    (!backward.empty() || isa<train::LossGradientOp>(op) ? backward : forward).push_back(&op);
  later_.insert(backward.begin(), backward.end());
  findRepeated();
  for (Operation *op : forward)
    if (!isRepeated(op)) {
      index_[op] = int64_t(units.size());
      units.push_back(op);
    }
}

scheduling::PartitionProblem ForwardChain::problem() const {
  scheduling::PartitionProblem problem;
  llvm::StringMap<int64_t> byName; // the first unit of a name
  for (auto [index, op] : llvm::enumerate(units)) {
    int64_t kept = 0;
    for (Value result : op->getResults())
      kept += isReadLater(result) ? bytesOf(result) : 0;
    problem.units.push_back({seconds(op), 0, kept, signatureOf(op)});
    byName.try_emplace(train::locationName(op->getLoc()), int64_t(index));
  }
  for (Operation *op : backward)
    if (auto unit = byName.find(train::locationName(op->getLoc())); unit != byName.end())
      problem.units[size_t(unit->second)].seconds += seconds(op);
  addState(problem);
  addCrossings(problem);
  // What one node of the user's graph became stays together, but for a rounding: it is for those who read it, and what
  // it rounds, a residual stream in f32, may be all that goes on from there.
  problem.mayCut.assign(units.size() + 1, 1);
  for (size_t i = 1; i < units.size(); ++i)
    if (const std::string name = train::locationName(units[i]->getLoc());
        !name.empty() && name == train::locationName(units[i - 1]->getLoc()) && !isNarrowing(units[i]))
      problem.mayCut[i] = 0;
  for (const CarriedState &state : carriedState()) // the next micro-batch reads it where this one has stored it
    for (int64_t i = state.first + 1; i <= state.last; ++i)
      problem.mayCut[size_t(i)] = 0;
  problem.secondsPerByte = secondsPerMessageByte;
  return problem;
}

std::vector<ForwardChain::CarriedState> ForwardChain::carriedState() const {
  llvm::MapVector<StringAttr, CarriedState> uses;
  const auto note = [&](StringAttr name, int64_t unit) {
    const auto [state, isNew] = uses.try_emplace(name, CarriedState{name, unit, unit});
    state->second.last = unit;
  };
  for (auto [index, op] : llvm::enumerate(units)) {
    if (auto read = dyn_cast<train::ReadOp>(op))
      note(read.getVariableAttr().getAttr(), int64_t(index));
    else if (auto store = dyn_cast<train::StoreOp>(op))
      note(store.getVariableAttr().getAttr(), int64_t(index));
    else if (auto average = dyn_cast<train::UpdateAverageOp>(op))
      note(average.getVariableAttr().getAttr(), int64_t(index));
  }
  std::vector<CarriedState> states;
  for (const auto &use : uses)
    states.push_back(use.second);
  return states;
}

/// Values that follow from inputs, constants and buffers by few operations.
void ForwardChain::findRepeated() {
  llvm::DenseSet<StringAttr> written;
  double whole = 0;
  for (Operation *op : forward) {
    whole += seconds(op);
    for (StringAttr name : train::writtenVariables(op))
      written.insert(name);
  }
  llvm::DenseMap<Operation *, double> cost; // of computing it and all it needs
  for (Operation *op : forward) {
    if (auto read = dyn_cast<train::ReadOp>(op)) {
      auto variable = symbols_.lookup<train::VariableOp>(read.getVariable());
      const bool stays = !written.contains(read.getVariableAttr().getAttr());
      if (stays)
        repeated_.insert(op);
      if (stays && variable && variable.getKind() != train::VariableKind::Parameter)
        cost[op] = 0;
      continue;
    }
    if (isViewOfState(op))
      repeated_.insert(op);
    double all = seconds(op);
    const bool follows = isMemoryEffectFree(op) && llvm::all_of(op->getOperands(), [&](Value operand) {
                           Operation *producer = operand.getDefiningOp();
                           all += producer ? cost.lookup(producer) : 0;
                           return !producer || cost.contains(producer);
                         });
    if (!follows || all > cheapShare * whole)
      continue;
    cost[op] = all;
    repeated_.insert(op);
  }
}

bool ForwardChain::isReadLater(Value value) const {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    return isa<train::ReshapeOp>(user) ? isReadLater(user->getResult(0)) : later_.contains(user);
  });
}

/// A parameter's bytes count where it is read first.
void ForwardChain::addState(scheduling::PartitionProblem &problem) const {
  llvm::DenseSet<StringAttr> seen;
  for (auto [index, op] : llvm::enumerate(units))
    for (Value operand : op->getOperands())
      if (auto read = underView(operand).getDefiningOp<train::ReadOp>())
        if (auto variable = symbols_.lookup<train::VariableOp>(read.getVariable());
            variable && variable.getKind() == train::VariableKind::Parameter &&
            seen.insert(variable.getSymNameAttr()).second)
          problem.units[index].stateBytes += bytesOf(read.getResult());
}

/// Values made before a position and read behind it, by units.
void ForwardChain::addCrossings(scheduling::PartitionProblem &problem) const {
  std::vector<int64_t> &crossing = problem.crossing;
  crossing.assign(units.size() + 2, 0); // changes first, then their sums
  for (auto [index, op] : llvm::enumerate(units))
    for (Value result : op->getResults())
      if (const int64_t last = lastUse(result); last > int64_t(index)) {
        crossing[index + 1] += bytesOf(result);
        crossing[size_t(last) + 1] -= bytesOf(result);
      }
  std::partial_sum(crossing.begin(), crossing.end(), crossing.begin());
  crossing.pop_back();
}

int64_t ForwardChain::lastUse(Value value) const {
  int64_t last = -1;
  for (Operation *user : value.getUsers())
    last = std::max(last, isa<train::ReshapeOp>(user) ? lastUse(user->getResult(0))
                          : index_.contains(user)     ? index_.lookup(user)
                                                      : -1);
  return last;
}
