//===- RankReplay.h - one role's run of a program, followed byte by byte --===//
#pragma once

#include "compiler/check/RankMemory.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ds::check {

/// Carries out on the memory of a role's ranks what its commands do, and holds every rule against it.
class RankReplay {
public:
  explicit RankReplay(RankMemory &memory) : memory_(memory) {}

  /// Instances come in order.
  void execute(size_t index);
  /// After the last one.
  void finish();

private:
  /// Whether the run has the program's tail, if it has one, in which some lives end: what is asked once.
  bool isWhole() const { return !memory_.context.one; }
  void countUnknown(const std::vector<Contents> &written, size_t index);

  RankMemory &memory_;
};

} // namespace ds::check
