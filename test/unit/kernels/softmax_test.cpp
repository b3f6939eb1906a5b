// softmax, log_softmax and their gradients.
#include "test/unit/kernels/Harness.h"

#include <limits>

namespace ds::kernels::test {

namespace {

const Shape shapes[] = {{1},      {0},       {5},         {3, 0},     {0, 3},           {3, 7},
                        {2, 257}, {2, 3, 4}, {3, 5, 130}, {2, 50257}, {2, 2, 1, 3, 65}, {40, 256}};

Tolerance toleranceOf(DType dtype) { return dtype == DType::F32 ? Tolerance{2e-6, 2e-6} : Tolerance{2e-14, 2e-14}; }

TEST(Softmax, EveryAxis) {
  for (const char *kernel : {"softmax", "log_softmax"})
    for (DType dtype : floatTypes)
      for (const Shape &shape : shapes)
        for (int64_t axis = -1; axis < int64_t(shape.size()); ++axis) {
          Random random{uint64_t(axis + 1)};
          SCOPED_TRACE(std::string(kernel) + toString(shape) + " axis " + std::to_string(axis));
          expectMatchesReference(kernel, {random.buffer(dtype, shape, 4), Buffer(type(dtype, shape))}, {{"axis", axis}},
                                 {1}, toleranceOf(dtype));
        }
}

TEST(SoftmaxGrad, EveryAxis) {
  for (const char *kernel : {"softmax_grad", "log_softmax_grad"})
    for (DType dtype : floatTypes)
      for (const Shape &shape : shapes)
        for (int64_t axis = 0; axis < int64_t(shape.size()); ++axis) {
          Random random{uint64_t(axis + 1)};
          SCOPED_TRACE(std::string(kernel) + toString(shape) + " axis " + std::to_string(axis));
          Tolerance tolerance = toleranceOf(dtype);
          tolerance.absolute *= 500; // exp(y) times a sum over up to 50257 elements
          expectMatchesReference(kernel,
                                 {random.buffer(dtype, shape), random.buffer(dtype, shape), Buffer(type(dtype, shape))},
                                 {{"axis", axis}}, {2}, tolerance);
        }
}

TEST(Softmax, MaskedRows) {
  const float inf = std::numeric_limits<float>::infinity(), low = std::numeric_limits<float>::lowest();
  for (const char *kernel : {"softmax", "log_softmax"}) {
    const Buffer x(type(DType::F32, {4, 4}), std::vector<float>{1, -inf, 2, -inf, low, low, 3, low, //
                                                                low, low, low, low, -inf, -inf, -inf, -inf});
    // The last row is NaN, as torch.softmax gives it.
    expectMatchesReference(kernel, {x, Buffer(type(DType::F32, {4, 4}))}, {{"axis", int64_t(1)}}, {1}, {1e-6, 1e-6});
    expectMatchesReference(kernel, {x, Buffer(type(DType::F32, {4, 4}))}, {{"axis", int64_t(0)}}, {1}, {1e-6, 1e-6});
  }
}

TEST(Softmax, RefusesWrongCalls) {
  const auto with = [](DType dtype, Shape y, int64_t axis) {
    return Invocation{"softmax", {type(dtype, {2, 3}), type(dtype, std::move(y))}, {{"axis", axis}}};
  };
  expectRefused(with(DType::I32, {2, 3}, 0), "must be float32, float64, bfloat16 or float16");
  expectRefused(with(DType::F32, {3, 2}, 0), "must have shape [2, 3]");
  expectRefused(with(DType::F32, {2, 3}, -3), "axis -3 is out of range");
}

} // namespace

} // namespace ds::kernels::test
