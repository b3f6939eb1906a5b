// reduce_sum, reduce_mean, reduce_max.
#include "test/unit/kernels/Harness.h"

#include <cmath>
#include <limits>

namespace ds::kernels::test {

namespace {

Shape reducedShape(const Shape &x, unsigned axes, bool keep) {
  Shape y;
  for (size_t d = 0; d < x.size(); ++d)
    if (!(axes >> d & 1))
      y.push_back(x[d]);
    else if (keep)
      y.push_back(1);
  return y;
}

std::vector<int64_t> axesOf(unsigned bits) {
  std::vector<int64_t> axes;
  for (int64_t d = 0; bits >> d; ++d)
    if (bits >> d & 1)
      axes.push_back(d);
  return axes;
}

void check(const std::string &kernel, DType dtype, const Shape &shape, unsigned axes, bool keep) {
  Random random(shape.size() * 100 + axes);
  SCOPED_TRACE(kernel + toString(shape) + " over " + toString(axesOf(axes)));
  const double epsilon = kernel == "reduce_max" ? 0 : dtype == DType::F32 ? 6e-8 : 1.2e-16;
  const double terms = double(elementCount(shape)) + 1;
  expectMatchesReference(kernel, {random.buffer(dtype, shape), Buffer(type(dtype, reducedShape(shape, axes, keep)))},
                         {{"axes", axesOf(axes)}}, {1}, {4 * epsilon, 8 * epsilon * std::sqrt(terms)}); // in any order
}

TEST(Reduce, EveryChoiceOfAxes) {
  for (const char *kernel : {"reduce_sum", "reduce_mean", "reduce_max"})
    for (DType dtype : floatTypes)
      for (const Shape &shape : {Shape{}, Shape{1}, Shape{5}, Shape{3, 1100}, Shape{1100, 3}, Shape{4, 1, 130},
                                 Shape{3, 17, 20}, Shape{2, 3, 4, 5}, Shape{2, 3, 2, 3, 2}, Shape{33, 300}})
        for (unsigned axes = 0; axes < 1u << shape.size(); ++axes)
          check(kernel, dtype, shape, axes, axes % 2);
}

TEST(Reduce, Integers) {
  for (const char *kernel : {"reduce_sum", "reduce_max"})
    for (DType dtype : {DType::I32, DType::I64})
      for (const Shape &shape : {Shape{}, Shape{5}, Shape{3, 1100}, Shape{4, 1, 130}, Shape{2, 3, 4, 5}})
        for (unsigned axes = 0; axes < 1u << shape.size(); ++axes)
          check(kernel, dtype, shape, axes, axes % 2);
  check("reduce_sum", DType::I64, {3, 0}, 2, false);
}

TEST(Reduce, LongRuns) {
  for (const char *kernel : {"reduce_sum", "reduce_mean", "reduce_max"})
    for (DType dtype : floatTypes) {
      check(kernel, dtype, {200000}, 1, false);
      check(kernel, dtype, {3, 70000}, 2, false);
      check(kernel, dtype, {2000, 200}, 1, true);
      check(kernel, dtype, {64, 4, 1024}, 5, true);
    }
}

TEST(Reduce, Nothing) {
  for (const char *kernel : {"reduce_sum", "reduce_mean"}) {
    check(kernel, DType::F32, {0}, 1, false); // 0 and NaN
    check(kernel, DType::F64, {3, 0}, 2, false);
    check(kernel, DType::F64, {3, 0}, 1, false);
    check(kernel, DType::F32, {0, 4, 0}, 5, true);
  }
  check("reduce_max", DType::F32, {3, 0}, 1, false);
}

TEST(Reduce, NanWinsTheMaximum) {
  for (const Shape &shape : {Shape{100}, Shape{50, 2}}) {
    Random random(1);
    Buffer x = random.buffer(DType::F32, shape);
    x.as<float>()[40] = std::nanf("");
    x.as<float>()[42] = std::numeric_limits<float>::infinity();
    expectMatchesReference("reduce_max", {x, Buffer(type(DType::F32, shape.size() == 1 ? Shape{} : Shape{2}))},
                           {{"axes", std::vector<int64_t>{0}}}, {1}, {});
  }
}

TEST(Reduce, RefusesWrongAxes) {
  const auto with = [](const char *kernel, Shape x, Shape y, std::vector<int64_t> axes) {
    return Invocation{
        kernel, {type(DType::F32, std::move(x)), type(DType::F32, std::move(y))}, {{"axes", std::move(axes)}}};
  };
  expectRefused(with("reduce_sum", {2, 3}, {2}, {2}), "axis 2 is out of range");
  expectRefused(with("reduce_sum", {2, 3}, {2}, {1, 1}), "names axis 1 twice");
  expectRefused(with("reduce_sum", {2, 3}, {2}, {1, -1}), "names axis 1 twice");
  expectRefused(with("reduce_mean", {2, 3}, {3}, {1}), "must have shape [2] or [2, 1]");
  expectRefused({"reduce_mean", {type(DType::I64, {3}), type(DType::I64, {})}, {{"axes", std::vector<int64_t>{0}}}},
                "must be float32, float64, bfloat16 or float16");
  expectRefused(with("reduce_max", {2, 0}, {2}, {1}), "largest of no elements");
}

} // namespace

} // namespace ds::kernels::test
