//===- RankState.h - the state of a rank, a piece at a time ---------------===//
#pragma once

#include "runtime/executor/Executor.h"
#include "runtime/executor/HeldParts.h"
#include "runtime/plan/plan.pb.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ds::runtime {

/// Reads parts of what a rank holds, one after another, in pieces of at most 1 MiB that none crosses a part's end.
class RankState {
public:
  static constexpr uint64_t pieceBytes = uint64_t(1) << 20;

  /// All of them outlive it.
  RankState(const Executor &executor, const plan::proto::Plan &plan, std::span<const HeldPart> parts);

  /// The next piece, which holds until the next call; empty at the end.
  std::span<const std::byte> next();

private:
  const Executor &executor_;
  const plan::proto::Plan &plan_;
  const std::span<const HeldPart> parts_;
  size_t part_ = 0;      // which of them comes next
  uint64_t element_ = 0; // and where in it
  std::vector<std::byte> piece_;
};

} // namespace ds::runtime
