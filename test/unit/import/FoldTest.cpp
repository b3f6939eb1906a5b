//===- FoldTest.cpp - computing with constants ------------------------------------===//
#include "compiler/import/Fold.h"
#include "compiler/import/files/Failure.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

using namespace ds;
using namespace ds::import;

namespace {
FoldBudget &budget() {
  static FoldBudget large(int64_t(1) << 40);
  return large;
}
Constant floats(std::vector<float> values) {
  std::vector<char> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return Constant::dense(DType::F32, {int64_t(values.size())}, std::move(bytes));
}
std::vector<float> floatsOf(const Constant &constant) {
  const std::vector<char> bytes = constant.bytes(constant.shape());
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}
std::vector<int64_t> integers(BinaryFold kind, std::vector<int64_t> a, std::vector<int64_t> b) {
  return foldBinary(kind, Constant::integers(a), Constant::integers(b), {int64_t(a.size())}, budget())->toIntegers();
}
constexpr int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max();
} // namespace

TEST(Fold, IntegersWrapAroundAndTruncate) {
  EXPECT_EQ(integers(BinaryFold::Add, {most, 1}, {1, 2}), (std::vector<int64_t>{least, 3}));
  EXPECT_EQ(integers(BinaryFold::Mul, {most, 3}, {2, 4}), (std::vector<int64_t>{-2, 12}));
  EXPECT_EQ(integers(BinaryFold::Div, {-7, 7, least}, {2, -2, -1}), (std::vector<int64_t>{-3, -3, least}));
  EXPECT_EQ(integers(BinaryFold::Mod, {-7, 7, least}, {2, -2, -1}), (std::vector<int64_t>{1, -1, 0}));
  EXPECT_EQ(integers(BinaryFold::Pow, {3, -1, 2}, {4, -3, -1}), (std::vector<int64_t>{81, -1, 0}));
  EXPECT_THROW(integers(BinaryFold::Div, {1}, {0}), Failure);
  EXPECT_THROW(integers(BinaryFold::Mod, {1}, {0}), Failure);
}

TEST(Fold, FloatsAreComputedInTheirOwnType) {
  const std::vector<float> angles = {0.5f, 1.0f, 100.0f};
  const std::vector<float> sines = floatsOf(*foldUnary(UnaryFold::Sin, floats(angles), budget()));
  for (size_t i = 0; i < angles.size(); ++i)
    EXPECT_EQ(sines[i], std::sin(angles[i]));
  EXPECT_TRUE(std::isnan(floatsOf(*foldUnary(UnaryFold::Sqrt, floats({-1, 1}), budget()))[0]));
}

TEST(Fold, MaximumKeepsNan) {
  const float nan = std::nanf("");
  const std::vector<float> result =
      floatsOf(*foldBinary(BinaryFold::Max, floats({nan, 1, 2}), floats({1, nan, 1}), {3}, budget()));
  EXPECT_TRUE(std::isnan(result[0]) && std::isnan(result[1]));
  EXPECT_EQ(result[2], 2);
}

TEST(Fold, CastsSaturate) {
  const Constant from = floats({-1.9f, 1.9f, 1e30f, -1e30f, std::nanf("")});
  EXPECT_EQ(foldCast(from, DType::I64, budget()).toIntegers(), (std::vector<int64_t>{-1, 1, most, least, 0}));
  EXPECT_EQ(foldCast(from, DType::Bool, budget()).toIntegers(), (std::vector<int64_t>{1, 1, 1, 1, 1}));
}

