//===- Digest.cpp - of elements, whatever pieces they come in -------------===//
#include "runtime/bisect/Digest.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ds::runtime {
namespace {

/// A bijection of 64 bits that spreads each of them over all: shifts and odd factors (Stafford's mix13, as in
/// SplitMix64).
uint64_t spread(uint64_t bits) noexcept {
  bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9u;
  bits = (bits ^ bits >> 27) * 0x94D049BB133111EBu;
  return bits ^ bits >> 31;
}

template <typename Word> uint64_t digest(const std::byte *bytes, uint64_t first, uint64_t count) noexcept {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < count; ++i) {
    Word word;
    std::memcpy(&word, bytes + i * sizeof word, sizeof word);
    sum += spread(spread(first + i + 1) + word);
  }
  return sum;
}

} // namespace

uint64_t digestOf(const std::byte *bytes, uint64_t elementBytes, uint64_t first, uint64_t count) noexcept {
  switch (elementBytes) {
  case 1:
    return digest<uint8_t>(bytes, first, count);
  case 2:
    return digest<uint16_t>(bytes, first, count);
  case 4:
    return digest<uint32_t>(bytes, first, count);
  default:
    return digest<uint64_t>(bytes, first, count);
  }
}

} // namespace ds::runtime
