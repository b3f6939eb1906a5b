// gather_elements and scatter_elements.
#include "test/unit/kernels/Harness.h"

namespace ds::kernels::test {

namespace {

struct Case {
  Shape data, indices;
  int64_t axis;
};

const Case cases[] = {
    {{5}, {7}, 0},
    {{5, 3}, {4, 3}, 0},
    {{5, 3}, {9, 2}, 0},
    {{5, 3}, {5, 8}, 1},
    {{5, 3}, {2, 8}, -1},
    {{2, 5, 3}, {2, 4, 3}, 1},
    {{4, 2, 5, 3}, {3, 2, 6, 1}, 2},
    {{5, 3}, {0, 3}, 0},
    {{5, 0}, {2, 0}, 0},
    {{900, 70}, {500, 70}, 0},
    {{70, 900}, {70, 1}, 1},
};

constexpr DType types[] = {DType::Bool, DType::U16, DType::I32, DType::I64, DType::F32, DType::F64};

Buffer randomIndices(Random &random, DType dtype, const Case &c) {
  const int64_t length = c.data[size_t(c.axis < 0 ? c.axis + int64_t(c.data.size()) : c.axis)];
  Buffer indices(type(dtype, c.indices));
  for (int64_t i = 0; i < elementCount(c.indices); ++i) {
    const int64_t index = random.below(2 * length) - length;
    dtype == DType::I32 ? void(indices.as<int32_t>()[i] = int32_t(index)) : void(indices.as<int64_t>()[i] = index);
  }
  return indices;
}

TEST(GatherElements, AnyAxisAndType) {
  for (const Case &c : cases)
    for (DType dtype : types)
      for (DType index : {DType::I32, DType::I64}) {
        Random random(3);
        SCOPED_TRACE(toString(c.data) + " by " + toString(c.indices));
        expectMatchesReference(
            "gather_elements",
            {random.buffer(dtype, c.data), randomIndices(random, index, c), Buffer(type(dtype, c.indices))},
            {{"axis", c.axis}}, {2}, {});
      }
}

TEST(ScatterElements, EveryReductionInOrder) {
  for (const Case &c : cases)
    for (DType dtype : types)
      for (const char *reduction : {"replace", "add", "mul", "max", "min"}) {
        if (dtype == DType::Bool && std::string(reduction) != "replace")
          continue;
        Random random(4);
        SCOPED_TRACE(std::string(reduction) + toString(c.data) + " by " + toString(c.indices));
        // No tolerance: the order of the updates is part of the contract.
        expectMatchesReference("scatter_elements",
                               {random.buffer(dtype, c.data), randomIndices(random, DType::I64, c),
                                random.buffer(dtype, c.indices), Buffer(type(dtype, c.data))},
                               {{"axis", c.axis}, {"reduction", std::string(reduction)}}, {3}, {});
      }
}

TEST(GatherElements, FailsOnIndicesOutOfRange) {
  for (int64_t bad : {int64_t(5), int64_t(-6), INT64_MAX, INT64_MIN}) {
    const Buffer indices(type(DType::I64, {3, 1}), std::vector<int64_t>{0, 4, bad});
    const std::string text = "index " + std::to_string(bad) + " at position 2 is out of range [-5, 5)";
    const Buffer data(type(DType::F32, {5, 2})), few(type(DType::F32, {3, 1}));
    expectFails("gather_elements", {data, indices, few}, {{"axis", int64_t(0)}}, text);
    expectFails("scatter_elements", {data, indices, few, data},
                {{"axis", int64_t(0)}, {"reduction", std::string("add")}}, text);
  }
}

TEST(GatherElements, RefusesWrongShapes) {
  const auto with = [](Shape indices, Shape y, int64_t axis) {
    return Invocation{"gather_elements",
                      {type(DType::F32, {5, 2}), type(DType::I64, std::move(indices)), type(DType::F32, std::move(y))},
                      {{"axis", axis}}};
  };
  expectRefused(with({3}, {3}, 0), "do not fit data [5, 2] along axis 0");
  expectRefused(with({3, 3}, {3, 3}, 0), "do not fit data [5, 2] along axis 0");
  expectRefused(with({3, 2}, {3, 1}, 0), "must have shape [3, 2]");
  expectRefused(with({3, 2}, {3, 2}, 2), "axis 2 is out of range");
  expectRefused({"scatter_elements",
                 {type(DType::Bool, {5}), type(DType::I64, {2}), type(DType::Bool, {2}), type(DType::Bool, {5})},
                 {{"axis", int64_t(0)}, {"reduction", std::string("add")}}},
                "does not exist on bool");
  expectRefused({"scatter_elements",
                 {type(DType::F32, {5}), type(DType::I64, {2}), type(DType::F32, {2}), type(DType::F32, {5})},
                 {{"axis", int64_t(0)}, {"reduction", std::string("median")}}},
                "must be replace, add, mul, max or min, not 'median'");
}

} // namespace

} // namespace ds::kernels::test
