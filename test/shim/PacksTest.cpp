// Kernels that move 16 bytes at once run where operands are not at multiples of 16 bytes, too.
#include "kernels/Numbers.h"
#include "kernels/cuda/CudaKernels.h"
#include "test/shim/Machine.h"
#include "test/shim/ShimAccelerator.h"

#include <cmath>
#include <cstring>

namespace ds::kernels::test {

namespace {

/// The operands behind a call whose operands, or the `only` one, begin `shift` elements behind a multiple of 256 bytes.
std::vector<Buffer> ranAt(size_t shift, const std::string &kernel, std::vector<Buffer> operands,
                          const Attributes &attributes, std::optional<size_t> only = {}) {
  ShimAccelerator accelerator(cudaKernels(), shift, only);
  operands = operandsOn(Device::Cuda, kernel, std::move(operands), attributes);
  const Status status = accelerator.run(invocationOf(kernel, operands, attributes), operands, {}, {});
  EXPECT_TRUE(status.ok()) << status.message();
  return operands;
}

/// One element behind, the outputs are the same within rounding, and those `sameBits` bit by bit.
void check(const std::string &kernel, const std::vector<Buffer> &operands, const Attributes &attributes,
           const std::vector<size_t> &outputs, const std::vector<size_t> &sameBits) {
  SCOPED_TRACE(kernel);
  const std::vector<Buffer> want = ranAt(0, kernel, operands, attributes),
                            have = ranAt(1, kernel, operands, attributes);
  for (size_t output : outputs)
    for (int64_t i = 0; i < elementCount(want[output].type.shape); ++i)
      ASSERT_NEAR(have[output].at(i), want[output].at(i), 1e-5 + 0x1p-7 * std::fabs(want[output].at(i)))
          << "operand " << output << " at " << i;
  for (size_t output : sameBits)
    EXPECT_EQ(std::memcmp(have[output].data(), want[output].data(), want[output].bytes()), 0) << "operand " << output;
}

TEST(Packs, NormsWithoutThem) {
  for (DType dtype : {DType::BF16, DType::F16, DType::F32, DType::F64}) {
    const DType sums = dtype == DType::F64 ? DType::F64 : DType::F32;
    Random random{1};
    const Shape shape{35, 264}, rows{35}, cols{264};
    const Buffer x = random.buffer(dtype, shape), dy = random.buffer(dtype, shape), y(type(dtype, shape));
    const Buffer gamma = random.buffer(sums, cols), beta = random.buffer(sums, cols), row(type(sums, rows));
    const Buffer mean = random.buffer(sums, rows, 0.1), scale = random.buffer(sums, rows);
    const Attributes epsilon = {{"epsilon", 1e-5}};
    check("layer_norm", {x, gamma, beta, y, row, row}, epsilon, {3, 4, 5}, {});
    check("rms_norm", {x, gamma, y, row}, epsilon, {2, 3}, {});
    check("layer_norm_grad", {dy, x, gamma, mean, scale, y, gamma, gamma}, {}, {5, 6, 7}, {6, 7});
    check("rms_norm_grad", {dy, x, gamma, scale, y, gamma}, {}, {4, 5}, {5});
    const Attributes residual = {{"residual", int64_t(1)}};
    const Attributes ofSum = {{"epsilon", 1e-5}, {"residual", int64_t(1)}, {"rounded", int64_t(1)}};
    const Buffer r = random.buffer(sums, shape), sum(type(sums, shape));
    check("layer_norm", {x, gamma, beta, r, y, row, row, sum, y}, ofSum, {4, 5, 6, 7, 8}, {7, 8});
    check("rms_norm", {x, gamma, r, y, row, sum, y}, ofSum, {3, 4, 5, 6}, {5, 6});
    check("layer_norm_grad", {dy, x, gamma, mean, scale, x, y, gamma, gamma}, residual, {6, 7, 8}, {7, 8});
    check("rms_norm_grad", {dy, x, gamma, scale, x, y, gamma}, residual, {5, 6}, {6});
  }
}

TEST(Packs, ProductsWithoutThem) {
  Random random{4};
  for (DType dtype : {DType::BF16, DType::F16, DType::F32}) {
    const Buffer a = random.buffer(dtype, {16, 24}), b = random.buffer(dtype, {24, 32}),
                 bias = random.buffer(dtype, {32});
    const Buffer dy = random.buffer(dtype, {16, 32}), dw(type(dtype, {24, 32})), db(type(dtype, {32}));
    const double near = isNarrowFloat(dtype) ? 0.01 : 1e-4; // behind a product GELU is of what was rounded
    const auto everyOne = [near](const std::string &kernel, const std::vector<Buffer> &operands,
                                 const Attributes &attributes, const std::vector<size_t> &outputs) {
      const std::vector<Buffer> want = ranAt(0, kernel, operands, attributes);
      for (size_t only = 0; only < operands.size(); ++only) {
        const std::vector<Buffer> have = ranAt(1, kernel, operands, attributes, only);
        for (size_t output : outputs)
          for (int64_t i = 0; i < elementCount(want[output].type.shape); ++i)
            ASSERT_NEAR(have[output].at(i), want[output].at(i), near + 0x1p-6 * std::fabs(want[output].at(i)))
                << kernel << ", operand " << only << " shifted: operand " << output << " at " << i;
      }
    };
    const Buffer c(type(dtype, {16, 32}));
    const Attributes plain = {
        {"trans_a", int64_t(0)}, {"trans_b", int64_t(0)}, {"bias", int64_t(1)}, {"pieces", int64_t(1)}};
    everyOne("matmul", {a, b, bias, c}, plain, {3});
    Attributes gelu = plain;
    gelu["epilogue"] = std::string("gelu_tanh");
    everyOne("matmul", {a, b, bias, c, c}, gelu, {3, 4});
    everyOne("linear_weight_grad", {dy, a, dw, db}, {{"transposed", int64_t(0)}, {"pieces", int64_t(1)}}, {2, 3});
  }
}

TEST(AdamW, ABlockUpdatesManyPacks) { // for two powers in float64, which the others of its threads wait for
  const int64_t elements = 3 * 1056 * 1024 + 5;
  const Buffer tensor(type(DType::F32, {elements})), step(type(DType::I64, {}), std::vector<int64_t>{7});
  Buffer scalar(type(DType::F64, {}));
  *scalar.as<double>() = 1;
  const Attributes attributes = {
      {"beta1", 0.9}, {"beta2", 0.999}, {"epsilon", 1e-8}, {"weight_decay", 0.1}, {"adam_w_mode", int64_t(1)}};
  const int64_t before = shim::counts().blocks;
  ranAt(0, "adamw", {tensor, tensor, tensor, tensor, scalar, step, scalar}, attributes);
  EXPECT_EQ(shim::counts().blocks - before, 1056);
}

TEST(NormGrad, OneLaunchReadsTheRows) { // and one adds up the sums of its blocks
  for (const bool centered : {true, false}) {
    const Buffer x(type(DType::F32, {128, 768})), row(type(DType::F32, {128})), gamma(type(DType::F32, {768}));
    const int64_t before = shim::counts().launches;
    if (centered)
      ranAt(0, "layer_norm_grad", {x, x, gamma, row, row, x, gamma, gamma}, {});
    else
      ranAt(0, "rms_norm_grad", {x, x, gamma, row, x, gamma}, {});
    EXPECT_EQ(shim::counts().launches - before, 2);
  }
}

/// a + b in `dtype`.
double sumIn(DType dtype, double a, double b) {
  if (isNarrowFloat(dtype))
    return withNarrowFloat(dtype, [&](auto zero) { return float(decltype(zero)(float(a) + float(b))); });
  return dtype == DType::F64 ? a + b : float(a) + float(b);
}

TEST(NormGrad, AResidualHasTheBitsOfASumBehind) {
  for (DType dtype : {DType::BF16, DType::F16, DType::F32, DType::F64}) {
    const DType sums = dtype == DType::F64 ? DType::F64 : DType::F32;
    Random random{3};
    const Shape shape{35, 264}, rows{35}, cols{264};
    const Buffer x = random.buffer(dtype, shape), dy = random.buffer(dtype, shape), r = random.buffer(dtype, shape);
    const Buffer gamma = random.buffer(sums, cols), mean = random.buffer(sums, rows, 0.1);
    const Buffer scale = random.buffer(sums, rows), y(type(dtype, shape));
    const Attributes residual = {{"residual", int64_t(1)}};
    const Buffer layer = ranAt(0, "layer_norm_grad", {dy, x, gamma, mean, scale, y, gamma, gamma}, {})[5];
    const Buffer rms = ranAt(0, "rms_norm_grad", {dy, x, gamma, scale, y, gamma}, {})[4];
    const Buffer layerAdded = ranAt(0, "layer_norm_grad", {dy, x, gamma, mean, scale, r, y, gamma, gamma}, residual)[6];
    const Buffer rmsAdded = ranAt(0, "rms_norm_grad", {dy, x, gamma, scale, r, y, gamma}, residual)[5];
    for (int64_t i = 0; i < elementCount(shape); ++i) {
      ASSERT_EQ(layerAdded.at(i), sumIn(dtype, layer.at(i), r.at(i))) << i;
      ASSERT_EQ(rmsAdded.at(i), sumIn(dtype, rms.at(i), r.at(i))) << i;
    }
  }
}

/// `x` as `dtype` holds it.
double roundedTo(DType dtype, double x) { return sumIn(dtype, x, 0); }

TEST(Norm, OfASumHasTheBitsOfTheNormBehindIt) { // in packs that are kept, read again, and one by one
  for (DType dtype : {DType::BF16, DType::F16, DType::F32, DType::F64})
    for (const auto &[cols, shift] : {std::pair<int64_t, size_t>{264, 0}, {16400, 0}, {264, 1}, {33, 0}}) {
      const DType sums = dtype == DType::F64 ? DType::F64 : DType::F32;
      Random random{6};
      const Buffer x = random.buffer(dtype, {5, cols}), y(type(dtype, {5, cols}));
      const Buffer r = random.buffer(sums, {5, cols}), sum(type(sums, {5, cols})), row(type(sums, {5}));
      const Buffer gamma = random.buffer(sums, {cols}), beta = random.buffer(sums, {cols});
      const Attributes plain = {{"epsilon", 1e-5}};
      const Attributes ofSum = {{"epsilon", 1e-5}, {"residual", int64_t(1)}, {"rounded", int64_t(1)}};
      const std::vector<Buffer> layer = ranAt(shift, "layer_norm", {x, gamma, beta, r, y, row, row, sum, y}, ofSum);
      const std::vector<Buffer> rms = ranAt(shift, "rms_norm", {x, gamma, r, y, row, sum, y}, ofSum);
      for (int64_t i = 0; i < 5 * cols; ++i) {
        ASSERT_EQ(layer[7].at(i), sumIn(sums, x.at(i), r.at(i))) << i;
        ASSERT_EQ(layer[8].at(i), roundedTo(dtype, layer[7].at(i))) << i;
      }
      const auto expectSame = [](const Buffer &have, const Buffer &want) {
        EXPECT_EQ(std::memcmp(have.data(), want.data(), want.bytes()), 0);
      };
      expectSame(rms[5], layer[7]);
      expectSame(rms[6], layer[8]);
      const std::vector<Buffer> layerBehind = ranAt(shift, "layer_norm", {layer[8], gamma, beta, y, row, row}, plain);
      const std::vector<Buffer> rmsBehind = ranAt(shift, "rms_norm", {layer[8], gamma, y, row}, plain);
      for (size_t result : {3, 4, 5})
        expectSame(layer[result + 1], layerBehind[result]);
      for (size_t result : {2, 3})
        expectSame(rms[result + 1], rmsBehind[result]);
    }
}

TEST(Packs, CrossEntropyWithoutThem) {
  for (DType dtype : {DType::BF16, DType::F16, DType::F32, DType::F64}) {
    const DType sums = dtype == DType::F64 ? DType::F64 : DType::F32;
    Random random{2};
    Buffer dloss(type(sums, {}));
    sums == DType::F32 ? void(*dloss.as<float>() = 0.7f) : void(*dloss.as<double>() = 0.7);
    const Buffer logits = random.buffer(dtype, {4, 1160}), scalar(type(sums, {})), row(type(sums, {4}));
    const Buffer labels(type(DType::I64, {4}), std::vector<int64_t>{0, 1156, -100, 1151});
    const Attributes attributes = {
        {"reduction", std::string("mean")}, {"ignore_index", int64_t(-100)}, {"classes", int64_t(1157)}};
    check("cross_entropy", {logits, labels, scalar, row}, attributes, {2, 3}, {2, 3});
    const Buffer lse = ranAt(0, "cross_entropy", {logits, labels, scalar, row}, attributes)[3];
    check("cross_entropy_grad", {logits, labels, lse, dloss, logits}, attributes, {4}, {4});
    check("cross_entropy_with_grad", {logits, labels, dloss, scalar, row, logits}, attributes, {3, 4, 5}, {3, 4, 5});
  }
}

} // namespace

} // namespace ds::kernels::test
