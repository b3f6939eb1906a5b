#include "kernels/Philox.h"
#include "test/unit/kernels/Harness.h"

#include <cmath>
#include <cstring>

namespace ds::kernels::test {

namespace {

Attributes attributesOf(double ratio, int64_t opId = 3) { return {{"ratio", ratio}, {"op_id", opId}}; }

CallContext contextOf(uint64_t seed, uint64_t step, uint64_t microbatch) {
  return {.seed = seed, .step = step, .microbatch = microbatch};
}

std::vector<float> draw(double ratio, CallContext context, int64_t opId, int64_t count) {
  std::vector<Buffer> operands = {Buffer(type(DType::F32, {count}), std::vector<float>(size_t(count), 1.0f)),
                                  Buffer(type(DType::F32, {count}))};
  EXPECT_TRUE(
      runKernel(cpuKernels(), invocationOf("dropout", operands, attributesOf(ratio, opId)), operands, 2, context).ok());
  return {operands[1].as<float>(), operands[1].as<float>() + count};
}

TEST(Philox, KnownAnswers) {
  // The vectors of the authors' Random123 distribution for philox4x32-10.
  EXPECT_EQ(philox({0, 0, 0, 0}, 0), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, 0xffffffffffffffff),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Dropout, MatchesPhiloxByElement) {
  for (DType dtype : floatTypes)
    for (int64_t count : {0, 1, 3, 4, 63, 64, 65, 100000})
      for (double ratio : {0.0, 0.1, 0.5, 1e-12, 1.0}) {
        Random random{uint64_t(count)};
        SCOPED_TRACE(std::to_string(count) + " elements, ratio " + std::to_string(ratio));
        expectMatchesReference("dropout", {random.buffer(dtype, {count}), Buffer(type(dtype, {count}))},
                               attributesOf(ratio), {1}, {}, contextOf(7, 11, 5));
      }
}

TEST(Dropout, KeepsAndScales) {
  const int64_t count = 1000000;
  for (double ratio : {0.1, 0.25, 0.9}) {
    const std::vector<float> y = draw(ratio, contextOf(1, 2, 3), 4, count);
    int64_t kept = 0;
    for (float value : y) {
      ASSERT_TRUE(value == 0 || value == float(1 / (1 - ratio))) << value;
      kept += value != 0;
    }
    // Five standard deviations of a binomial.
    EXPECT_NEAR(double(kept) / double(count), 1 - ratio, 5 * std::sqrt(ratio * (1 - ratio) / double(count)));
  }
}

TEST(Dropout, ReplaysByKeyAndDiffersBetweenKeys) {
  const CallContext base = contextOf(1, 2, 3);
  const std::vector<float> first = draw(0.5, base, 4, 4096);
  EXPECT_EQ(first, draw(0.5, base, 4, 4096));
  EXPECT_NE(first, draw(0.5, contextOf(2, 2, 3), 4, 4096));
  EXPECT_NE(first, draw(0.5, contextOf(1, 3, 3), 4, 4096));
  EXPECT_NE(first, draw(0.5, contextOf(1, 2, 4), 4, 4096));
  EXPECT_NE(first, draw(0.5, base, 5, 4096));
}

TEST(Dropout, RefusesWrongAttributes) {
  const std::vector<TensorType> operands = {type(DType::F32, {4}), type(DType::F32, {4})};
  expectRefused({"dropout", operands, attributesOf(-0.1)}, "must be in");
  expectRefused({"dropout", operands, attributesOf(1.5)}, "must be in");
  expectRefused({"dropout", operands, attributesOf(std::nan(""))}, "must be finite");
  expectRefused({"dropout", operands, attributesOf(0.5, -1)}, "must be in [0, 4294967295]");
}

} // namespace

} // namespace ds::kernels::test
