// arg_max, top_k, cumsum.
#include "test/unit/kernels/Harness.h"

#include <cmath>

namespace ds::kernels::test {

namespace {

constexpr DType types[] = {DType::I32, DType::I64, DType::F32, DType::F64};

const Shape shapes[] = {{1}, {7}, {3, 5}, {5, 300}, {300, 5}, {2, 3, 4}, {2, 70, 130}, {40, 0}};

/// Random numbers with ties and, of floats, a NaN in the middle.
Buffer tied(Random &random, DType dtype, const Shape &shape) {
  Buffer x = random.buffer(dtype, shape);
  const int64_t count = elementCount(shape);
  for (int64_t i = 0; isFloat(dtype) && i < count; ++i)
    dtype == DType::F32 ? void(x.as<float>()[i] = i == count / 2 ? NAN : std::round(x.as<float>()[i]))
                        : void(x.as<double>()[i] = i == count / 2 ? NAN : std::round(x.as<double>()[i]));
  return x;
}

TEST(ArgMax, EveryAxisFirstAndLast) {
  for (const Shape &shape : shapes)
    for (DType dtype : types)
      for (int64_t axis = 0; axis < int64_t(shape.size()); ++axis)
        for (int64_t last : {0, 1}) {
          if (shape[size_t(axis)] == 0)
            continue;
          Random random(5);
          SCOPED_TRACE(toString(shape) + " along " + std::to_string(axis));
          Shape y = shape;
          y.erase(y.begin() + axis);
          expectMatchesReference("arg_max", {tied(random, dtype, shape), Buffer(type(DType::I64, y))},
                                 {{"axis", axis}, {"last", last}}, {1}, {});
        }
}

TEST(TopK, EveryK) {
  for (const Shape &shape : shapes)
    for (DType dtype : types)
      for (int64_t k : {int64_t(0), int64_t(1), shape.back() / 2, shape.back()})
        for (int64_t smallest : {0, 1}) {
          if (k > shape.back())
            continue;
          Random random(6);
          SCOPED_TRACE(std::to_string(k) + " of " + toString(shape));
          Shape y = shape;
          y.back() = k;
          expectMatchesReference("top_k",
                                 {tied(random, dtype, shape), Buffer(type(dtype, y)), Buffer(type(DType::I64, y))},
                                 {{"smallest", smallest}}, {1, 2}, {});
        }
}

TEST(CumSum, EveryAxisAndDirection) {
  for (const Shape &shape : shapes)
    for (DType dtype : types)
      for (int64_t axis = 0; axis < int64_t(shape.size()); ++axis)
        for (int64_t flags = 0; flags < 4; ++flags) {
          Random random(7);
          SCOPED_TRACE(toString(shape) + " along " + std::to_string(axis));
          const double epsilon = dtype == DType::F32 ? 1e-7 : isFloat(dtype) ? 1e-14 : 0;
          expectMatchesReference("cumsum", {random.buffer(dtype, shape), Buffer(type(dtype, shape))},
                                 {{"axis", axis}, {"exclusive", flags & 1}, {"reverse", flags >> 1}}, {1},
                                 {epsilon, epsilon});
        }
}

TEST(Search, RefusesWrongCalls) {
  expectRefused(
      {"arg_max", {type(DType::F32, {2, 0}), type(DType::I64, {2})}, {{"axis", int64_t(1)}, {"last", int64_t(0)}}},
      "axis 1 of x [2, 0] has no elements");
  expectRefused(
      {"arg_max", {type(DType::Bool, {2}), type(DType::I64, {})}, {{"axis", int64_t(0)}, {"last", int64_t(0)}}},
      "not bool");
  expectRefused({"top_k",
                 {type(DType::F32, {2, 3}), type(DType::F32, {2, 4}), type(DType::I64, {2, 4})},
                 {{"smallest", int64_t(0)}}},
                "has 3 elements, not 4");
  expectRefused({"cumsum",
                 {type(DType::F32, {2}), type(DType::F32, {3})},
                 {{"axis", int64_t(0)}, {"exclusive", int64_t(0)}, {"reverse", int64_t(0)}}},
                "must have shape [2]");
}

} // namespace

} // namespace ds::kernels::test
