// quantize_fp8 and fp8_matmul: formats, both layouts, empty and odd shapes, infinities; products with and without bias;
// one scale and scales of blocks.
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

constexpr Float8Block whole = Float8Block::Tensor, line = Float8Block::Line, square = Float8Block::Square;

void setBlock(Attributes &attributes, const std::string &name, Float8Block block) {
  if (block != whole)
    attributes[name] = std::string(block == line ? "1x128" : "128x128");
}

/// The shape that docs/reference/kernels.md says of codes [lines, depth].
Shape scaleShape(Float8Block block, int64_t lines, int64_t depth) {
  const auto ceil = [](int64_t size, int64_t part) { return (size + part - 1) / part; };
  return block == whole  ? Shape{}
         : block == line ? Shape{ceil(depth, 128), lines}
                         : Shape{ceil(lines, 128), ceil(ceil(depth, 128), 4) * 4};
}

std::vector<Buffer> quantizeOperands(const Buffer &x, bool transposed, Float8Block block = whole) {
  const Shape &shape = x.type.shape, codes = transposed ? Shape{shape[1], shape[0]} : shape;
  return {x, Buffer(type(DType::U8, codes)), Buffer(type(DType::F32, scaleShape(block, codes[0], codes[1])))};
}

Attributes quantizeAttributes(Float8 format, bool transposed, Float8Block block = whole) {
  Attributes attributes = {{"format", nameOf(format)}, {"transposed", int64_t(transposed)}};
  setBlock(attributes, "block", block);
  return attributes;
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

/// Blocks at an edge are shorter, and lines go over several pieces of a GPU's kernels; each block has a scale of its
/// own.
TEST(QuantizeFp8, EveryBlock) {
  for (const Shape &shape : {Shape{1, 1}, Shape{5, 3}, Shape{64, 48}, Shape{0, 4}, Shape{4, 0}, Shape{144, 272},
                             Shape{300, 131}, Shape{16, 640}})
    for (const DType dtype : {DType::F32, DType::BF16})
      for (const Float8 format : formats)
        for (const bool transposed : {false, true})
          for (const Float8Block block : {line, square}) {
            Random random{uint64_t(shape[0])};
            expectMatchesReference("quantize_fp8",
                                   quantizeOperands(random.buffer(dtype, shape, 1e-3), transposed, block),
                                   quantizeAttributes(format, transposed, block), {1, 2}, {});
          }
}

/// x[row, col] is 448 in each block's first place, times a power of two that says which block: as cuBLASLt's page lays
/// scales out, of lines those of neighbouring lines are neighbours, of squares those of neighbouring columns.
TEST(QuantizeFp8, WhereScalesOfBlocksLie) {
  constexpr int64_t rows = 256, cols = 160;
  Buffer x(type(DType::F32, {rows, cols}), std::vector<float>(rows * cols));
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t col = 0; col < cols; ++col)
      x.as<float>()[row * cols + col] = std::ldexp(448.0F, int(row / 128 * 2 + col / 128));
  const auto scales = [&](bool transposed, Float8Block block) {
    const auto after = expectMatchesReference("quantize_fp8", quantizeOperands(x, transposed, block),
                                              quantizeAttributes(Float8::E4M3, transposed, block), {1, 2}, {});
    EXPECT_EQ(after[1].as<uint8_t>()[0], 0x7E);
    return std::vector<float>(after[2].as<float>(), after[2].as<float>() + elementCount(after[2].type.shape));
  };
  EXPECT_EQ(scales(false, square), (std::vector<float>{1, 2, 1, 1, 4, 8, 1, 1}));
  EXPECT_EQ(scales(true, square), (std::vector<float>{1, 4, 1, 1, 2, 8, 1, 1}));
  const std::vector<float> straight = scales(false, line), across = scales(true, line);
  ASSERT_EQ(straight.size(), size_t(2 * rows));
  EXPECT_EQ(straight[127], 1);
  EXPECT_EQ(straight[128], 4);
  EXPECT_EQ(straight[rows], 2);
  EXPECT_EQ(straight[rows + 128], 8);
  ASSERT_EQ(across.size(), size_t(2 * cols));
  EXPECT_EQ(across[127], 1);
  EXPECT_EQ(across[128], 2);
  EXPECT_EQ(across[cols], 4);
  EXPECT_EQ(across[cols + 128], 8);
}

