#include "kernels/Philox.h"
#include "test/unit/kernels/Harness.h"

#include <algorithm>
#include <cmath>

namespace ds::kernels::test {

namespace {

CallContext contextOf(uint64_t seed, uint64_t step, uint64_t microbatch) {
  return {.seed = seed, .step = step, .microbatch = microbatch};
}

std::vector<float> draw(CallContext context, int64_t opId, int64_t count) {
  std::vector<Buffer> operands = {Buffer(type(DType::F32, {count}))};
  EXPECT_TRUE(runKernel(cpuKernels(), invocationOf("uniform", operands, {{"op_id", opId}}), operands, 2, context).ok());
  return {operands[0].as<float>(), operands[0].as<float>() + count};
}

TEST(Uniform, IsAWordWithoutItsLowBits) {
  EXPECT_EQ(uniformOf<float>(0), 0.0f);
  EXPECT_EQ(uniformOf<float>(0xffffffff), 1 - 0x1p-24f);
  EXPECT_EQ(uniformOf<float>(0x800000ff), 0.5f);
  EXPECT_EQ(uniformOf<double>(0xffffffff), 1 - 0x1p-32);
}

TEST(Uniform, MatchesPhiloxByElement) {
  for (DType dtype : {DType::F32, DType::F64})
    for (int64_t count : {0, 1, 3, 4, 63, 64, 65, 100000}) {
      SCOPED_TRACE(std::to_string(count) + " elements");
      expectMatchesReference("uniform", {Buffer(type(dtype, {count}))}, {{"op_id", int64_t(3)}}, {0}, {},
                             contextOf(7, 11, 5));
    }
}

TEST(Uniform, PartsHaveTheNumbersOfTheWhole) {
  const Shape whole = {10, 34}, part = {3, 9}, first = {6, 13};
  const std::vector<float> all = draw(contextOf(1, 2, 3), 4, elementCount(whole));
  const std::vector<Buffer> operands =
      expectMatchesReference("uniform", {Buffer(type(DType::F32, part))},
                             {{"op_id", int64_t(4)}, {"whole", whole}, {"first", first}}, {0}, {}, contextOf(1, 2, 3));
  for (int64_t i = 0; i < elementCount(part); ++i)
    ASSERT_EQ(operands[0].as<float>()[i], all[size_t((first[0] + i / 9) * 34 + first[1] + i % 9)]) << i;
}

/// Five standard deviations of what sums of independent uniform numbers have.
TEST(Uniform, MomentsAndQuarters) {
  const int64_t count = 1000000;
  const std::vector<float> y = draw(contextOf(1, 2, 3), 4, count);
  double sum = 0, squares = 0, lagged = 0;
  int64_t quarters[4] = {};
  for (int64_t i = 0; i < count; ++i) {
    ASSERT_TRUE(y[size_t(i)] >= 0 && y[size_t(i)] < 1) << y[size_t(i)];
    const double centered = double(y[size_t(i)]) - 0.5;
    sum += centered;
    squares += centered * centered;
    lagged += i > 0 ? centered * (double(y[size_t(i - 1)]) - 0.5) : 0;
    ++quarters[int(y[size_t(i)] * 4)];
  }
  const double n = double(count);
  EXPECT_NEAR(sum / n, 0, 5 * std::sqrt(1.0 / 12 / n));
  EXPECT_NEAR(squares / n, 1.0 / 12, 5 * std::sqrt(1.0 / 180 / n));
  EXPECT_NEAR(lagged / n, 0, 5 / 12.0 / std::sqrt(n));
  for (int64_t quarter : quarters)
    EXPECT_NEAR(double(quarter) / n, 0.25, 5 * std::sqrt(0.25 * 0.75 / n));
}

TEST(Uniform, ReplaysByKeyAndDiffersBetweenKeys) {
  const CallContext base = contextOf(1, 2, 3);
  const std::vector<float> first = draw(base, 4, 4096);
  EXPECT_EQ(first, draw(base, 4, 4096));
  const std::vector<float> longer = draw(base, 4, 5000);
  EXPECT_TRUE(std::equal(first.begin(), first.end(), longer.begin())) << "an element depends on its place alone";
  EXPECT_NE(first, draw(contextOf(2, 2, 3), 4, 4096));
  EXPECT_NE(first, draw(contextOf(1, 3, 3), 4, 4096));
  EXPECT_NE(first, draw(contextOf(1, 2, 4), 4, 4096));
  EXPECT_NE(first, draw(base, 5, 4096));
}

TEST(Uniform, RefusesWrongCalls) {
  const std::vector<TensorType> operands = {type(DType::F32, {4})};
  expectRefused({"uniform", operands, {{"op_id", int64_t(-1)}}}, "must be in [0, 4294967295]");
  expectRefused({"uniform", {type(DType::BF16, {4})}, {{"op_id", int64_t(1)}}}, "bfloat16");
  expectRefused({"uniform", {operands[0], operands[0]}, {{"op_id", int64_t(1)}}}, "operands");
}

} // namespace

} // namespace ds::kernels::test
