//===- StoredRuns.h - where the elements of a variable are stored ---------===//
#pragma once

#include "runtime/checkpoint/Manifest.h"

#include <cstdint>
#include <vector>

namespace ds::runtime {

/// Elements [begin, end) of a whole variable lie in the tensor of a piece, from its element `first` on.
struct StoredRun {
  const Manifest::Piece *piece;
  uint64_t first, begin, end;
};

/// Returns where all elements of a version lie, in order. Of a piece of columns there is a run for each row. The
/// manifest is one that parseManifest has checked, and outlives them.
std::vector<StoredRun> storedRuns(const Manifest &manifest, const Manifest::Variable &variable, uint64_t version);

} // namespace ds::runtime
