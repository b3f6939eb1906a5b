//===- reduce_cuda_plan.h - which elements a reduction adds where --------===//
#pragma once

#include "kernels/HostDevice.h"
#include "kernels/reduce/reduce_call.h"
#include "kernels/reduce/reduce_cuda_pieces.h"

namespace ds::kernels::cuda {

/// Passed to a launch by value.
struct ReduceSpace {
  /// Cut into as many pieces as `workspaceBytes` has room for, or one.
  ReduceSpace(const ReduceCall &call, int64_t workspaceBytes) : outputs(call.outputs), length(call.length) {
    const ReduceDimensions dimensions(call);
    innerReduced = dimensions.innerReduced;
    for (const StridedDimension &dimension : dimensions.kept)
      kept[keptCount++] = dimension;
    for (const StridedDimension &dimension : dimensions.reduced)
      reduced[reducedCount++] = dimension;
    const int64_t wanted = cudaReducePieces(outputs, length);
    if (wanted > 1 && workspaceBytes >= wanted * outputs * 8) {
      pieces = wanted;
      perPiece = cudaReduceElements(outputs, length);
    } else {
      perPiece = length;
    }
  }

  /// Where element `k` behind output `o` lies in x.
  DS_HOST_DEVICE int64_t keptOffset(int64_t o) const { return offset(kept, keptCount, o); }
  DS_HOST_DEVICE int64_t reducedOffset(int64_t k) const { return offset(reduced, reducedCount, k); }

  int keptCount = 0, reducedCount = 0;
  StridedDimension kept[maxRank], reduced[maxRank];
  bool innerReduced = false;
  int64_t outputs, length;
  int64_t pieces = 1, perPiece = 0; ///< of the elements behind an output

private:
  DS_HOST_DEVICE static int64_t offset(const StridedDimension *dimensions, int count, int64_t index) {
    int64_t result = 0;
    for (int d = count - 1; d > 0; --d) {
      if (index <= INT32_MAX && dimensions[d].size <= INT32_MAX) {
        const auto rest = uint32_t(index), size = uint32_t(dimensions[d].size);
        result += int64_t(rest % size) * dimensions[d].stride;
        index = rest / size;
      } else {
        result += index % dimensions[d].size * dimensions[d].stride;
        index /= dimensions[d].size;
      }
    }
    return count > 0 ? result + index * dimensions[0].stride : 0;
  }
};

} // namespace ds::kernels::cuda
