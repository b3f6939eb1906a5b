//===- copy_cuda_plan.h - how an index space is copied between layouts ---===//
//
// Every kernel that only moves elements is to[sum of i_d * to_d] = from[sum of i_d * from_d]. The plan merges
// dimensions, widens elements where runs allow it, and says whether squares of the two innermost dimensions have to be
// turned in shared memory. Plain C++, tested on the host.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "kernels/HostDevice.h"
#include "kernels/movement/movement_call.h"

#include <cstdint>
#include <vector>

namespace ds::kernels::cuda {

/// Strides in elements.
struct CopyDimension {
  int64_t size, from, to;
};

/// Edge of the squares that are turned.
inline constexpr int64_t copySquare = 32;

/// Passed to a launch by value.
struct CopySpace {
  int dimensions = 0;
  CopyDimension dimension[maxRank];
  int64_t elements = 1; ///< of all dimensions
  int64_t elementBytes = 1;

  struct Offsets {
    int64_t from, to;
  };
  /// Where element `index` lies, counted in the order of the dimensions.
  DS_HOST_DEVICE Offsets at(int64_t index) const {
    Offsets offsets{0, 0};
    if (elements <= INT32_MAX) {
      auto rest = uint32_t(index);
      for (int d = dimensions - 1; d > 0; --d) {
        const auto size = uint32_t(dimension[d].size), i = rest % size;
        offsets.from += i * dimension[d].from;
        offsets.to += i * dimension[d].to;
        rest /= size;
      }
      index = rest;
    } else {
      for (int d = dimensions - 1; d > 0; --d) {
        const int64_t i = index % dimension[d].size;
        offsets.from += i * dimension[d].from;
        offsets.to += i * dimension[d].to;
        index /= dimension[d].size;
      }
    }
    if (dimensions > 0) {
      offsets.from += index * dimension[0].from;
      offsets.to += index * dimension[0].to;
    }
    return offsets;
  }
};

struct CopyPlan {
  CopyPlan() = default;
  /// `dimensions` in the order in which `to` walks them, outermost first; they may hold any sizes, 0 included.
  /// `offsetBytes` of both sides, which decide how wide an element may be.
  CopyPlan(std::vector<CopyDimension> dimensions, int64_t elementBytes, int64_t fromOffset, int64_t toOffset);

  CopySpace plain; ///< for any address
  CopySpace wide;  ///< for addresses that are multiples of its elementBytes
  /// The inner dimension of `from` is another one: squares of `across` (from 1) and `along` (to 1) are turned, and
  /// `plain` then holds the dimensions around them.
  bool turns = false;
  CopyDimension across{1, 1, 1}, along{1, 1, 1};
  int64_t fromOffset = 0, toOffset = 0; ///< bytes
  bool empty = false;

private:
  void widen();
  void findSquares();
};

CopyPlan transposePlan(const TransposeCall &call);
CopyPlan slicePlan(const SliceCall &call);
/// Puts x into its places of y.
CopyPlan padPlan(const PadCall &call);
/// Input k to its columns of y.
CopyPlan concatPlan(const ConcatCall &call, size_t k);

} // namespace ds::kernels::cuda
