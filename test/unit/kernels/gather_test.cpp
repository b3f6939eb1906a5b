// gather and gather_grad.
#include "kernels/Call.h"
#include "test/unit/kernels/Harness.h"

namespace ds::kernels::test {

namespace {

struct Case {
  Shape data, indices, taken;
  int64_t axis;
};

const Case cases[] = {
    {{5}, {}, {}, 0},
    {{5}, {7}, {7}, 0},
    {{5, 3}, {4}, {4, 3}, 0},
    {{5, 3}, {2, 4}, {2, 4, 3}, 0},
    {{5, 3}, {4}, {5, 4}, 1},
    {{5, 3}, {4}, {5, 4}, -1},
    {{2, 5, 3, 2}, {4, 1}, {2, 4, 1, 3, 2}, 1},
    {{5, 3}, {0}, {0, 3}, 0},
    {{5, 0}, {2}, {2, 0}, 0},
    {{900, 70}, {500}, {500, 70}, 0},
    {{3, 20000}, {50}, {50, 20000}, 0},
};

Buffer randomIndices(Random &random, DType dtype, const Shape &shape, int64_t length) {
  Buffer indices(type(dtype, shape));
  for (int64_t i = 0; i < elementCount(shape); ++i) {
    const int64_t index = random.below(2 * length) - length;
    dtype == DType::I32 ? void(indices.as<int32_t>()[i] = int32_t(index)) : void(indices.as<int64_t>()[i] = index);
  }
  return indices;
}

int64_t lengthOf(const Case &c) { return c.data[size_t(c.axis < 0 ? c.axis + int64_t(c.data.size()) : c.axis)]; }

TEST(Gather, AnyAxisAndType) {
  for (const Case &c : cases)
    for (DType dtype : {DType::Bool, DType::U16, DType::I32, DType::I64, DType::F32, DType::F64})
      for (DType index : {DType::I32, DType::I64}) {
        Random random(3);
        SCOPED_TRACE(toString(c.data) + " by " + toString(c.indices));
        expectMatchesReference("gather",
                               {random.buffer(dtype, c.data), randomIndices(random, index, c.indices, lengthOf(c)),
                                Buffer(type(dtype, c.taken))},
                               {{"axis", c.axis}}, {2}, {});
      }
}

TEST(GatherGrad, AddsInIndexOrder) {
  for (const Case &c : cases)
    for (DType dtype : floatTypes)
      for (DType index : {DType::I32, DType::I64}) {
        Random random(4);
        SCOPED_TRACE(toString(c.data) + " by " + toString(c.indices));
        // No tolerance: the order of the additions is part of the contract.
        expectMatchesReference("gather_grad",
                               {random.buffer(dtype, c.taken), randomIndices(random, index, c.indices, lengthOf(c)),
                                Buffer(type(dtype, c.data))},
                               {{"axis", c.axis}}, {2}, {});
      }
}

/// Each row of a table is found in one of its parts; the others have 0 for it, and no gradient.
TEST(Gather, PartsOfATable) {
  for (const Case &c : cases) {
    Random random(5);
    SCOPED_TRACE(toString(c.data) + " by " + toString(c.indices));
    const size_t axis = size_t(c.axis < 0 ? c.axis + int64_t(c.data.size()) : c.axis);
    const Buffer indices = randomIndices(random, DType::I64, c.indices, lengthOf(c));
    const Buffer dy = random.buffer(DType::F64, c.taken);
    const Buffer whole = expectMatchesReference("gather_grad", {dy, indices, Buffer(type(DType::F64, c.data))},
                                                {{"axis", c.axis}}, {2}, {})[2];
    std::vector<double> sum(size_t(elementCount(c.taken)));
    for (const auto &[first, count] : std::vector<std::pair<int64_t, int64_t>>{{0, 2}, {2, lengthOf(c) - 2}}) {
      Shape shape = c.data;
      shape[axis] = count;
      const Attributes part = {{"axis", c.axis}, {"whole", Shape{lengthOf(c)}}, {"first", Shape{first}}};
      const Buffer rows =
          expectMatchesReference("gather_grad", {dy, indices, Buffer(type(DType::F64, shape))}, part, {2}, {})[2];
      const AxisView view = viewAlong(shape, axis);
      for (int64_t i = 0; i < elementCount(shape); ++i) {
        const int64_t outer = i / (view.length * view.inner), inner = i % (view.length * view.inner);
        ASSERT_EQ(rows.at(i), whole.at((outer * lengthOf(c) + first) * view.inner + inner));
      }
      const Buffer taken =
          expectMatchesReference("gather", {rows, indices, Buffer(type(DType::F64, c.taken))}, part, {2}, {})[2];
      for (size_t i = 0; i < sum.size(); ++i)
        sum[i] += taken.at(int64_t(i));
    }
    const Buffer taken = expectMatchesReference("gather", {whole, indices, Buffer(type(DType::F64, c.taken))},
                                                {{"axis", c.axis}}, {2}, {})[2];
    for (size_t i = 0; i < sum.size(); ++i)
      ASSERT_EQ(sum[i], taken.at(int64_t(i)));
  }
}

TEST(Gather, RefusesPartsOutsideOfTheTable) {
  const auto with = [](const Shape &whole, const Shape &first) {
    return Invocation{"gather",
                      {type(DType::F32, {5, 2}), type(DType::I64, {3}), type(DType::F32, {3, 2})},
                      {{"axis", int64_t(0)}, {"whole", whole}, {"first", first}}};
  };
  expectRefused(with({10}, {6}), "5 rows from 6 on do not lie in a table of 10");
  expectRefused(with({4}, {0}), "do not lie in a table of 4");
  expectRefused(with({10}, {-1}), "do not lie in a table");
  expectRefused(with({10, 2}, {0, 0}), "have one entry");
}

TEST(Gather, FailsOnIndicesOutOfRange) {
  for (int64_t bad : {int64_t(5), int64_t(-6), INT64_MAX, INT64_MIN}) {
    const Buffer indices(type(DType::I64, {3}), std::vector<int64_t>{0, 4, bad});
    const std::string text = "index " + std::to_string(bad) + " at position 2 is out of range [-5, 5)";
    expectFails("gather", {Buffer(type(DType::F32, {5, 2})), indices, Buffer(type(DType::F32, {3, 2}))},
                {{"axis", int64_t(0)}}, text);
    expectFails("gather_grad", {Buffer(type(DType::F32, {3, 2})), indices, Buffer(type(DType::F32, {5, 2}))},
                {{"axis", int64_t(0)}}, text);
  }
  expectFails("gather",
              {Buffer(type(DType::F32, {5})), Buffer(type(DType::I32, {1}), std::vector<int32_t>{INT32_MIN}),
               Buffer(type(DType::F32, {1}))},
              {{"axis", int64_t(0)}}, "index -2147483648 at position 0");
  expectFails("gather",
              {Buffer(type(DType::F32, {0})), Buffer(type(DType::I32, {1}), std::vector<int32_t>{0}),
               Buffer(type(DType::F32, {1}))},
              {{"axis", int64_t(0)}}, "out of range [0, 0)");
}

TEST(Gather, RefusesWrongShapes) {
  const auto with = [](DType index, Shape taken, int64_t axis) {
    return Invocation{
        "gather", {type(DType::F32, {5, 2}), type(index, {3}), type(DType::F32, std::move(taken))}, {{"axis", axis}}};
  };
  expectRefused(with(DType::F32, {3, 2}, 0), "must be int32 or int64");
  expectRefused(with(DType::I64, {3, 3}, 0), "must have shape [3, 2]");
  expectRefused(with(DType::I64, {5, 3}, 2), "axis 2 is out of range");
}

TEST(GatherGrad, RefusesIntegers) {
  expectRefused({"gather_grad",
                 {type(DType::I32, {3, 2}), type(DType::I64, {3}), type(DType::I32, {5, 2})},
                 {{"axis", int64_t(0)}}},
                "must be float32, float64, bfloat16 or float16");
}

} // namespace

} // namespace ds::kernels::test
