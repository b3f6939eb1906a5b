//===- Rounding.h - weights as a file with fewer bits has them ------------===//
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace ds::runtime {

/// Turns elements of one safetensors dtype into another's; false where a finite value is beyond the largest of `to`.
using RoundFunction = bool (*)(std::span<const std::byte> from, std::span<std::byte> to) noexcept;

/// How float32 becomes bfloat16 or float16, and float64 becomes float32: to the nearest, ties to even. nullptr for all
/// other types.
RoundFunction rounding(const std::string &from, const std::string &to);

} // namespace ds::runtime
