// max_pool, average_pool and their gradients.
#include "test/unit/kernels/Harness.h"

#include <cmath>

namespace ds::kernels::test {

namespace {

struct Pooling {
  Shape x, y, window, strides, dilations, low;

  Attributes attributes() const {
    return {{"window", window}, {"strides", strides}, {"dilations", dilations}, {"low", low}};
  }
};

const Pooling poolings[] = {
    {{2, 3, 9}, {2, 3, 7}, {3}, {1}, {1}, {0}},
    {{2, 3, 20, 21}, {2, 3, 10, 11}, {3, 3}, {2, 2}, {1, 1}, {1, 1}},
    {{1, 2, 33, 40}, {1, 2, 33, 40}, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, // windows reach out on both sides
    {{2, 2, 7, 8}, {2, 2, 3, 4}, {2, 3}, {2, 2}, {3, 1}, {1, 0}},
    {{1, 2, 4, 5, 6}, {1, 2, 2, 2, 3}, {2, 3, 2}, {2, 2, 2}, {1, 1, 1}, {0, 0, 0}},
    {{0, 2, 7, 8}, {0, 2, 6, 7}, {2, 2}, {1, 1}, {1, 1}, {0, 0}},
};

double tolerance(DType dtype) { return dtype == DType::F32 ? 1e-6 : 1e-14; }

TEST(Pool, Shapes) {
  for (DType dtype : floatTypes)
    for (const Pooling &p : poolings)
      for (const char *kernel : {"max_pool", "average_pool"}) {
        Random random(1);
        SCOPED_TRACE(std::string(kernel) + " " + toString(p.x));
        const double epsilon = tolerance(dtype);
        expectMatchesReference(kernel, {random.buffer(dtype, p.x), Buffer(type(dtype, p.y))}, p.attributes(), {1},
                               {epsilon, epsilon});
      }
}

TEST(MaxPoolGrad, Shapes) {
  for (DType dtype : floatTypes)
    for (const Pooling &p : poolings) {
      Random random(2);
      SCOPED_TRACE(toString(p.x));
      expectMatchesReference("max_pool_grad",
                             {random.buffer(dtype, p.y), random.buffer(dtype, p.x), Buffer(type(dtype, p.x))},
                             p.attributes(), {2}, {0, 0});
    }
}

TEST(AveragePoolGrad, Shapes) {
  for (DType dtype : floatTypes)
    for (const Pooling &p : poolings) {
      Random random(3);
      SCOPED_TRACE(toString(p.x));
      expectMatchesReference("average_pool_grad", {random.buffer(dtype, p.y), Buffer(type(dtype, p.x))}, p.attributes(),
                             {1}, {4 * tolerance(dtype), 4 * tolerance(dtype)});
    }
}

const Attributes pairs = {{"window", Shape{2}}, {"strides", Shape{2}}, {"dilations", Shape{1}}, {"low", Shape{0}}};

TEST(MaxPoolGrad, GoesToTheFirstOfEqualMaxima) {
  std::vector<Buffer> operands = {Buffer(type(DType::F32, {1, 1, 2}), std::vector<float>{5, 7}),
                                  Buffer(type(DType::F32, {1, 1, 4}), std::vector<float>{3, 3, 1, 2}),
                                  Buffer(type(DType::F32, {1, 1, 4}))};
  for (const KernelRegistry *registry : {&cpuKernels(), &cpuReferenceKernels()}) {
    ASSERT_TRUE(runKernel(*registry, invocationOf("max_pool_grad", operands, pairs), operands).ok());
    const float expected[] = {5, 0, 0, 7};
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(operands[2].as<float>()[i], expected[i]);
  }
}

TEST(MaxPool, KeepsNan) {
  const float nan = std::nanf("");
  std::vector<Buffer> operands = {Buffer(type(DType::F32, {1, 1, 4}), std::vector<float>{nan, 3, 4, nan}),
                                  Buffer(type(DType::F32, {1, 1, 2}))};
  for (const KernelRegistry *registry : {&cpuKernels(), &cpuReferenceKernels()}) {
    ASSERT_TRUE(runKernel(*registry, invocationOf("max_pool", operands, pairs), operands).ok());
    EXPECT_TRUE(std::isnan(operands[1].as<float>()[0]) && std::isnan(operands[1].as<float>()[1]));
  }
}

TEST(Pool, RefusesWrongShapes) {
  const auto with = [](Shape x, Shape y, Shape window) {
    Attributes attributes = pairs;
    attributes["window"] = window;
    return Invocation{"max_pool", {type(DType::F32, x), type(DType::F32, y)}, attributes};
  };
  expectRefused(with({1, 2, 4}, {1, 3, 2}, {2}), "must have shape [1, 2, out...]");
  expectRefused(with({1, 2}, {1, 2}, {2}), "must have one rank");
  expectRefused(with({1, 2, 4}, {1, 2, 2}, {0}), "'window' must not hold 0");
  expectRefused(with({1, 2, 4}, {1, 2, 2}, {2, 2}), "must have the input's spatial dimensions");
}

} // namespace

} // namespace ds::kernels::test
