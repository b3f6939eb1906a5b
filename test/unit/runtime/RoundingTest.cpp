// Weights as a file with fewer bits has them: each float16 and bfloat16 is itself, what lies between goes to the
// nearest.
#include "runtime/data/Rounding.h"
#include "core/DType.h"
#include "runtime/data/Widening.h"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <span>
#include <string>

namespace ds::test {
namespace {

uint16_t rounded(const std::string &dtype, float value, bool fits = true) {
  uint16_t bits = 0;
  EXPECT_EQ(
      runtime::rounding("F32", dtype)(std::as_bytes(std::span(&value, 1)), std::as_writable_bytes(std::span(&bits, 1))),
      fits)
      << value;
  return bits;
}

float widened(const std::string &dtype, uint16_t bits) {
  float value = 0;
  runtime::widening(dtype, DType::F32)(reinterpret_cast<const std::byte *>(&bits),
                                       reinterpret_cast<std::byte *>(&value), 1);
  return value;
}

TEST(Rounding, EveryHalfIsItself) {
  for (const char *dtype : {"BF16", "F16"})
    for (uint32_t bits = 0; bits < 0x10000; ++bits)
      if (const float value = widened(dtype, uint16_t(bits)); std::isnan(value))
        EXPECT_TRUE(std::isnan(widened(dtype, rounded(dtype, value))));
      else
        ASSERT_EQ(rounded(dtype, value), bits) << dtype;
}

/// Between neighbours: just below the middle, the middle, just above it.
TEST(Rounding, TiesGoToEven) {
  for (const char *dtype : {"BF16", "F16"}) {
    const uint32_t largest = std::string(dtype) == "F16" ? 0x7BFF : 0x7F7F;
    for (uint32_t bits = 0; bits < largest; ++bits) {
      const double low = widened(dtype, uint16_t(bits)), high = widened(dtype, uint16_t(bits + 1));
      const auto middle = float((low + high) / 2);
      ASSERT_EQ(rounded(dtype, std::nextafter(middle, 0.0f)), bits) << dtype;
      ASSERT_EQ(rounded(dtype, middle), bits % 2 == 0 ? bits : bits + 1) << dtype;
      ASSERT_EQ(rounded(dtype, std::nextafter(middle, std::numeric_limits<float>::max())), bits + 1) << dtype;
    }
  }
}

TEST(Rounding, SaysWhatIsTooLarge) {
  EXPECT_EQ(rounded("F16", 65519.0f), 0x7BFF);
  EXPECT_EQ(rounded("F16", 65520.0f, false), 0x7C00);
  EXPECT_EQ(rounded("F16", -1e9f, false), 0xFC00);
  EXPECT_EQ(rounded("BF16", std::numeric_limits<float>::max(), false), 0x7F80);
  EXPECT_EQ(rounded("F16", std::numeric_limits<float>::infinity()), 0x7C00);
}

TEST(Rounding, OnlyToFewerBits) {
  for (const char *to : {"F64", "I32", "U8", "F32"})
    EXPECT_EQ(runtime::rounding("F32", to), nullptr);
  EXPECT_NE(runtime::rounding("F64", "F32"), nullptr);
}

} // namespace
} // namespace ds::test
