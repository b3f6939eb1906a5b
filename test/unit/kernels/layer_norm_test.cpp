// layer_norm and layer_norm_grad.
#include "test/unit/kernels/Harness.h"

#include <cstring>
#include <numeric>

namespace ds::kernels::test {

namespace {

// The last four are packs on a GPU: few, a tail of one, a part of the last round, and more than a block keeps.
const Shape shapes[] = {{1, 1},     {0, 5},        {3, 7}, {5, 768},  {64, 33},  {65, 40},
                        {200, 130}, {2, 3, 5, 12}, {3, 8}, {40, 132}, {3, 1160}, {2, 8200}};

Shape rowsOf(const Shape &x) { return {x.begin(), x.end() - 1}; }

TEST(LayerNorm, Shapes) {
  for (DType dtype : floatTypes)
    for (const Shape &shape : shapes) {
      Random random(1);
      SCOPED_TRACE(toString(shape));
      const double epsilon = dtype == DType::F32 ? 2e-6 : 2e-14;
      expectMatchesReference("layer_norm",
                             {random.buffer(dtype, shape, 3), random.buffer(dtype, {shape.back()}),
                              random.buffer(dtype, {shape.back()}), Buffer(type(dtype, shape)),
                              Buffer(type(dtype, rowsOf(shape))), Buffer(type(dtype, rowsOf(shape)))},
                             {{"epsilon", 1e-5}}, {3, 4, 5}, {epsilon, 4 * epsilon});
    }
}

/// A norm by one of the CPU's registries; what its operands hold then.
std::vector<Buffer> normOf(const KernelRegistry &kernels, const std::string &kernel, const Attributes &attributes,
                           std::vector<Buffer> operands) {
  EXPECT_TRUE(runKernel(kernels, invocationOf(kernel, operands, attributes), operands).ok());
  return operands;
}

TEST(LayerNorm, IsOfASumAsItIsRounded) {
  const Shape x = {5, 33}, rows = {5};
  for (const DType half : {DType::BF16, DType::F16})
    for (const std::string kernel : {"layer_norm", "rms_norm"})
      for (const KernelRegistry *kernels : {&cpuKernels(), &cpuReferenceKernels()}) {
        Random random(4);
        std::vector<Buffer> fused = {random.buffer(half, x)};
        const size_t scales = kernel == "layer_norm" ? 2 : 1; // and as many statistics
        for (size_t i = 0; i < scales; ++i)
          fused.push_back(random.buffer(DType::F32, {33}));
        std::vector<Buffer> plain = fused;
        fused.push_back(random.buffer(DType::F32, x));
        for (std::vector<Buffer> *operands : {&fused, &plain}) {
          operands->emplace_back(type(half, x));
          operands->insert(operands->end(), scales, Buffer(type(DType::F32, rows)));
        }
        fused.emplace_back(type(DType::F32, x));
        fused.emplace_back(type(half, x));
        fused = normOf(*kernels, kernel, {{"epsilon", 1e-5}, {"residual", int64_t(1)}, {"rounded", int64_t(1)}}, fused);
        plain[0] = fused.back();
        plain = normOf(*kernels, kernel, {{"epsilon", 1e-5}}, plain);
        const Buffer &y = fused[scales + 2], &expected = plain[scales + 1];
        for (int64_t e = 0; e < elementCount(x); ++e)
          ASSERT_EQ(y.at(e), expected.at(e)) << kernel << " " << name(half) << " at " << e;
      }
}

std::vector<Buffer> gradOperands(Random &random, DType dtype, const Shape &shape) {
  const Shape cols = {shape.back()};
  std::vector<Buffer> operands = {random.buffer(dtype, shape),         random.buffer(dtype, shape),
                                  random.buffer(dtype, cols),          random.buffer(dtype, rowsOf(shape), 0.1),
                                  random.buffer(dtype, rowsOf(shape)), Buffer(type(dtype, shape)),
                                  Buffer(type(dtype, cols)),           Buffer(type(dtype, cols))};
  return operandsOn(Device::Cpu, "layer_norm_grad", std::move(operands), {});
}

TEST(LayerNormGrad, Shapes) {
  for (DType dtype : floatTypes)
    for (const Shape &shape : shapes) {
      Random random(2);
      SCOPED_TRACE(toString(shape));
      const double epsilon = dtype == DType::F32 ? 1e-5 : 1e-13;
      expectMatchesReference("layer_norm_grad", gradOperands(random, dtype, shape), {}, {5, 6, 7},
                             {epsilon, 4 * epsilon});
    }
}

/// The operands of a norm's gradient with a residual, those of dx and behind it being `results`.
std::vector<Buffer> withResidual(Random &random, const std::string &kernel, DType dtype, const Shape &shape) {
  const Shape cols = {shape.back()};
  const Buffer row = random.buffer(dtype, rowsOf(shape)), gamma(type(dtype, cols));
  std::vector<Buffer> operands = {random.buffer(dtype, shape), random.buffer(dtype, shape), random.buffer(dtype, cols)};
  operands.insert(operands.end(), kernel == "layer_norm_grad" ? 2 : 1, row);
  operands.push_back(random.buffer(dtype, shape));
  operands.push_back(Buffer(type(dtype, shape)));
  operands.insert(operands.end(), kernel == "layer_norm_grad" ? 2 : 1, gamma);
  return operandsOn(Device::Cpu, kernel, std::move(operands), {{"residual", int64_t(1)}});
}

TEST(NormGrad, AddsAResidual) {
  for (const std::string kernel : {"layer_norm_grad", "rms_norm_grad"})
    for (DType dtype : floatTypes)
      for (const Shape &shape : shapes) {
        Random random(4);
        SCOPED_TRACE(kernel + " " + toString(shape));
        const double epsilon = dtype == DType::F32 ? 1e-5 : 1e-13;
        std::vector<size_t> results = {5, 6};
        if (kernel == "layer_norm_grad")
          results = {6, 7, 8};
        expectMatchesReference(kernel, withResidual(random, kernel, dtype, shape), {{"residual", int64_t(1)}}, results,
                               {epsilon, 4 * epsilon});
      }
}

TEST(Norm, OfASumHasTheBitsOfTheNormBehindIt) {
  for (const std::string kernel : {"layer_norm", "rms_norm"})
    for (DType dtype : floatTypes)
      for (const Shape &shape : shapes) {
        Random random(5);
        SCOPED_TRACE(kernel + " " + toString(shape));
        const double epsilon = dtype == DType::F32 ? 2e-6 : 2e-14;
        const size_t parameters = kernel == "layer_norm" ? 2 : 1;
        const Buffer x = random.buffer(dtype, shape, 3), residual = random.buffer(dtype, shape, 3);
        std::vector<Buffer> operands = {x}, results = {Buffer(type(dtype, shape))};
        for (size_t k = 0; k < parameters; ++k) {
          operands.push_back(random.buffer(dtype, {shape.back()}));
          results.emplace_back(type(dtype, rowsOf(shape)));
        }
        std::vector<Buffer> ofSum = operands, plain = operands;
        ofSum.push_back(residual);
        ofSum.insert(ofSum.end(), results.begin(), results.end());
        ofSum.emplace_back(type(dtype, shape));
        const size_t y = parameters + 2, sum = ofSum.size() - 1;
        std::vector<size_t> written(sum - y + 1);
        std::iota(written.begin(), written.end(), y);
        const std::vector<Buffer> both = expectMatchesReference(
            kernel, ofSum, {{"epsilon", 1e-5}, {"residual", int64_t(1)}}, written, {epsilon, 8 * epsilon});
        for (int64_t i = 0; i < elementCount(shape); ++i)
          ASSERT_EQ(both[sum].at(i),
                    dtype == DType::F32 ? float(x.at(i)) + float(residual.at(i)) : x.at(i) + residual.at(i));
        plain[0] = both[sum];
        plain.insert(plain.end(), results.begin(), results.end());
        written.pop_back();
        for (size_t &operand : written)
          --operand;
        const std::vector<Buffer> behind =
            expectMatchesReference(kernel, plain, {{"epsilon", 1e-5}}, written, {epsilon, 8 * epsilon});
        for (size_t operand : written)
          EXPECT_EQ(std::memcmp(behind[operand].data(), both[operand + 1].data(), behind[operand].bytes()), 0);
      }
}

TEST(LayerNormGrad, RefusesASmallWorkspace) {
  Random random(3);
  Invocation invocation = invocationOf("layer_norm_grad", gradOperands(random, DType::F32, {130, 8}), {});
  invocation.operands[8].shape = {191};
  expectRefused(invocation, "workspace must have 192 bytes, not 191");
}

TEST(LayerNorm, RefusesWrongShapes) {
  const auto with = [](Shape gamma, Shape mean, double epsilon) {
    const TensorType x = type(DType::F32, {4, 6});
    return Invocation{
        "layer_norm",
        {x, type(DType::F32, gamma), type(DType::F32, gamma), x, type(DType::F32, mean), type(DType::F32, mean)},
        {{"epsilon", epsilon}}};
  };
  expectRefused(with({4}, {4}, 1e-5), "must have shape [6]");
  expectRefused(with({6}, {6}, 1e-5), "must have 4 elements, one a row");
  expectRefused(with({6}, {4}, -1), "must not be negative");
}

} // namespace

} // namespace ds::kernels::test
