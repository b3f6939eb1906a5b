// Products on tile registers: as near to exact ones as float32 asks, in all forms, whatever the numbers are.
#include "kernels/cpu/Isa.h"
#include "kernels/cpu/TileGemm.h"
#include "test/unit/kernels/Harness.h"

#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>

namespace ds::kernels::test {

namespace {

/// A plain float32 loop, which rounds each product's sum.
bool multiplyPlainly(const Gemm<float> &g) {
  for (int64_t i = 0; i < g.rows; ++i)
    for (int64_t j = 0; j < g.cols; ++j) {
      float sum = g.add ? g.c[i * g.cStride + j] : g.bias ? g.bias[j] : 0;
      for (int64_t k = 0; k < g.depth; ++k)
        sum += g.a[g.transA ? k * g.aStride + i : i * g.aStride + k] *
               g.b[g.transB ? j * g.bStride + k : k * g.bStride + j];
      g.c[i * g.cStride + j] = sum;
    }
  return true;
}

bool neverNeeded(const Gemm<float> &) { return false; }

/// Operands and a result with room around each row; owns what the product points to.
struct Problem {
  enum Start { Nothing, C, Bias }; ///< what the product is added to
  std::vector<float> a, b, c, bias;
  Gemm<float> gemm;

  Problem(uint64_t seed, int64_t rows, int64_t cols, int64_t depth, bool transA = false, bool transB = false,
          Start start = Nothing) {
    Random random(seed);
    gemm = {nullptr, nullptr, nullptr, rows, cols, depth, 0, 0, cols + 3, transA, transB, start == C};
    gemm.aStride = (transA ? rows : depth) + 1;
    gemm.bStride = (transB ? depth : cols) + 2;
    a = numbers(random, (transA ? depth : rows) * gemm.aStride);
    b = numbers(random, (transB ? cols : depth) * gemm.bStride);
    c = numbers(random, rows * gemm.cStride);
    bias = numbers(random, start == Bias ? cols : 0);
    point();
  }
  Problem(const Problem &other) : a(other.a), b(other.b), c(other.c), bias(other.bias), gemm(other.gemm) { point(); }

  static std::vector<float> numbers(Random &random, int64_t count) {
    const Buffer buffer = random.buffer(DType::F32, {count});
    const auto *first = reinterpret_cast<const float *>(buffer.data());
    return {first, first + count};
  }

