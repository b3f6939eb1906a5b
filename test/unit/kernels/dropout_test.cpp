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

/// Parts cut along any dimensions have the whole's mask, on each device.
TEST(Dropout, PartsHaveTheMaskOfTheWhole) {
  const Shape whole = {6, 10, 34};
  const CallContext context = contextOf(1, 2, 3);
  const std::vector<float> mask = draw(0.5, context, 4, elementCount(whole));
  for (const auto &[part, first] : std::vector<std::pair<Shape, Shape>>{{{6, 10, 34}, {0, 0, 0}},
                                                                        {{2, 10, 34}, {3, 0, 0}},
                                                                        {{6, 5, 34}, {0, 5, 0}},
                                                                        {{6, 10, 17}, {0, 0, 17}},
                                                                        {{3, 1, 9}, {2, 7, 13}},
                                                                        {{0, 10, 34}, {6, 0, 0}}}) {
    SCOPED_TRACE(toString(part) + " from " + toString(first));
    const int64_t count = elementCount(part);
    Attributes attributes = attributesOf(0.5, 4);
    attributes["whole"] = whole;
    attributes["first"] = first;
    const std::vector<Buffer> operands = expectMatchesReference(
        "dropout",
        {Buffer(type(DType::F32, part), std::vector<float>(size_t(count), 1.0f)), Buffer(type(DType::F32, part))},
        attributes, {1}, {}, context);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t a = first[0] + i / (part[1] * part[2]), b = first[1] + i / part[2] % part[1],
                    c = first[2] + i % part[2];
      ASSERT_EQ(operands[1].as<float>()[i], mask[size_t((a * whole[1] + b) * whole[2] + c)]) << i;
    }
  }
}

TEST(Dropout, RefusesPartsOutsideOfTheWhole) {
  const auto with = [](const Shape &whole, const Shape &first) {
    Invocation call{"dropout", {type(DType::F32, {4, 2}), type(DType::F32, {4, 2})}, attributesOf(0.5)};
    call.attributes["whole"] = whole;
    call.attributes["first"] = first;
    return call;
  };
  expectRefused(with({8, 2}, {5, 0}), "a part [4, 2] from [5, 0] on does not lie in a whole [8, 2]");
  expectRefused(with({8, 2}, {-1, 0}), "does not lie in a whole");
  expectRefused(with({8}, {0, 0}), "does not lie in a whole");
  expectRefused(with({8, 2}, {0}), "does not lie in a whole");
  expectRefused(with({int64_t(1) << 40, int64_t(1) << 40}, {0, 0}), "does not lie in a whole");
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
