//===- Rounding.cpp - weights as a file with fewer bits has them ----------===//
#include "runtime/data/Rounding.h"

#include "kernels/BFloat16.h"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

namespace ds::runtime {
namespace {

struct Half {
  uint16_t bits = 0;
  Half() = default;
  explicit Half(float value) {
    const auto wide = std::bit_cast<uint32_t>(value);
    const uint32_t magnitude = wide & 0x7FFFFFFF;
    const auto sign = uint16_t(wide >> 16 & 0x8000);
    if (magnitude > 0x7F800000) // NaN
      bits = sign | 0x7E00;
    else if (magnitude >= 0x477FF000) // 65520, halfway from the largest to what would follow
      bits = sign | 0x7C00;
    else if (magnitude < 0x38800000) // below 2^-14: multiples of 2^-24; nearbyint rounds ties to even
      bits = sign | uint16_t(std::nearbyint(std::bit_cast<float>(magnitude) * 0x1p24f));
    else // half a unit of the last bit kept, less one if that bit is even
      bits = sign | uint16_t((magnitude + 0xFFF + (magnitude >> 13 & 1) - (112U << 23)) >> 13);
  }
  bool isFinite() const { return (bits & 0x7C00) != 0x7C00; }
};

bool isFinite(float value) { return std::isfinite(value); }
bool isFinite(BFloat16 value) { return std::isfinite(float(value)); }
bool isFinite(Half value) { return value.isFinite(); }

template <typename From, typename To> bool roundAll(std::span<const std::byte> from, std::span<std::byte> to) noexcept {
  bool fits = true;
  for (size_t i = 0; i < from.size() / sizeof(From); ++i) {
    From value;
    std::memcpy(&value, &from[i * sizeof(From)], sizeof(From));
    const auto rounded = To(value);
    fits &= isFinite(rounded) || !std::isfinite(value);
    std::memcpy(&to[i * sizeof(To)], &rounded, sizeof(To));
  }
  return fits;
}

} // namespace

RoundFunction rounding(const std::string &from, const std::string &to) {
  if (from == "F32" && to == "BF16")
    return roundAll<float, BFloat16>;
  if (from == "F32" && to == "F16")
    return roundAll<float, Half>;
  if (from == "F64" && to == "F32")
    return roundAll<double, float>;
  return nullptr;
}

} // namespace ds::runtime