TEST(QuantizeFp8, WhatIsInfiniteMakesItsBlockNaN) {
  for (const Float8Block block : {line, square}) {
    Buffer x(type(DType::F32, {3, 256}), std::vector<float>(3 * 256, 1));
    x.as<float>()[256 + 130] = std::numeric_limits<float>::infinity();
    const auto after = expectMatchesReference("quantize_fp8", quantizeOperands(x, false, block),
                                              quantizeAttributes(Float8::E4M3, false, block), {1}, {});
    const float *scales = after[2].as<float>();
    for (int64_t i = 0; i < elementCount(after[2].type.shape); ++i)
      EXPECT_EQ(std::isnan(scales[i]), i == (block == line ? 3 + 1 : 1)) << i;
    EXPECT_EQ(after[1].as<uint8_t>()[256 + 200] & 0x7F, 0x7F);
    EXPECT_EQ(after[1].as<uint8_t>()[256 + 100], 0x7E);
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

std::vector<Buffer> productOperands(Random &random, const Sizes &sizes, DType dtype, bool bias, Float8 a, Float8 b,
                                    Float8Block aBlock = whole, Float8Block bBlock = whole) {
  const auto codes = [&](const Shape &shape, Float8 format) {
    Buffer numbers = random.buffer(DType::F32, shape, 3);
    Buffer buffer(type(DType::U8, shape));
    for (int64_t i = 0; i < elementCount(shape); ++i)
      buffer.as<uint8_t>()[i] = float8Bits(format, numbers.as<float>()[i]);
    return buffer;
  };
  const auto scales = [&](Float8Block block, int64_t lines, float least) {
    Buffer buffer(type(DType::F32, scaleShape(block, lines, sizes.k)));
    for (int64_t i = 0; i < elementCount(buffer.type.shape); ++i)
      buffer.as<float>()[i] = least * float(1 + i % 5);
    return buffer;
  };
  std::vector<Buffer> operands = {codes({sizes.m, sizes.k}, a), scales(aBlock, sizes.m, 0.02F),
                                  codes({sizes.n, sizes.k}, b), scales(bBlock, sizes.n, 1.7F)};
  if (bias)
    operands.push_back(random.buffer(dtype, {sizes.n}));
  operands.emplace_back(type(dtype, {sizes.m, sizes.n}));
  return operands;
}

Attributes productAttributes(bool bias, Float8 a, Float8 b, Float8Block aBlock = whole, Float8Block bBlock = whole) {
  Attributes attributes = {
      {"a_format", nameOf(a)}, {"b_format", nameOf(b)}, {"bias", int64_t(bias)}, {"pieces", int64_t(1)}};
  setBlock(attributes, "a_block", aBlock);
  setBlock(attributes, "b_block", bBlock);
  return attributes;
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

/// cuBLASLt's sizes, with a shorter block at the end and without, and others.
TEST(Fp8Matmul, EveryBlock) {
  for (const Sizes &sizes :
       {Sizes{16, 32, 48}, Sizes{144, 160, 272}, Sizes{5, 3, 131}, Sizes{32, 16, 256}, Sizes{0, 4, 4}, Sizes{4, 4, 0}})
    for (const DType dtype : {DType::BF16, DType::F32})
      for (const bool bias : {false, true})
        for (const auto &[aBlock, bBlock] : {std::pair(line, line), std::pair(line, square), std::pair(square, line)}) {
          Random random{uint64_t(sizes.m)};
          const Tolerance tolerance = dtype == DType::F32 ? Tolerance{1e-5, 2e-3} : Tolerance{0x1p-7, 5e-2};
          const auto operands = productOperands(random, sizes, dtype, bias, Float8::E4M3, Float8::E4M3, aBlock, bBlock);
          expectMatchesReference("fp8_matmul", operands,
                                 productAttributes(bias, Float8::E4M3, Float8::E4M3, aBlock, bBlock),
                                 {operands.size() - 1}, tolerance);
        }
}

/// With a block of 2^16 and one of 2^-16 beside it, what is small stands in the codes all the same: one scale would
/// have made zeros of it.
TEST(Fp8Matmul, ABlockKeepsItsSmallNumbers) {
  Buffer x(type(DType::F32, {1, 256}), std::vector<float>(256, 0x1p-16F));
  std::fill_n(x.as<float>(), 128, 0x1p16F);
  for (const Float8Block block : {whole, line}) {
    const auto after = expectMatchesReference("quantize_fp8", quantizeOperands(x, false, block),
                                              quantizeAttributes(Float8::E4M3, false, block), {1, 2}, {});
    EXPECT_EQ(after[1].as<uint8_t>()[255], block == whole ? 0 : 0x7E);
  }
}

TEST(Fp8Matmul, RefusesWrongBlocks) {
  Random random(1);
  constexpr auto e4m3 = Float8::E4M3;
  const auto product = [&](Float8Block a, Float8Block b, Float8Block said, Float8Block saidOfB) {
    return invocationOf("fp8_matmul", productOperands(random, {16, 32, 144}, DType::F32, false, e4m3, e4m3, a, b),
                        productAttributes(false, e4m3, e4m3, said, saidOfB));
  };
  expectRefused(product(square, square, square, square), "a and b have both blocks of 128x128; one must have 1x128");
  expectRefused(product(line, whole, line, whole), "one of a and b has a scale for each block; both must, or neither");
  expectRefused(product(line, line, line, square), "must have shape [1, 4], not [2, 32]");
  expectRefused(product(line, line, whole, whole), "must have shape [], not [2, 16]");
  const Buffer x(type(DType::F32, {144, 16}));
  expectRefused(invocationOf("quantize_fp8", quantizeOperands(x, false, line), quantizeAttributes(e4m3, true, line)),
                "must have shape");
  expectRefused(invocationOf("quantize_fp8", quantizeOperands(x, false), quantizeAttributes(e4m3, false, line)),
                "must have shape [1, 144], not []");
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
