//===- Digest.h - of elements, whatever pieces they come in ---------------===//
#pragma once

#include <cstddef>
#include <cstdint>

namespace ds::runtime {

/// The sum of a hash of each element's bits and its place in the tensor. So digests of pieces that lie apart add up to
/// that of the whole, modulo 2^64, and tensors that are cut differently can be compared. `elementBytes` is 1, 2, 4
/// or 8.
uint64_t digestOf(const std::byte *bytes, uint64_t elementBytes, uint64_t first, uint64_t count) noexcept;

} // namespace ds::runtime
