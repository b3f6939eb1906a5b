// conv, conv_input_grad and conv_weight_grad: products of gathered windows, and the direct loops.
#include "test/unit/kernels/Accelerator.h"

namespace ds::kernels::test {

namespace {

/// A convolution by its shapes; y's follow from `high` pads equal to `low`.
struct Convolution {
  Shape x, w;
  Shape strides, dilations, low;
  int64_t groups = 1;

  Shape y() const {
    Shape shape = {x[0], w[0]};
    for (size_t d = 2; d < x.size(); ++d)
      shape.push_back((x[d] + 2 * low[d - 2] - dilations[d - 2] * (w[d] - 1) - 1) / strides[d - 2] + 1);
    return shape;
  }
  Attributes attributes() const {
    return {{"strides", strides}, {"dilations", dilations}, {"low", low}, {"groups", groups}};
  }
};

const Convolution convolutions[] = {
    {{2, 3, 9}, {4, 3, 3}, {1}, {1}, {1}},
    {{2, 3, 7, 6}, {5, 3, 3, 2}, {1, 1}, {1, 1}, {0, 0}},
    {{2, 3, 21, 20}, {8, 3, 7, 7}, {2, 2}, {1, 1}, {3, 3}},    // a first layer
    {{2, 40, 9, 9}, {36, 40, 3, 3}, {1, 1}, {1, 1}, {1, 1}},   // several blocks of taps
    {{1, 300, 5, 5}, {70, 300, 2, 2}, {1, 1}, {1, 1}, {0, 0}}, // many taps, few places
    {{2, 4, 40, 41}, {4, 4, 3, 3}, {1, 1}, {1, 1}, {1, 1}},    // several blocks of places
    {{3, 33, 6, 5}, {47, 33, 1, 1}, {1, 1}, {1, 1}, {0, 0}},   // pointwise
    {{2, 6, 7, 8}, {9, 6, 1, 1}, {2, 2}, {1, 1}, {0, 0}},      // pointwise with strides
    {{1, 6, 5, 5}, {9, 6, 1, 1}, {2, 2}, {1, 1}, {2, 2}},      // its result is as large as its input
    {{2, 6, 9, 9}, {8, 6, 3, 3}, {2, 3}, {2, 1}, {2, 0}},      // dilations
    {{2, 8, 9, 9}, {10, 4, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 2},  // groups
    {{2, 5, 9, 8}, {10, 1, 3, 3}, {2, 1}, {1, 1}, {1, 1}, 5},  // depthwise
    {{1, 2, 3, 3}, {4, 2, 5, 5}, {1, 1}, {1, 1}, {2, 2}},      // a window larger than the input
    {{2, 3, 4, 5, 6}, {4, 3, 2, 3, 2}, {1, 2, 1}, {1, 1, 2}, {1, 0, 1}},
    {{0, 3, 7, 6}, {5, 3, 3, 2}, {1, 1}, {1, 1}, {0, 0}},
};

/// With a workspace of what is asked for, of the least that packing needs, and of nothing.
void check(const std::string &kernel, std::vector<Buffer> operands, const Attributes &attributes, size_t output,
           double epsilon) {
  const Invocation call = invocationOf(kernel, operands, attributes);
  const int64_t wanted = workspaceBytes(call, {5}), one = workspaceBytes(call, {1});
  for (int64_t bytes : {wanted, one, int64_t(0)}) {
    SCOPED_TRACE(std::to_string(bytes) + " bytes of workspace");
    std::vector<Buffer> all = operands;
    all.emplace_back(type(DType::U8, {bytes}));
    expectMatchesReference(kernel, std::move(all), attributes, {output}, {epsilon, epsilon * 20});
    if (Accelerator::instance() || testing::Test::HasFailure()) // which has a workspace of its own
      return;
  }
}

/// A block of a GPU makes one element of the weight's gradient.
bool isTooLong(const Convolution &c) {
  const Accelerator *accelerator = Accelerator::instance();
  return accelerator && accelerator->isSimulated() && elementCount(c.w) > 5000;
}

double tolerance(DType dtype) { return dtype == DType::F32 ? 2e-5 : 1e-13; }

TEST(Conv, Shapes) {
  for (DType dtype : floatTypes)
    for (const Convolution &c : convolutions)
      for (int64_t bias : {0, 1}) {
        Random random(1);
        SCOPED_TRACE(toString(c.x) + " by " + toString(c.w));
        std::vector<Buffer> operands = {random.buffer(dtype, c.x), random.buffer(dtype, c.w)};
        if (bias)
          operands.push_back(random.buffer(dtype, {c.w[0]}));
        operands.emplace_back(type(dtype, c.y()));
        Attributes attributes = c.attributes();
        attributes["bias"] = bias;
        check("conv", std::move(operands), attributes, size_t(2 + bias), tolerance(dtype));
      }
}

TEST(ConvInputGrad, Shapes) {
  for (DType dtype : floatTypes)
    for (const Convolution &c : convolutions) {
      Random random(2);
      SCOPED_TRACE(toString(c.x) + " by " + toString(c.w));
      check("conv_input_grad", {random.buffer(dtype, c.y()), random.buffer(dtype, c.w), Buffer(type(dtype, c.x))},
            c.attributes(), 2, tolerance(dtype));
    }
}

TEST(ConvWeightGrad, Shapes) {
  for (DType dtype : floatTypes)
    for (const Convolution &c : convolutions) {
      if (isTooLong(c))
        continue;
      Random random(3);
      SCOPED_TRACE(toString(c.x) + " by " + toString(c.w));
      check("conv_weight_grad", {random.buffer(dtype, c.y()), random.buffer(dtype, c.x), Buffer(type(dtype, c.w))},
            c.attributes(), 2, 4 * tolerance(dtype));
    }
}

/// 1, 2, 3 under a window of two, with a zero on either side: sums that one can check by eye.
TEST(Conv, ByHand) {
  std::vector<Buffer> operands = {Buffer(type(DType::F32, {1, 1, 3}), std::vector<float>{1, 2, 3}),
                                  Buffer(type(DType::F32, {1, 1, 2}), std::vector<float>{10, 1}),
                                  Buffer(type(DType::F32, {1, 1, 4})), Buffer(type(DType::U8, {0}))};
  const Invocation invocation = invocationOf("conv", operands,
                                             {{"strides", Shape{1}},
                                              {"dilations", Shape{1}},
                                              {"low", Shape{1}},
                                              {"groups", int64_t(1)},
                                              {"bias", int64_t(0)}});
  ASSERT_TRUE(runKernel(cpuKernels(), invocation, operands).ok());
  const float expected[] = {1, 12, 23, 30};
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(operands[2].as<float>()[i], expected[i]);
}

TEST(Conv, RefusesWhatIsNoConvolution) {
  const auto with = [](Shape x, Shape w, Shape y, Shape strides, int64_t groups) {
    return Invocation{"conv",
                      {type(DType::F32, x), type(DType::F32, w), type(DType::F32, y), type(DType::U8, {0})},
                      {{"strides", strides},
                       {"dilations", Shape{1, 1}},
                       {"low", Shape{0, 0}},
                       {"groups", groups},
                       {"bias", int64_t(0)}}};
  };
  expectRefused(with({1, 4, 5, 5}, {6, 4, 3}, {1, 6, 3, 3}, {1, 1}, 1), "must have one rank");
  expectRefused(with({1, 4, 5, 5}, {6, 3, 3, 3}, {1, 6, 3, 3}, {1, 1}, 1), "are no convolution");
  expectRefused(with({1, 4, 5, 5}, {6, 2, 3, 3}, {1, 6, 3, 3}, {1, 1}, 0), "are no convolution");
  expectRefused(with({1, 4, 5, 5}, {6, 4, 3, 3}, {1, 6, 3, 3}, {0, 1}, 1), "'strides' must be in [1, 2^24], not 0");
  expectRefused(with({1, 4, 5, 5}, {6, 4, 3, 3}, {1, 6, 3, 3}, {1}, 1), "'strides' must have 2 entries, not 1");
}

} // namespace

} // namespace ds::kernels::test
