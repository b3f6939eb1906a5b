//===- Rounding.cpp - weights as a file with fewer bits has them ----------===//
#include "runtime/data/Rounding.h"

#include "kernels/BFloat16.h"
#include "kernels/Float16.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

namespace ds::runtime {
namespace {

bool isFinite(float value) { return std::isfinite(value); }
bool isFinite(BFloat16 value) { return std::isfinite(float(value)); }
bool isFinite(Float16 value) { return std::isfinite(float(value)); }

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
    return roundAll<float, Float16>;
  if (from == "F64" && to == "F32")
    return roundAll<double, float>;
  return nullptr;
}

} // namespace ds::runtime
