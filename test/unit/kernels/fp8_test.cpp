// quantize_fp8 and fp8_matmul: formats, both layouts, empty and odd shapes, infinities; products with and without bias.
#include "kernels/Float8.h"
#include "kernels/fp8/fp8_call.h"
#include "test/unit/kernels/Harness.h"

#include <cmath>
#include <limits>

namespace ds::kernels::test {

namespace {

constexpr Float8 formats[] = {Float8::E4M3, Float8::E5M2};

std::string nameOf(Float8 format) { return format == Float8::E4M3 ? "e4m3" : "e5m2"; }

TEST(Float8, EveryCodeIsTheCodeOfItsNumber) {
  for (const Float8 format : formats)
    for (int code = 0; code < 256; ++code) {
      const float value = float8Value(format, uint8_t(code));
      if (std::isnan(value))
        EXPECT_EQ(float8Bits(format, value) & 0x7F, 0x7F);
      else if (std::isinf(value)) // saturated
        EXPECT_EQ(float8Bits(format, value), code - 1);
      else
        EXPECT_EQ(float8Bits(format, value), code) << value;
    }
}

TEST(Float8, RoundsToNearestEven) {
  for (const Float8 format : formats) {
    const int largest = format == Float8::E4M3 ? 0x7E : 0x7B;
    for (int code = 0; code < largest; ++code) {
      const float middle = (float8Value(format, uint8_t(code)) + float8Value(format, uint8_t(code + 1))) / 2;
      EXPECT_EQ(float8Bits(format, middle), code + code % 2) << middle;
      EXPECT_EQ(float8Bits(format, std::nextafter(middle, 0.0F)), code) << middle;
      EXPECT_EQ(float8Bits(format, std::nextafter(middle, 1e9F)), code + 1) << middle;
      EXPECT_EQ(float8Bits(format, -middle), 0x80 | (code + code % 2)) << middle;
    }
    EXPECT_EQ(float8Value(format, uint8_t(largest)), float8Largest(format));
    for (const float above : {float8Largest(format) * 1.01F, 1e30F, std::numeric_limits<float>::infinity()})
      EXPECT_EQ(float8Bits(format, above), largest);
  }
  EXPECT_EQ(float8Value(Float8::E4M3, 1), 0x1p-9F);
  EXPECT_EQ(float8Value(Float8::E5M2, 1), 0x1p-16F);
}

TEST(Float8, ScalesReachTheLargestNumber) {
  for (const Float8 format : formats)
    for (const float largest : {0x1p-100F, 1e-20F, 0.3F, 448.0F, 1e30F, std::numeric_limits<float>::max()}) {
      const Float8Scale scale = float8Scale(format, largest);
      EXPECT_EQ(float8Value(format, float8Bits(format, largest * scale.inverse)), float8Largest(format)) << largest;
      EXPECT_NEAR(scale.scale * float8Largest(format), largest, 1e-6F * largest);
    }
  EXPECT_EQ(float8Scale(Float8::E4M3, 0).scale, 1);
  EXPECT_EQ(float8Scale(Float8::E4M3, 0x1p-101F).inverse, 1);
  EXPECT_TRUE(std::isnan(float8Scale(Float8::E4M3, std::numeric_limits<float>::infinity()).scale));
  EXPECT_TRUE(std::isnan(float8Scale(Float8::E5M2, std::numeric_limits<float>::quiet_NaN()).inverse));
}

std::vector<Buffer> quantizeOperands(const Buffer &x, bool transposed) {
  const Shape &shape = x.type.shape;
  return {x, Buffer(type(DType::U8, transposed ? Shape{shape[1], shape[0]} : shape)), Buffer(type(DType::F32, {}))};
}

Attributes quantizeAttributes(Float8 format, bool transposed) {
  return {{"format", nameOf(format)}, {"transposed", int64_t(transposed)}};
}

TEST(QuantizeFp8, EveryLayout) {
  for (const Shape &shape : {Shape{1, 1}, Shape{5, 3}, Shape{64, 48}, Shape{0, 4}, Shape{4, 0}, Shape{200, 70}})
    for (const DType dtype : {DType::F32, DType::BF16})
      for (const Float8 format : formats)
        for (const bool transposed : {false, true}) {
          Random random{uint64_t(shape[0])};
          expectMatchesReference("quantize_fp8", quantizeOperands(random.buffer(dtype, shape, 1e-3), transposed),
                                 quantizeAttributes(format, transposed), {1, 2}, {});
        }
}

TEST(QuantizeFp8, WhatIsInfiniteMakesAllNaN) {
  for (const bool transposed : {false, true}) {
    Buffer x(type(DType::F32, {40, 33}), std::vector<float>(40 * 33, 1));
    x.as<float>()[777] = -std::numeric_limits<float>::infinity();
    const auto after = expectMatchesReference("quantize_fp8", quantizeOperands(x, transposed),
                                              quantizeAttributes(Float8::E4M3, transposed), {1}, {});
    EXPECT_EQ(after[1].as<uint8_t>()[3] & 0x7F, 0x7F);
    EXPECT_TRUE(std::isnan(after[2].as<float>()[0]));
  }
}

struct Sizes {
  int64_t m, n, k;
};

std::vector<Buffer> productOperands(Random &random, const Sizes &sizes, DType dtype, bool bias, Float8 a, Float8 b) {
  const auto codes = [&](const Shape &shape, Float8 format) {
    Buffer numbers = random.buffer(DType::F32, shape, 3);
    Buffer buffer(type(DType::U8, shape));
    for (int64_t i = 0; i < elementCount(shape); ++i)
      buffer.as<uint8_t>()[i] = float8Bits(format, numbers.as<float>()[i]);
    return buffer;
  };
  std::vector<Buffer> operands = {codes({sizes.m, sizes.k}, a), Buffer(type(DType::F32, {}), std::vector<float>{0.02F}),
                                  codes({sizes.n, sizes.k}, b), Buffer(type(DType::F32, {}), std::vector<float>{1.7F})};
  if (bias)
    operands.push_back(random.buffer(dtype, {sizes.n}));
  operands.emplace_back(type(dtype, {sizes.m, sizes.n}));
  return operands;
}

Attributes productAttributes(bool bias, Float8 a, Float8 b) {
  return {{"a_format", nameOf(a)}, {"b_format", nameOf(b)}, {"bias", int64_t(bias)}, {"pieces", int64_t(1)}};
}

TEST(Fp8Matmul, EveryFormatTheyMayHave) {
  for (const Sizes &sizes : {Sizes{16, 32, 48}, Sizes{5, 3, 7}, Sizes{64, 16, 128}, Sizes{0, 4, 4}, Sizes{4, 4, 0}})
    for (const DType dtype : {DType::BF16, DType::F32})
      for (const bool bias : {false, true})
        for (const auto &[a, b] : {std::pair(Float8::E4M3, Float8::E4M3), std::pair(Float8::E5M2, Float8::E4M3),
                                   std::pair(Float8::E4M3, Float8::E5M2)}) {
          Random random{uint64_t(sizes.m)};
          const Tolerance tolerance = dtype == DType::F32 ? Tolerance{1e-5, 1e-4} : Tolerance{0x1p-7, 1e-2};
          const auto operands = productOperands(random, sizes, dtype, bias, a, b);
          expectMatchesReference("fp8_matmul", operands, productAttributes(bias, a, b), {operands.size() - 1},
                                 tolerance);
        }
}

TEST(Fp8Matmul, RefusesWrongCalls) {
  Random random(1);
  const auto product = [&](Float8 a, Float8 b, DType dtype, size_t operand, const Buffer &buffer) {
    auto operands = productOperands(random, {4, 6, 8}, dtype, false, a, b);
    operands[operand] = buffer;
    return invocationOf("fp8_matmul", operands, productAttributes(false, a, b));
  };
  const Buffer c(type(DType::F32, {4, 6}));
  expectRefused(product(Float8::E5M2, Float8::E5M2, DType::F32, 4, c), "a and b are both e5m2; one must be e4m3");
  expectRefused(product(Float8::E4M3, Float8::E4M3, DType::F32, 4, Buffer(type(DType::F64, {4, 6}))), "float64");
  expectRefused(product(Float8::E4M3, Float8::E4M3, DType::F32, 2, Buffer(type(DType::U8, {6, 9}))), "must have shape");
  expectRefused(product(Float8::E4M3, Float8::E4M3, DType::F32, 0, Buffer(type(DType::F32, {4, 8}))),
                "must be uint8, not float32");
  const Buffer x(type(DType::F32, {4, 6}));
  auto wrong = quantizeOperands(x, true);
  expectRefused(invocationOf("quantize_fp8", wrong, quantizeAttributes(Float8::E4M3, false)), "must have shape [4, 6]");
  expectRefused(invocationOf("quantize_fp8", quantizeOperands(Buffer(type(DType::F64, {4, 6})), false),
                             quantizeAttributes(Float8::E4M3, false)),
                "float32");
}

} // namespace

} // namespace ds::kernels::test