TEST(Fold, UnsignedIntegersAreComputedInTheirOwnWidth) {
  for (const auto &[type, top] : {std::pair(DType::U8, int64_t(255)), {DType::U16, 65535}, {DType::U32, 4294967295}}) {
    const Constant row = foldCast(Constant::integers({-1, 0, 3}), type, budget());
    EXPECT_EQ(row.toIntegers(), (std::vector<int64_t>{top, 0, 3}));
    EXPECT_EQ(row.firstAsDouble(), double(top));
    const auto with = [&](BinaryFold kind) { return foldBinary(kind, row, row, {3}, budget())->toIntegers(); };
    EXPECT_EQ(with(BinaryFold::Add), (std::vector<int64_t>{top - 1, 0, 6}));
    EXPECT_EQ(with(BinaryFold::GreaterEqual), (std::vector<int64_t>{1, 1, 1}));
    EXPECT_EQ(foldUnary(UnaryFold::Neg, row, budget())->toIntegers(), (std::vector<int64_t>{1, 0, top - 2}));
    const Constant few = foldCast(Constant::integers({5, -1}), type, budget()), whole = Constant::integer(-1);
    const auto by = [&](BinaryFold kind) {
      return foldBinary(kind, few, foldCast(whole, type, budget()), {2}, budget())->toIntegers();
    };
    EXPECT_EQ(by(BinaryFold::Div), (std::vector<int64_t>{0, 1}));
    EXPECT_EQ(by(BinaryFold::Mod), (std::vector<int64_t>{5, 0}));
    EXPECT_EQ(foldReduce(ReduceFold::Sum, row, {0}, budget())->toIntegers(), (std::vector<int64_t>{2}));
    EXPECT_EQ(foldCast(row, DType::I64, budget()).toIntegers(), (std::vector<int64_t>{top, 0, 3}));
    EXPECT_EQ(foldCast(Constant::integers({-1}), DType::I32, budget()).toIntegers(), (std::vector<int64_t>{-1}));
    EXPECT_EQ(foldCast(row, DType::Bool, budget()).toIntegers(), (std::vector<int64_t>{1, 0, 1}));
    EXPECT_EQ(foldCast(floats({-2.5f, 2.5f, 1e30f}), type, budget()).toIntegers(), (std::vector<int64_t>{0, 2, top}));
  }
}

TEST(Fold, ReducesOverAxes) {
  const Constant square = foldReshape(Constant::integers({1, 2, 3, 4, 5, 6}), {2, 3}, budget());
  EXPECT_EQ(foldReduce(ReduceFold::Sum, square, {0}, budget())->toIntegers(), (std::vector<int64_t>{5, 7, 9}));
  EXPECT_EQ(foldReduce(ReduceFold::Prod, square, {0, 1}, budget())->toIntegers(), (std::vector<int64_t>{720}));
  EXPECT_EQ(foldReduce(ReduceFold::Min, square, {1}, budget())->toIntegers(), (std::vector<int64_t>{1, 4}));
  const Constant repeated = Constant::integer(2).broadcast({5});
  EXPECT_EQ(foldReduce(ReduceFold::Sum, repeated, {0}, budget())->toIntegers(), (std::vector<int64_t>{10}));
}

TEST(Fold, RunningSumsGoBothWays) {
  const Constant row = Constant::integers({1, 2, 3});
  EXPECT_EQ(foldCumSum(row, 0, false, false, budget()).toIntegers(), (std::vector<int64_t>{1, 3, 6}));
  EXPECT_EQ(foldCumSum(row, 0, true, true, budget()).toIntegers(), (std::vector<int64_t>{5, 3, 0}));
}

TEST(Fold, EmptyTensorsAreFine) {
  const Constant none = Constant::integers({});
  EXPECT_EQ(foldConcat({none, Constant::integers({1})}, 0, budget()).toIntegers(), (std::vector<int64_t>{1}));
  EXPECT_TRUE(foldReshape(none, {3, 0}, budget()).toIntegers().empty());
  EXPECT_FALSE(foldReduce(ReduceFold::Max, none, {0}, budget()));
}

TEST(Fold, SixteenBitsRoundOnceAndMove) {
  // 1 + 2^-11 + 2^-40 lies above the middle of two float16; through float32 it would be the middle, and round down.
  const Constant wide = Constant::scalar(DType::F64, 1 + 0x1p-11 + 0x1p-40);
  EXPECT_EQ(foldCast(wide, DType::F16, budget()).firstAsDouble(), 1 + 0x1p-10);
  EXPECT_EQ(foldCast(Constant::scalar(DType::F32, 65520.0F), DType::F16, budget()).firstAsDouble(),
            std::numeric_limits<double>::infinity());
  EXPECT_EQ(foldCast(Constant::scalar(DType::F32, 1 + 0x1p-8F), DType::BF16, budget()).firstAsDouble(),
            1); // ties to even
  const Constant half = foldCast(floats({0.5F, -2, 0x1p-24F, 3}), DType::F16, budget());
  EXPECT_EQ(half.bytes(half.shape()).size(), 8U);
  const Constant moved = foldConcat({foldSlice(half, {3}, {2}, {-1}), half}, 0, budget());
  EXPECT_EQ(floatsOf(foldCast(moved, DType::F32, budget())), (std::vector<float>{3, 0x1p-24F, 0.5F, -2, 0x1p-24F, 3}));
  EXPECT_EQ(foldCast(half, DType::I64, budget()).toIntegers(), (std::vector<int64_t>{0, -2, 0, 3}));
  EXPECT_FALSE(foldBinary(BinaryFold::Add, half, half, half.shape(), budget())); // computed as float32 by the importer
}