  double exact(int64_t i, int64_t j) const {
    double sum = gemm.add ? c[size_t(i * gemm.cStride + j)] : bias.empty() ? 0 : bias[size_t(j)];
    for (int64_t k = 0; k < gemm.depth; ++k)
      sum += double(a[size_t(gemm.transA ? k * gemm.aStride + i : i * gemm.aStride + k)]) *
             double(b[size_t(gemm.transB ? j * gemm.bStride + k : k * gemm.bStride + j)]);
    return sum;
  }

private:
  void point() {
    gemm.a = a.data(), gemm.b = b.data(), gemm.c = c.data(), gemm.bias = bias.empty() ? nullptr : bias.data();
  }
};

/// Root of the mean squared error.
double errorOf(const Problem &before, const Problem &after) {
  double sum = 0;
  for (int64_t i = 0; i < before.gemm.rows; ++i)
    for (int64_t j = 0; j < before.gemm.cols; ++j)
      sum += std::pow(after.c[size_t(i * after.gemm.cStride + j)] - before.exact(i, j), 2);
  return std::sqrt(sum / double(before.gemm.rows * before.gemm.cols));
}

class TileGemm : public testing::Test {
protected:
  void SetUp() override {
    if (isa() < Isa::Amx)
      GTEST_SKIP() << "this machine, or DS_CPU_ISA, has no tile registers";
  }
};

/// Leaves nothing of use where the next call has its locals.
[[gnu::noinline]] void fillStack() {
  volatile unsigned char bytes[4096];
  for (volatile unsigned char &byte : bytes)
    byte = 0xee;
}

TEST_F(TileGemm, ConfiguresTilesWhateverTheStackHeld) {
  fillStack();
  configureTiles();
  releaseTiles();
}

TEST_F(TileGemm, IsNearerToExactThanAFloatLoop) {
  for (int64_t depth : {64, 129, 1000, 3072}) {
    const Problem problem(uint64_t(depth), 130, 70, depth);
    Problem tiles = problem, plain = problem;
    ASSERT_TRUE(multiplyOnTiles(tiles.gemm, {}, neverNeeded));
    multiplyPlainly(plain.gemm);
    EXPECT_LT(errorOf(problem, tiles), 0.5 * errorOf(problem, plain)) << depth;
  }
}

TEST_F(TileGemm, TakesEveryForm) {
  for (int64_t rows : {1, 16, 47, 513})
    for (int64_t cols : {1, 31, 96, 530})
      for (int64_t depth : {1, 17, 48, 140})
        for (int bits = 0; bits < 12; ++bits) {
          const Problem before(uint64_t(rows + cols + depth), rows, cols, depth, bits & 1, bits & 2,
                               Problem::Start(bits / 4));
          Problem after = before;
          ASSERT_TRUE(multiplyOnTiles(after.gemm, {}, neverNeeded));
          for (int64_t i = 0; i < rows; i += rows > 100 ? 37 : 1) {
            for (int64_t j = 0; j < cols; j += cols > 100 ? 29 : 1)
              ASSERT_NEAR(after.c[size_t(i * after.gemm.cStride + j)], before.exact(i, j), 1e-6 * double(depth + 1))
                  << rows << " x " << cols << " x " << depth << ", form " << bits << " at " << i << ", " << j;
            for (int64_t j = cols; j < before.gemm.cStride; ++j) // between rows
              ASSERT_EQ(after.c[size_t(i * after.gemm.cStride + j)], before.c[size_t(i * after.gemm.cStride + j)]);
          }
        }
}

TEST_F(TileGemm, HasTheSameBitsHoweverResultsAreCut) {
  std::vector<std::byte> memory(size_t(WorkerScratch::bytesFor(tileScratchBytes(300, 260, 400), 1)));
  const WorkerScratch scratch(int64_t(memory.size()), 1);
  for (const auto start : {Problem::C, Problem::Bias}) {
    const Problem before(7, 300, 260, 400, true, true, start);
    Problem whole = before, cut = before;
    ASSERT_TRUE(multiplyOnTiles(whole.gemm, scratch.of(memory.data(), 0), neverNeeded));
    for (int64_t row = 0; row < 300; row += 77)
      for (int64_t col = 0; col < 260; col += 50) {
        Gemm<float> part = cut.gemm;
        part.a += row;
        part.b += col * part.bStride;
        part.c += row * part.cStride + col;
        part.bias = part.bias ? part.bias + col : nullptr;
        part.rows = std::min<int64_t>(77, 300 - row);
        part.cols = std::min<int64_t>(50, 260 - col);
        ASSERT_TRUE(multiplyOnTiles(part, {}, neverNeeded));
      }
    EXPECT_EQ(std::memcmp(whole.c.data(), cut.c.data(), whole.c.size() * sizeof(float)), 0);
  }
}

TEST_F(TileGemm, LeavesBlocksWithOtherNumbersToTheLibrary) {
  for (float number : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(), FLT_MAX, NAN})
    for (bool inA : {true, false}) {
      Problem before(9, 600, 140, 300, false, false, Problem::Bias);
      (inA ? before.a[size_t(550 * before.gemm.aStride + 290)] : before.b[size_t(290 * before.gemm.bStride + 130)]) =
          number;
      Problem tiles = before, plain = before;
      ASSERT_TRUE(multiplyOnTiles(tiles.gemm, {}, multiplyPlainly));
      multiplyPlainly(plain.gemm);
      for (size_t i = 0; i < plain.c.size(); ++i) {
        const bool same = std::memcmp(&tiles.c[i], &plain.c[i], sizeof(float)) == 0;
        ASSERT_TRUE(same || std::abs(tiles.c[i] - plain.c[i]) < 1e-3) << number << " at " << i << ": " << tiles.c[i];
      }
    }
}

TEST_F(TileGemm, KeepsSmallNumbersAsFarAsBFloat16Does) {
  Problem before(11, 33, 40, 64);
  for (float scale : {0x1p-60f, 0x1p-100f}) {
    Problem small = before;
    for (float &x : small.a)
      x *= scale;
    ASSERT_TRUE(multiplyOnTiles(small.gemm, {}, neverNeeded));
    for (int64_t i = 0; i < 33; ++i)
      for (int64_t j = 0; j < 40; ++j)
        ASSERT_NEAR(small.c[size_t(i * small.gemm.cStride + j)] / scale, before.exact(i, j), 1e-4);
  }
}

TEST_F(TileGemm, SaysWhenTheLibraryFails) {
  Problem problem(13, 32, 32, 32);
  problem.a[0] = NAN;
  EXPECT_FALSE(multiplyOnTiles(problem.gemm, {}, neverNeeded));
}

TEST(TileGemmShapes, TakesLargeOnes) {
  EXPECT_TRUE(suitsTiles(128, 128, 64));
  EXPECT_FALSE(suitsTiles(127, 128, 64));
  EXPECT_FALSE(suitsTiles(128, 127, 64));
  EXPECT_FALSE(suitsTiles(128, 128, 63));
}

TEST(TileGemmShapes, BlocksShrinkWithTheScratch) {
  const TileBlock whole = TileBlock::of(2000, 130);
  EXPECT_EQ(whole.rows, 512);
  EXPECT_EQ(whole.cols, 160);
  EXPECT_EQ(whole.bytes(), 512 * 768 + 160 * 768 + (512 * 160 + 2048) * 4);
  EXPECT_EQ(TileBlock::within(whole, whole.bytes()).rows, 512);
  for (int64_t bytes = 0; bytes < whole.bytes(); bytes += 10000) {
    const TileBlock block = TileBlock::within(whole, bytes);
    EXPECT_TRUE(block.bytes() <= bytes || (block.rows == TileBlock::minSide && block.cols == TileBlock::minSide));
    EXPECT_EQ(block.rows % TileBlock::panel + block.cols % TileBlock::panel, 0);
  }
}

} // namespace

} // namespace ds::kernels::test
