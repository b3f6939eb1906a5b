//===- ConstantTest.cpp - strided host tensors ---------------------------------===//
#include "compiler/import/Constant.h"
#include "compiler/import/Fold.h"
#include "compiler/import/files/Failure.h"

#include <gtest/gtest.h>

using namespace ds;
using namespace ds::import;

/// [[[0, 1, 2], [0, 1, 2]]]: int64 [1, 2, 3]
static Constant repeatedRows() {
  FoldBudget budget(1000);
  const Constant row = Constant::integers({0, 1, 2});
  return foldReshape(foldConcat({row, row}, 0, budget), {1, 2, 3}, budget);
}

TEST(Constant, KeepsOneOfEqualSlices) {
  const Constant rows = repeatedRows();
  EXPECT_EQ(rows.distinctShape(), (Shape{1, 1, 3}));
  EXPECT_EQ(rows.toIntegers(), (std::vector<int64_t>{0, 1, 2, 0, 1, 2}));
}

TEST(Constant, ComputesOnlyWhatDiffers) {
  FoldBudget budget(9); // a result of [1000, 3, 3] would not fit
  const Constant column = foldReshape(Constant::integers({0, 1, 2}), {3, 1}, budget).broadcast({1000, 3, 1});
  const Constant row = Constant::integers({0, 1, 2}).broadcast({1000, 1, 3});
  const Constant mask = *foldBinary(BinaryFold::LessEqual, row, column, {1000, 3, 3}, budget);
  EXPECT_EQ(mask.shape(), (Shape{1000, 3, 3}));
  EXPECT_EQ(mask.distinctShape(), (Shape{1, 3, 3}));
}

TEST(Constant, MovesWithoutCopying) {
  FoldBudget budget(6);
  const Constant square = foldReshape(Constant::integers({0, 1, 2, 3, 4, 5}), {2, 3}, budget); // charges all 6
  EXPECT_EQ(foldTranspose(square, {1, 0}).toIntegers(), (std::vector<int64_t>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(foldSlice(square, {1, 2}, {2, 2}, {-1, -2}).toIntegers(), (std::vector<int64_t>{5, 3, 2, 0}));
  EXPECT_EQ(foldReshape(square, {2, 1, 3, 1}, budget).toIntegers(), (std::vector<int64_t>{0, 1, 2, 3, 4, 5}));
}

TEST(Constant, RefusesWhatPassesTheBudget) {
  FoldBudget budget(100);
  const Constant column =
      foldReshape(foldRange(Constant::integer(0), Constant::integer(1), 50, budget), {50, 1}, budget);
  const Constant row = foldRange(Constant::integer(0), Constant::integer(1), 50, budget);
  EXPECT_THROW((void)foldBinary(BinaryFold::Add, row, column, {50, 50}, budget), Failure);
  EXPECT_THROW((void)foldRange(Constant::integer(0), Constant::integer(1), 1'000'000'000'000, budget), Failure);
}
