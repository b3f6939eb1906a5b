//===- StateSnapshot.h - a step that can be undone ------------------------===//
#pragma once

#include "runtime/executor/Executor.h"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace ds::runtime {

/// All of what outlives a run of a program and the program writes (weights, optimizer state, step counters, running
/// statistics, their padding), copied to main memory. A plan's update is no program of its own, so a step is undone by
/// bringing the bytes back. What a step writes beside the old (Buffer.next_of) is undone without a copy. While no queue
/// has anything to do.
class StateSnapshot {
public:
  /// The executor outlives it. Throws ds::Error where main memory has no room for a second copy.
  StateSnapshot(Executor &executor, std::string_view program);

  void take() noexcept;
  /// After the run of the program that followed `take`, and no other.
  void restore() const noexcept;

private:
  struct Kept {
    std::byte *place; ///< on the device
    std::vector<std::byte> bytes;
  };

  Executor &executor_;
  std::vector<Kept> kept_;
};

} // namespace ds::runtime
