//===- ReturnTimes.cpp - which tensors can be away, and until when --------===//
#include "compiler/passes/offload/ReturnTimes.h"

#include "dialects/Train/Train.h"

#include "llvm/ADT/MapVector.h"

#include <algorithm>
#include <limits>

using namespace mlir;
using namespace ds;

FragmentTimes::FragmentTimes(dist::FragmentOp fragment) {
  for (Operation &op : fragment.getBody().front()) {
    ops_.push_back(&op);
    begins_[&op] = end_;
    if (isa_and_present<train::TrainDialect>(op.getDialect()))
      end_ += seconds(&op);
  }
}

Operation *FragmentTimes::at(double seconds) const {
  const auto later =
      std::upper_bound(ops_.begin(), ops_.end(), seconds, [&](double time, Operation *op) { return time < begin(op); });
  return later == ops_.begin() ? ops_.front() : *std::prev(later);
}

bool ReturnTimes::knowsLinkOf(dist::ValueOp value) const {
  return host_.bytesPerSecond > 0 && (value.getSpace() != dist::MemorySpace::Nvme || nvme_.bytesPerSecond > 0);
}

/// One way.
double ReturnTimes::secondsOf(dist::ValueOp value) const {
  const auto type = cast<RankedTensorType>(value.getType());
  const double bytes = double(type.getNumElements()) * type.getElementTypeBitWidth() / 8;
  return host_.seconds(bytes) + (value.getSpace() == dist::MemorySpace::Nvme ? nvme_.seconds(bytes) : 0);
}

/// Whether in every program that runs both, each call of the one is followed by the other's, for the same micro-batch.
bool ReturnTimes::followsAtOnce(dist::FragmentOp backward, dist::FragmentOp forward) const {
  bool together = false, alternate = true;
  ModuleOp(module_).walk([&](dist::ProgramOp program) {
    SmallVector<dist::CallOp> calls;
    for (auto call : program.getOps<dist::CallOp>())
      if (call.getFragment() == backward.getSymName() || call.getFragment() == forward.getSymName())
        calls.push_back(call);
    if (llvm::none_of(calls, [&](dist::CallOp call) { return call.getFragment() == backward.getSymName(); }))
      return;
    together = true;
    alternate &= calls.size() % 2 == 0;
    for (size_t i = 0; i + 1 < calls.size(); i += 2)
      alternate &= calls[i].getFragment() == forward.getSymName() &&
                   calls[i + 1].getFragment() == backward.getSymName() &&
                   calls[i].getMicrobatch() == calls[i + 1].getMicrobatch();
  });
  return together && alternate;
}

std::vector<ReturnTimes::Verdict> ReturnTimes::decide() const {
  llvm::MapVector<std::pair<Operation *, Operation *>, std::vector<Stay>> pairs; // by forward and backward
  for (const Stay &stay : stays_)
    if (knowsLinkOf(stay.value))
      pairs[{dist::StoreOp(stay.store)->getParentOp(), dist::LoadOp(stay.load)->getParentOp()}].push_back(stay);
  std::vector<Verdict> verdicts;
  for (auto &[pair, stays] : pairs) {
    auto forward = cast<dist::FragmentOp>(pair.first), backward = cast<dist::FragmentOp>(pair.second);
    if (!followsAtOnce(backward, forward))
      continue;
    const FragmentTimes there(forward), back(backward);
    const auto computed = [&](const Stay &stay) {
      Operation *computes = dist::StoreOp(stay.store).getTensor().getDefiningOp();
      return computes ? there.begin(computes->getNextNode()) : 0;
    };
    llvm::stable_sort(stays, [&](const Stay &a, const Stay &b) { return computed(a) < computed(b); });
    double away = 0, begins = std::numeric_limits<double>::max(); // of the one before; the backward's start is 0
    for (const Stay &stay : stays) {
      const double takes = secondsOf(stay.value), left = std::max(away, computed(stay)) + takes,
                   returns = std::min(begins, back.begin(stay.firstUse)) - takes;
      if (left > there.end() || left - there.end() > returns) {
        verdicts.push_back({stay.value, stay.load, std::nullopt});
        continue;
      }
      away = left;
      begins = returns;
      verdicts.push_back({stay.value, stay.load, returns});
    }
  }
  return verdicts;
}
