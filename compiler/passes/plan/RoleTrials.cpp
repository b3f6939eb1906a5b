//===- RoleTrials.cpp - the bytes a role will need, before it is laid out ---===//
#include "compiler/passes/plan/RoleTrials.h"

#include "mlir/IR/Builders.h"

#include <algorithm>

using namespace mlir;
using namespace ds;

RoleTrials::RoleTrials(plan::RoleOp role, const TrialOptions &options, KnownSolutions &known)
    : options_(options), known_(known) {
  OpBuilder builder(role);
  const auto add = [&](std::optional<bool> reusesAll) {
    auto trial = cast<plan::RoleOp>(builder.clone(*role));
    if (reusesAll)
      reuseDyingOperands(trial, *reusesAll);
    orderQueues(trial, options_.patience);
    trials_.push_back({trial, {}, {}, {}});
  };
  add(options_.reuses ? std::optional(true) : std::nullopt);
  if (options_.reuses && overlapsMicrobatches(role))
    add(/*reusesAll=*/false);
}

RoleTrials::~RoleTrials() {
  for (Trial &trial : trials_)
    trial.role.erase();
}

FailureOr<RoleBytes> RoleTrials::leastOf(Trial &trial) {
  if (!trial.least) {
    const FailureOr<RoleBytes> least = leastBytes(trial.role, options_.alignment);
    if (failed(least))
      return failure();
    trial.least = *least;
  }
  return *trial.least;
}

FailureOr<RoleBytes> RoleTrials::leastReorderedOf(Trial &trial) {
  if (!options_.reorders)
    return leastOf(trial);
  if (!trial.leastReordered) {
    const FailureOr<RoleBytes> least = leastBytesReordered(trial.role, {options_.alignment, known_});
    if (failed(least))
      return failure();
    trial.leastReordered = *least;
  }
  return *trial.leastReordered;
}

FailureOr<RoleBytes> RoleTrials::bytesOf(Trial &trial, int64_t enough) {
  if (trial.bytes)
    return *trial.bytes;
  OpBuilder builder(trial.role);
  auto laidOut = cast<plan::RoleOp>(builder.clone(*trial.role));
  const Placing placing{options_.alignment, known_, enough};
  bool done = succeeded(assignOffsets(laidOut, placing));
  if (done && options_.reorders && (enough == 0 || arenaBytes(laidOut)->device > enough))
    done = succeeded(orderForMemory(laidOut, placing));
  const std::optional<RoleBytes> bytes = arenaBytes(laidOut);
  laidOut.erase();
  if (!done)
    return failure();
  if (enough == 0 || bytes->device > enough) // then all was tried
    trial.bytes = *bytes;
  return *bytes;
}

FailureOr<bool> RoleTrials::mayFit(Trial &trial, int64_t room) {
  for (const auto leastOf : {&RoleTrials::leastOf, &RoleTrials::leastReorderedOf}) {
    const FailureOr<RoleBytes> least = (this->*leastOf)(trial);
    if (failed(least))
      return failure();
    if (least->device <= room)
      return true;
  }
  return false;
}

FailureOr<bool> RoleTrials::mayFit(int64_t room) {
  for (Trial &trial : trials_)
    if (const FailureOr<bool> may = mayFit(trial, room); failed(may) || *may)
      return may;
  return false;
}

FailureOr<bool> RoleTrials::isAbove(Trial &trial, RoleBytes bytes) {
  for (const auto leastOf : {&RoleTrials::leastOf, &RoleTrials::leastReorderedOf}) {
    const FailureOr<RoleBytes> least = (this->*leastOf)(trial);
    if (failed(least))
      return failure();
    if (least->all <= bytes.all)
      return false;
  }
  return true;
}

FailureOr<bool> RoleTrials::fits(int64_t room) {
  for (Trial &trial : trials_) {
    const FailureOr<bool> may = mayFit(trial, room);
    if (failed(may))
      return failure();
    if (!*may)
      continue;
    const FailureOr<RoleBytes> bytes = bytesOf(trial, room);
    if (failed(bytes))
      return failure();
    if (bytes->device <= room)
      return true;
  }
  return false;
}

FailureOr<RoleBytes> RoleTrials::bytes() {
  const FailureOr<bool> all = reusesAll();
  if (failed(all))
    return failure();
  return bytesOf(*all ? trials_.front() : trials_.back());
}

FailureOr<bool> RoleTrials::reusesAll() {
  if (trials_.size() < 2)
    return options_.reuses;
  const FailureOr<RoleBytes> after = bytesOf(trials_.front());
  if (failed(after))
    return failure();
  const FailureOr<bool> isSmaller = isAbove(trials_.back(), *after);
  if (failed(isSmaller) || *isSmaller)
    return isSmaller;
  const FailureOr<RoleBytes> before = bytesOf(trials_.back());
  if (failed(before))
    return failure();
  return after->all < before->all;
}
