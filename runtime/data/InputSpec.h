//===- InputSpec.h - what data must be for one graph input ----------------===//
#pragma once

#include "core/DType.h"
#include "core/Shape.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ds::runtime {

/// A graph input, as plan.proto's Input.
struct InputSpec {
  enum class Tokens { None, Same, Next };

  std::string name;
  DType dtype = DType::F32;
  Shape sampleShape = {}; ///< of one sample: without the micro-batch's dimension
  Tokens tokens = Tokens::None;
  uint64_t limit = 0; ///< values v must have 0 <= v < limit; 0: any
  std::optional<int64_t> ignored = std::nullopt;
  /// Of each dimension of a sample, whether files may have another size: what is longer is cut, and what is shorter
  /// padded with `ignored`, or 0. Empty: none.
  std::vector<bool> varies = {};

  uint64_t sampleElements() const { return uint64_t(elementCount(sampleShape)); }
  uint64_t sampleBytes() const { return sampleElements() * uint64_t(byteSize(dtype)); }
};

} // namespace ds::runtime
