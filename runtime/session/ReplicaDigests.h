//===- ReplicaDigests.h - replicas that should be equal and are not -------===//
#pragma once

#include "core/Status.h"
#include "runtime/comm/Transport.h"
#include "runtime/executor/HeldParts.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/session/LocalRanks.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ds::runtime {

/// Compares what several ranks hold of the same variable: parameters, optimizer state, constants and buffers, but no
/// gradients. Ranks that a variable varies along, as running statistics do, have versions of their own. A digest is the
/// sum of the 64-bit words, so that one bit that differs is always seen.
class ReplicaDigests {
public:
  /// All outlive it.
  ReplicaDigests(const plan::proto::Plan &plan, const LocalRanks &ranks, Transport &transport);

  /// Throws ds::Error on every process, naming the variable and ranks, if two replicas differ after so many steps.
  /// Every process calls it at the same step, while no queue has anything to do.
  void compare(uint64_t stepsDone);

private:
  /// Elements of a variable that several ranks hold whole, counted in their piece of it.
  struct Replicated {
    uint32_t variable;
    uint64_t first, count;
    std::vector<uint32_t> ranks; // ascending
  };
  struct Held {
    size_t replicated; // which of them
    HeldPart part;
  };

  uint64_t digest(const Executor &executor, const HeldPart &part);
  Status firstDifference(uint64_t stepsDone) const;
  std::string ranksText(const Replicated &replicated, const std::vector<uint64_t> &digests) const;

  const plan::proto::Plan &plan_;
  const LocalRanks &ranks_;
  Transport &transport_;
  std::vector<Replicated> replicated_;
  std::vector<std::vector<Held>> held_;        // by rank
  std::vector<std::vector<uint64_t>> digests_; // of held_
  std::vector<uint64_t> piece_;
};

} // namespace ds::runtime
