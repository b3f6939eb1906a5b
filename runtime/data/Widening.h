//===- Widening.h - elements of files as elements of inputs ---------------===//
#pragma once

#include "core/DType.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ds::runtime {

/// Converts `count` elements that lie at any address.
using WidenFunction = void (*)(const std::byte *source, std::byte *target, size_t count) noexcept;

/// How elements of a safetensors dtype become a graph input's: only where no value is lost (uint16 to int64, bf16 to
/// float32), bool only to bool. nullptr where values could be lost.
WidenFunction widening(const std::string &safetensorsDType, DType target);

/// The same for a file of weights, where an integer is never taken for a float or for another integer: the element's
/// own type, or a float of fewer bits; a float of at most 32 bits is rounded to a weight of 16. nullptr for all others.
WidenFunction weightWidening(const std::string &safetensorsDType, DType target);

/// The safetensors dtype of a variable's elements in exports: floats of 16 bits are float32 there, which every reader
/// takes and adapters are added to.
std::string exportedType(const std::string &safetensorsDType);

/// Elements of that type as exports have them: `bytes` themselves, or widened into `wide`.
std::span<const std::byte> asExported(const std::string &safetensorsDType, std::span<const std::byte> bytes,
                                      std::vector<std::byte> &wide);

} // namespace ds::runtime
