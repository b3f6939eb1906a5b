//===- RankReplay.h - one rank's run of a program, followed byte by byte --===//
#pragma once

#include "compiler/check/RankMemory.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace ds::check {

/// Carries out on a rank's memory what its role's commands do, and holds every rule against it.
class RankReplay {
public:
  explicit RankReplay(RankMemory &memory) : memory_(memory) {}

  /// Instances come in order, all that touch what is followed.
  void execute(size_t index);
  /// After the last one.
  void finish();
  /// By reference op that commands say they implement: how often.
  const std::map<uint32_t, uint64_t> &effects() const { return effects_; }

private:
  /// Of the first rank of a role, in which every byte is followed, and of a run with the program's tail, if it has one,
  /// in which some lives end: what is asked once.
  bool isWhole() const { return memory_.followsAll() && !memory_.context.one; }
  void countUnknown(const std::vector<std::vector<OperandSegment>> &written, size_t index);

  RankMemory &memory_;
  std::map<uint32_t, uint64_t> effects_; // of those that sum or average
};

} // namespace ds::check
