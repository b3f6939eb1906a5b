//===- StoredRuns.cpp - where the elements of a variable are stored -------===//
#include "runtime/checkpoint/StoredRuns.h"

#include "runtime/checkpoint/Manifest.h"
#include "runtime/plan/world/Placement.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace ds::runtime {

std::vector<StoredRun> storedRuns(const Manifest &manifest, const Manifest::Variable &variable, uint64_t version) {
  std::vector<StoredRun> stored;
  for (const Manifest::Piece &piece : variable.versions[version]) {
    uint64_t first = 0;
    for (const plan::Run &run : plan::wholeElements(manifest.layout.world, variable.placement, variable.shape,
                                                    piece.rank, piece.begin, piece.end - piece.begin)) {
      stored.push_back({&piece, first, run.first, run.first + run.count});
      first += run.count;
    }
  }
  std::ranges::sort(stored, {}, &StoredRun::begin);
  return stored;
}

} // namespace ds::runtime
