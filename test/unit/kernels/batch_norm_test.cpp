// batch_norm and batch_norm_grad; rms_norm and rms_norm_grad.
#include "test/unit/kernels/Harness.h"

namespace ds::kernels::test {

namespace {

double tolerance(DType dtype) { return dtype == DType::F32 ? 2e-6 : 2e-14; }

const Shape images[] = {{1, 1, 1}, {4, 3}, {130, 7}, {2, 5, 1030}, {3, 17, 5, 7}, {2, 3, 4, 5, 6}};

TEST(BatchNorm, Shapes) {
  for (DType dtype : floatTypes)
    for (const Shape &shape : images) {
      Random random(1);
      SCOPED_TRACE(toString(shape));
      const Shape channels = {shape[1]};
      const double epsilon = tolerance(dtype);
      expectMatchesReference("batch_norm",
                             {random.buffer(dtype, shape, 3), random.buffer(dtype, channels),
                              random.buffer(dtype, channels), Buffer(type(dtype, shape)), Buffer(type(dtype, channels)),
                              Buffer(type(dtype, channels)), Buffer(type(dtype, channels))},
                             {{"epsilon", 1e-5}}, {3, 4, 5, 6}, {epsilon, 8 * epsilon});
    }
}

TEST(BatchNormGrad, Shapes) {
  for (DType dtype : floatTypes)
    for (const Shape &shape : images) {
      Random random(2);
      SCOPED_TRACE(toString(shape));
      const Shape channels = {shape[1]};
      const double epsilon = 10 * tolerance(dtype);
      expectMatchesReference("batch_norm_grad",
                             {random.buffer(dtype, shape), random.buffer(dtype, shape), random.buffer(dtype, channels),
                              random.buffer(dtype, channels, 0.1), random.buffer(dtype, channels),
                              Buffer(type(dtype, shape)), Buffer(type(dtype, channels)), Buffer(type(dtype, channels))},
                             {}, {5, 6, 7}, {epsilon, 8 * epsilon});
    }
}

TEST(BatchNorm, RefusesWrongShapes) {
  const auto with = [](Shape x, Shape gamma, double epsilon) {
    const TensorType image = type(DType::F32, x), vector = type(DType::F32, gamma);
    return Invocation{"batch_norm", {image, vector, vector, image, vector, vector, vector}, {{"epsilon", epsilon}}};
  };
  expectRefused(with({4, 6}, {4}, 1e-5), "must have shape [6]");
  expectRefused(with({4}, {4}, 1e-5), "must have shape [N, C, ...]");
  expectRefused(with({4, 6}, {6}, -1), "must not be negative");
}

const Shape rows[] = {{1, 1}, {0, 5}, {3, 7}, {5, 768}, {65, 40}, {2, 3, 5, 12}, {40, 132}, {3, 1160}, {2, 8200}};

Shape rowsOf(const Shape &x) { return {x.begin(), x.end() - 1}; }

TEST(RmsNorm, Shapes) {
  for (DType dtype : floatTypes)
    for (const Shape &shape : rows) {
      Random random(3);
      SCOPED_TRACE(toString(shape));
      expectMatchesReference("rms_norm",
                             {random.buffer(dtype, shape, 3), random.buffer(dtype, {shape.back()}),
                              Buffer(type(dtype, shape)), Buffer(type(dtype, rowsOf(shape)))},
                             {{"epsilon", 1e-5}}, {2, 3}, {tolerance(dtype), tolerance(dtype)});
    }
}

std::vector<Buffer> gradOperands(Random &random, DType dtype, const Shape &shape) {
  std::vector<Buffer> operands = {random.buffer(dtype, shape),          random.buffer(dtype, shape),
                                  random.buffer(dtype, {shape.back()}), random.buffer(dtype, rowsOf(shape)),
                                  Buffer(type(dtype, shape)),           Buffer(type(dtype, {shape.back()}))};
  return operandsOn(Device::Cpu, "rms_norm_grad", std::move(operands), {});
}

TEST(RmsNormGrad, Shapes) {
  for (DType dtype : floatTypes)
    for (const Shape &shape : rows) {
      Random random(4);
      SCOPED_TRACE(toString(shape));
      const double epsilon = 10 * tolerance(dtype);
      expectMatchesReference("rms_norm_grad", gradOperands(random, dtype, shape), {}, {4, 5}, {epsilon, 8 * epsilon});
    }
}

TEST(RmsNormGrad, RefusesASmallWorkspace) {
  Random random(5);
  Invocation invocation = invocationOf("rms_norm_grad", gradOperands(random, DType::F32, {130, 8}), {});
  invocation.operands[6].shape = {95};
  expectRefused(invocation, "workspace must have 96 bytes, not 95");
}

} // namespace

} // namespace ds::kernels::test
