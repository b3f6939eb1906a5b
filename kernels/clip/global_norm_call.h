//===- global_norm_call.h - the call of global_norm ----------------------===//
#pragma once

#include "kernels/clip/block_sum_squares_call.h"

#include <cstdint>
#include <vector>

namespace ds::kernels {

/// partials..., norm.
struct GlobalNormCall {
  explicit GlobalNormCall(const Call &call) {
    const std::vector<int64_t> blocks = call.integers("blocks");
    for (size_t i = 0; i < blocks.size(); ++i) {
      call.require(isSumSquaresBlock(blocks[i]), "'blocks' must be powers of two from 64 to 1024");
      counts.push_back(call.elements(i));
      parts.push_back(sumSquaresBlock / blocks[i]);
      call.require(counts.back() % parts.back() == 0, "operands must make whole blocks of 1024");
    }
  }

  std::vector<int64_t> counts; ///< elements of each tensor of partials
  std::vector<int64_t> parts;  ///< of them, how many make a block
};

} // namespace ds::kernels
