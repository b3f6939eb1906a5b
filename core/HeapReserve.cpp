//===- HeapReserve.cpp - memory that later allocations are sure to find ---===//
#include "core/HeapReserve.h"

#include <malloc.h>
#include <memory>
#include <vector>

namespace ds {

void reserveHeap(size_t bytes) {
  constexpr size_t pieceBytes = 64 << 10;      // below what malloc maps by itself
  ::mallopt(M_TRIM_THRESHOLD, int(2 * bytes)); // else what is freed at the heap's end goes back to the system
  std::vector<std::unique_ptr<char[]>> pieces;
  for (size_t held = 0; held < bytes; held += pieceBytes)
    pieces.push_back(std::make_unique_for_overwrite<char[]>(pieceBytes));
}

} // namespace ds
