//===- conv_widened.h - float32 copies of a weight gradient's factors -----===//
#pragma once

#include <cstdint>

namespace ds::kernels {

/// Bytes of a copy of `elements` in a workspace, where the next one begins at a multiple of 256.
constexpr int64_t widenedBytes(int64_t elements) { return (4 * elements + 255) / 256 * 256; }

} // namespace ds::kernels
