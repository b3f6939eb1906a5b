// Kernels on floats of 16 bits against the references in float64, and the number types themselves.
#include "kernels/BFloat16.h"
#include "kernels/Float16.h"
#include "kernels/Numbers.h"
#include "test/unit/kernels/Program.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace ds::kernels::test {

namespace {

constexpr DType wide = DType::F32;

/// `value` as a float of 16 bits holds it.
float rounded(DType half, float value) {
  return withNarrowFloat(half, [&](auto zero) { return float(decltype(zero)(value)); });
}

/// Half a last bit, of the number's size.
double roundingOf(DType dtype) { return dtype == DType::BF16 ? 0x1p-8 : dtype == DType::F16 ? 0x1p-11 : 0; }

TEST(BFloat16, EveryValueComesBack) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    BFloat16 value;
    value.bits = uint16_t(bits);
    const bool isNan = (bits & 0x7FFF) > 0x7F80;
    EXPECT_EQ(std::isnan(float(value)), isNan) << bits;
    EXPECT_EQ(BFloat16(float(value)).bits, isNan ? bits | 0x40 : bits);
  }
}

TEST(BFloat16, RoundsToNearestEven) {
  EXPECT_EQ(float(BFloat16(1 + 0x1p-8f)), 1);                      // a tie, 1 is even
  EXPECT_EQ(float(BFloat16(1 + 0x1p-7f + 0x1p-8f)), 1 + 0x1p-6f);  // a tie, upwards
  EXPECT_EQ(float(BFloat16(1 + 0x1p-8f + 0x1p-23f)), 1 + 0x1p-7f); // just above a tie
  EXPECT_EQ(float(BFloat16(-1 - 0x1p-8f - 0x1p-23f)), -1 - 0x1p-7f);
  EXPECT_EQ(float(BFloat16(0x1p-133f)), 0x1p-133f); // the least subnormal
  EXPECT_EQ(float(BFloat16(0x1p-134f)), 0);
  EXPECT_EQ(float(BFloat16(0x1.FEp127f)), 0x1.FEp127f); // the largest
  EXPECT_TRUE(std::isinf(float(BFloat16(std::numeric_limits<float>::max()))));
  EXPECT_TRUE(std::isnan(float(BFloat16(std::numeric_limits<float>::signaling_NaN()))));
}

TEST(Float16, EveryValueComesBack) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    Float16 value;
    value.bits = uint16_t(bits);
    const bool isNan = (bits & 0x7FFF) > 0x7C00;
    EXPECT_EQ(std::isnan(float(value)), isNan) << bits;
    EXPECT_EQ(Float16(float(value)).bits, isNan ? bits | 0x200 : bits);
  }
}

TEST(Float16, RoundsToNearestEven) {
  // The compiler's own type, on numbers of all sizes and between any two neighbours.
  for (uint64_t bits = 0; bits < (uint64_t(1) << 32); bits += 4099) {
    const auto value = __builtin_bit_cast(float, uint32_t(bits));
    const uint16_t expected = __builtin_bit_cast(uint16_t, _Float16(value));
    if (!std::isnan(value)) {
      ASSERT_EQ(Float16(value).bits, expected) << bits;
    }
  }
  EXPECT_EQ(float(Float16(1 + 0x1p-11f)), 1);                      // a tie, 1 is even
  EXPECT_EQ(float(Float16(1 + 0x1p-10f + 0x1p-11f)), 1 + 0x1p-9f); // a tie, upwards
  EXPECT_EQ(float(Float16(0x1p-24f)), 0x1p-24f);                   // the least subnormal
  EXPECT_EQ(float(Float16(0x1p-25f)), 0);
  EXPECT_EQ(float(Float16(-0x1.8p-24f)), -0x1p-23f);
  EXPECT_EQ(float(Float16(65519)), 65504); // the largest
  EXPECT_TRUE(std::isinf(float(Float16(65520))));
  EXPECT_TRUE(std::isnan(float(Float16(std::numeric_limits<float>::signaling_NaN()))));
}

Buffer converted(const Buffer &buffer, DType to) {
  Buffer result(type(to, buffer.type.shape));
  for (int64_t i = 0; i < elementCount(buffer.type.shape); ++i)
    storeDouble(result.data() + i * byteSize(to), to, buffer.at(i));
  return result;
}

/// Runs both CPU kernels on `operands`, the last `results` of which are written, and expects the float64 reference's
/// numbers: rounded once where a result has 16 bits, to `tolerance` where it is float32.
void expectRoundedOnce(const std::string &kernel, const std::vector<Buffer> &operands, const Attributes &attributes,
                       size_t results, Tolerance tolerance = {1e-5, 1e-5}, CallContext context = {}) {
  SCOPED_TRACE(kernel);
  std::vector<Buffer> exact;
  for (const Buffer &operand : operands)
    exact.push_back(isFloat(operand.type.dtype) ? converted(operand, DType::F64) : operand);
  ASSERT_TRUE(runKernel(cpuReferenceKernels(), invocationOf(kernel, exact, attributes), exact, 1, context).ok());
  for (const KernelRegistry *registry : {&cpuKernels(), &cpuReferenceKernels()}) {
    std::vector<Buffer> got = operands;
    ASSERT_TRUE(runKernel(*registry, invocationOf(kernel, operands, attributes), got, 3, context).ok());
    for (size_t k = operands.size() - results; k < operands.size(); ++k)
      for (int64_t i = 0; i < elementCount(got[k].type.shape); ++i) {
        const double want = exact[k].at(i), rounding = roundingOf(got[k].type.dtype);
        ASSERT_LE(std::fabs(got[k].at(i) - want),
                  tolerance.absolute + (tolerance.relative + rounding) * std::fabs(want))
            << "operand " << k << ", element " << i;
      }
    for (size_t k = 0; k + results < operands.size(); ++k) // what is only read stays
      EXPECT_EQ(std::memcmp(got[k].data(), operands[k].data(), operands[k].bytes()), 0);
  }
}

/// Kernels whose operands are all of one shape or follow from it: reads, then writes.
std::vector<Buffer> buffers(Random &random, const std::vector<TensorType> &types) {
  std::vector<Buffer> all;
  for (const TensorType &one : types)
    all.push_back(random.buffer(one.dtype, one.shape));
  return all;
}

/// Of each of the two types.
class NarrowFloatKernels : public testing::TestWithParam<DType> {
protected:
  const DType half = GetParam();
};
INSTANTIATE_TEST_SUITE_P(Types, NarrowFloatKernels, testing::Values(DType::BF16, DType::F16),
                         [](const auto &test) { return std::string(name(test.param)); });

TEST_P(NarrowFloatKernels, Matmul) {
  Random random{1};
  const Attributes plain = {
      {"trans_a", int64_t(0)}, {"trans_b", int64_t(1)}, {"bias", int64_t(0)}, {"pieces", int64_t(2)}};
  for (DType result : {half, wide}) // the gradient of a parameter is not rounded
    expectRoundedOnce("matmul", buffers(random, {{half, {5, 67}}, {half, {9, 67}}, {result, {5, 9}}}), plain, 1,
                      {1e-5, 1e-4});
  Attributes biased = plain;
  biased["bias"] = int64_t(1);
  expectRoundedOnce("matmul", buffers(random, {{half, {5, 67}}, {half, {9, 67}}, {half, {9}}, {half, {5, 9}}}), biased,
                    1, {1e-5, 1e-4});
}

TEST_P(NarrowFloatKernels, Attention) {
  const Shape q = {2, 4, 6, 8}, k = {2, 2, 6, 8}, rows = {2, 4, 6};
  for (bool masked : {false, true}) {
    Random random{uint64_t(masked)};
    const Attributes attributes = {{"scale", 0.37}, {"causal", int64_t(1)}, {"mask", int64_t(masked)}};
    std::vector<Buffer> operands = buffers(random, {{half, q}, {half, k}, {half, k}});
    if (masked)
      operands.push_back(random.buffer(half, {6, 6}));
    std::vector<Buffer> forward = operands;
    forward.emplace_back(type(half, q));
    forward.emplace_back(type(wide, rows));
    expectRoundedOnce("attention", forward, attributes, 2, {1e-5, 1e-5});
    ASSERT_TRUE(runKernel(cpuKernels(), invocationOf("attention", forward, attributes), forward).ok());
    forward.insert(forward.begin(), random.buffer(half, q));
    for (const Shape &shape : {q, k, k})
      forward.emplace_back(type(half, shape));
    expectRoundedOnce("attention_grad", forward, attributes, 3, {1e-5, 1e-4});
  }
}

TEST_P(NarrowFloatKernels, Reductions) {
  Random random{2};
  const Attributes axes = {{"axes", std::vector<int64_t>{0}}};
  for (const char *kernel : {"reduce_sum", "reduce_mean"})
    for (DType result : {half, wide})
      expectRoundedOnce(kernel, buffers(random, {{half, {300, 7}}, {result, {7}}}), axes, 1);
  expectRoundedOnce("reduce_max", buffers(random, {{half, {300, 7}}, {half, {7}}}), axes, 1, {});
  expectRoundedOnce("cumsum", buffers(random, {{half, {9, 7}}, {half, {9, 7}}}),
                    {{"axis", int64_t(0)}, {"exclusive", int64_t(0)}, {"reverse", int64_t(0)}}, 1);
}

TEST_P(NarrowFloatKernels, SoftmaxAndNorms) {
  Random random{3};
  const Shape x = {9, 33}, rows = {9}, cols = {33};
  const Attributes axis = {{"axis", int64_t(1)}}, epsilon = {{"epsilon", 1e-5}};
  for (const char *kernel : {"softmax", "log_softmax"}) {
    expectRoundedOnce(kernel, buffers(random, {{half, x}, {half, x}}), axis, 1);
    expectRoundedOnce(std::string(kernel) + "_grad", buffers(random, {{half, x}, {half, x}, {half, x}}), axis, 1,
                      {1e-5, 1e-4});
  }
  expectRoundedOnce("layer_norm",
                    buffers(random, {{half, x}, {wide, cols}, {wide, cols}, {half, x}, {wide, rows}, {wide, rows}}),
                    epsilon, 3);
  expectRoundedOnce("rms_norm", buffers(random, {{half, x}, {wide, cols}, {half, x}, {wide, rows}}), epsilon, 2);
  const Shape images = {3, 4, 5, 5}, channels = {4};
  expectRoundedOnce("batch_norm",
                    buffers(random, {{half, images},
                                     {wide, channels},
                                     {wide, channels},
                                     {half, images},
                                     {wide, channels},
                                     {wide, channels},
                                     {wide, channels}}),
                    epsilon, 4);
  expectRoundedOnce("batch_norm_grad",
                    buffers(random, {{half, images},
                                     {half, images},
                                     {wide, channels},
                                     {wide, channels},
                                     {wide, channels},
                                     {half, images},
                                     {wide, channels},
                                     {wide, channels}}),
                    {}, 3, {1e-5, 1e-4});
}

TEST_P(NarrowFloatKernels, NormGradientsKeepTheirSumsInTheWorkspace) {
  Random random{4};
  const Shape x = {200, 33}, rows = {200}, cols = {33};
  for (const char *kernel : {"layer_norm_grad", "rms_norm_grad"}) {
    const bool isLayerNorm = std::string(kernel) == "layer_norm_grad";
    std::vector<TensorType> types = {{half, x}, {half, x}, {wide, cols}, {wide, rows}};
    if (isLayerNorm)
      types.push_back({wide, rows});
    types.push_back({half, x});
    types.insert(types.end(), isLayerNorm ? 2 : 1, {wide, cols});
    std::vector<Buffer> operands = buffers(random, types), exact;
    for (const Buffer &operand : operands)
      exact.push_back(isFloat(operand.type.dtype) ? converted(operand, DType::F64) : operand);
    operands = operandsOn(Device::Cpu, kernel, std::move(operands), {}, 3);
    exact = operandsOn(Device::Cpu, kernel, std::move(exact), {});
    ASSERT_TRUE(runKernel(cpuReferenceKernels(), invocationOf(kernel, exact, {}), exact).ok());
    ASSERT_TRUE(runKernel(cpuKernels(), invocationOf(kernel, operands, {}), operands, 3).ok());
    for (size_t k = isLayerNorm ? 5 : 4; k < types.size(); ++k)
      for (int64_t i = 0; i < elementCount(types[k].shape); ++i) {
        const double relative = roundingOf(types[k].dtype) + 1e-5;
        ASSERT_LE(std::fabs(operands[k].at(i) - exact[k].at(i)), 1e-4 + relative * std::fabs(exact[k].at(i))) << k;
      }
  }
}

TEST_P(NarrowFloatKernels, Losses) {
  Random random{5};
  const Attributes mean = {{"ignore_index", int64_t(-100)}, {"reduction", std::string("mean")}};
  std::vector<Buffer> operands = buffers(random, {{half, {4, 50}}, {DType::I64, {4}}, {wide, {}}, {wide, {4}}});
  operands[1] = Buffer(type(DType::I64, {4}), std::vector<int64_t>{3, 49, -100, 0});
  expectRoundedOnce("cross_entropy", operands, mean, 2);
  ASSERT_TRUE(runKernel(cpuKernels(), invocationOf("cross_entropy", operands, mean), operands).ok());
  expectRoundedOnce("cross_entropy_grad",
                    {operands[0], operands[1], operands[3], Buffer(type(wide, {}), std::vector<float>{0.25f}),
                     Buffer(type(half, {4, 50}))},
                    mean, 1, {1e-5, 1e-7});
  expectRoundedOnce("cross_entropy_with_grad",
                    {operands[0], operands[1], Buffer(type(wide, {}), std::vector<float>{0.25f}), operands[2],
                     operands[3], Buffer(type(half, {4, 50}))},
                    mean, 3, {1e-5, 1e-6});
}

/// Runs a CPU kernel on `operands` as they are, for which a plan reserves no workspace, and on float32 copies, which
/// are rounded afterwards, and expects the same bits.
void expectBitsOfCopies(const std::string &kernel, const std::vector<Buffer> &operands, const Attributes &attributes) {
  SCOPED_TRACE(kernel + " " + toString(operands[0].type.shape));
  const Invocation call = invocationOf(kernel, operands, attributes);
  EXPECT_EQ(workspaceBytes(call, {.device = Device::Cpu}), 0);
  std::vector<Buffer> got = operands, want;
  for (const Buffer &operand : operands)
    want.push_back(isFloat(operand.type.dtype) ? converted(operand, wide) : operand);
  ASSERT_TRUE(runKernel(cpuKernels(), invocationOf(kernel, want, attributes), want, 3).ok());
  ASSERT_TRUE(runKernel(cpuKernels(), call, got, 3).ok());
  for (size_t k = 0; k < got.size(); ++k) {
    const Buffer rounded = isNarrowFloat(got[k].type.dtype) ? converted(want[k], got[k].type.dtype) : want[k];
    EXPECT_EQ(std::memcmp(got[k].data(), rounded.data(), rounded.bytes()), 0) << "operand " << k;
  }
}

TEST_P(NarrowFloatKernels, LossesReadLogitsAsTheyAre) {
  Random random{11};
  for (const auto &[shape, classes] :
       {std::pair<Shape, int64_t>{{0, 3}, 3}, {{7, 5}, 5}, {{9, 1025}, 1024}, {{3, 50257}, 50257}})
    for (const char *reduction : {"mean", "sum"}) {
      const Buffer logits = random.buffer(half, shape, 3);
      Buffer labels(type(DType::I64, {shape[0]}));
      for (int64_t row = 0; row < shape[0]; ++row)
        labels.as<int64_t>()[row] = row % 4 == 1 ? -100 : random.below(classes);
      const Attributes attributes = {
          {"ignore_index", int64_t(-100)}, {"reduction", std::string(reduction)}, {"classes", classes}};
      const Buffer scalar(type(wide, {})), rows(type(wide, {shape[0]})), dlogits(type(half, shape));
      const Buffer dloss(type(wide, {}), std::vector<float>{float(shape[1])}); // else most of float16 would be 0
      std::vector<Buffer> forward = {logits, labels, scalar, rows};
      expectBitsOfCopies("cross_entropy", forward, attributes);
      ASSERT_TRUE(runKernel(cpuKernels(), invocationOf("cross_entropy", forward, attributes), forward).ok());
      expectBitsOfCopies("cross_entropy_grad", {logits, labels, forward[3], dloss, dlogits}, attributes);
      expectBitsOfCopies("cross_entropy_with_grad", {logits, labels, dloss, scalar, rows, dlogits}, attributes);
    }
}

TEST_P(NarrowFloatKernels, Convolutions) {
  Random random{6};
  const Shape x = {2, 3, 8, 8}, w = {5, 3, 3, 3}, y = {2, 5, 8, 8};
  const Attributes window = {
      {"strides", Shape{1, 1}}, {"dilations", Shape{1, 1}}, {"low", Shape{1, 1}}, {"groups", int64_t(1)}};
  Attributes forward = window;
  forward["bias"] = int64_t(0);
  const auto check = [&](const std::string &kernel, const std::vector<TensorType> &types,
                         const Attributes &attributes) {
    std::vector<Buffer> operands = buffers(random, types), exact;
    for (const Buffer &operand : operands)
      exact.push_back(isFloat(operand.type.dtype) ? converted(operand, DType::F64) : operand);
    operands = operandsOn(Device::Cpu, kernel, std::move(operands), attributes, 3);
    ASSERT_TRUE(runKernel(cpuReferenceKernels(), invocationOf(kernel, exact, attributes), exact).ok());
    ASSERT_TRUE(runKernel(cpuKernels(), invocationOf(kernel, operands, attributes), operands, 3).ok());
    for (int64_t i = 0; i < elementCount(types[2].shape); ++i) {
      const double relative = roundingOf(types[2].dtype) + 1e-5;
      ASSERT_LE(std::fabs(operands[2].at(i) - exact[2].at(i)), 1e-4 + relative * std::fabs(exact[2].at(i))) << kernel;
    }
  };
  check("conv", {{half, x}, {half, w}, {half, y}}, forward);
  check("conv_input_grad", {{half, y}, {half, w}, {half, x}}, window);
  check("conv_weight_grad", {{half, y}, {half, x}, {wide, w}}, window);
  const Attributes pool = {
      {"window", Shape{2, 2}}, {"strides", Shape{2, 2}}, {"dilations", Shape{1, 1}}, {"low", Shape{0, 0}}};
  const Shape pooled = {2, 3, 4, 4};
  expectRoundedOnce("max_pool", buffers(random, {{half, x}, {half, pooled}}), pool, 1, {});
  expectRoundedOnce("average_pool", buffers(random, {{half, x}, {half, pooled}}), pool, 1);
  expectRoundedOnce("max_pool_grad", buffers(random, {{half, pooled}, {half, x}, {half, x}}), pool, 1);
  expectRoundedOnce("average_pool_grad", buffers(random, {{half, pooled}, {half, x}}), pool, 1);
}

TEST_P(NarrowFloatKernels, MovementKeepsTheBits) {
  Random random{7};
  const Buffer x = random.buffer(half, {3, 4});
  const auto run = [&](const std::string &kernel, std::vector<Buffer> operands, const Attributes &attributes,
                       const std::vector<int64_t> &from) {
    for (const KernelRegistry *registry : {&cpuKernels(), &cpuReferenceKernels()}) {
      ASSERT_TRUE(runKernel(*registry, invocationOf(kernel, operands, attributes), operands, 2).ok()) << kernel;
      for (size_t i = 0; i < from.size(); ++i)
        EXPECT_EQ(operands.back().as<uint16_t>()[i], from[i] < 0 ? 0 : x.as<uint16_t>()[from[i]]) << kernel << i;
    }
  };
  const auto y = [this](Shape shape) { return Buffer(type(half, std::move(shape))); };
  run("transpose", {x, y({4, 3})}, {{"perm", Shape{1, 0}}}, {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11});
  run("slice", {x, y({2, 2})}, {{"starts", Shape{1, 0}}, {"steps", Shape{1, 2}}}, {4, 6, 8, 10});
  run("pad", {x, y({3, 5})}, {{"low", Shape{0, 1}}, {"interior", Shape{0, 0}}, {"value", 0.0}},
      {-1, 0, 1, 2, 3, -1, 4, 5, 6, 7, -1, 8, 9, 10, 11});
  run("concat", {x, x, y({6, 4})}, {{"axis", int64_t(0)}}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0, 1, 2, 3});
  const Buffer rows(type(DType::I64, {2}), std::vector<int64_t>{2, -3});
  run("gather", {x, rows, y({2, 4})}, {{"axis", int64_t(0)}}, {8, 9, 10, 11, 0, 1, 2, 3});
}

TEST_P(NarrowFloatKernels, GatherGradientAddsInFloat32) {
  const int64_t count = 5000; // in bfloat16 a sum of ones ends at 256, in float16 at 2048
  Buffer ones(type(half, {count, 1}));
  for (int64_t i = 0; i < count; ++i)
    storeDouble(ones.data() + i * 2, half, 1);
  std::vector<Buffer> operands = {ones, Buffer(type(DType::I64, {count}), std::vector<int64_t>(size_t(count), 1)),
                                  Buffer(type(wide, {2, 1}))};
  ASSERT_TRUE(runKernel(cpuKernels(), invocationOf("gather_grad", operands, {{"axis", int64_t(0)}}), operands).ok());
  EXPECT_EQ(operands[2].at(0), 0);
  EXPECT_EQ(operands[2].at(1), 5000);
}

TEST_P(NarrowFloatKernels, DropoutDrawsTheMasksOfFloat32) {
  const int64_t count = 5000;
  const Attributes attributes = {{"ratio", 0.25}, {"op_id", int64_t(3)}};
  const CallContext context = {.seed = 7, .step = 11, .microbatch = 5};
  std::vector<Buffer> narrow = {Buffer(type(half, {count})), Buffer(type(half, {count}))},
                      full = {Buffer(type(wide, {count}), std::vector<float>(size_t(count), 3)),
                              Buffer(type(wide, {count}))};
  for (int64_t i = 0; i < count; ++i)
    storeDouble(narrow[0].data() + i * 2, half, 3);
  ASSERT_TRUE(runKernel(cpuKernels(), invocationOf("dropout", narrow, attributes), narrow, 2, context).ok());
  ASSERT_TRUE(runKernel(cpuKernels(), invocationOf("dropout", full, attributes), full, 2, context).ok());
  for (int64_t i = 0; i < count; ++i)
    ASSERT_EQ(narrow[1].at(i), full[1].at(i)); // 0 or 4
}

TEST_P(NarrowFloatKernels, ElementwiseRoundsEachInstruction) {
  Random random{8};
  const Buffer x = random.buffer(half, {3, 70}), y = random.buffer(wide, {70});
  Program program{2};
  const int64_t cube = program.add(Op::Mul, half, program.add(Op::Mul, half, 0, 0), 0);
  const int64_t full = program.add(Op::Add, wide, program.add(Op::Cast, wide, cube), 1);
  const int64_t back = program.add(Op::Cast, half, full), tanh = program.add(Op::Tanh, half, 0);
  const int64_t less = program.add(Op::Less, DType::Bool, tanh, program.constant(half, 0.3));
  program.results = {cube, full, back, less};
  const std::vector<Buffer> got = check({x, y}, program, {half, wide, half, DType::Bool}, {3, 70}, {});
  for (int64_t i = 0; i < 210; ++i) {
    const float a = float(x.at(i)), square = rounded(half, a * a), cubed = rounded(half, square * a);
    ASSERT_EQ(got[2].at(i), cubed);
    ASSERT_EQ(got[3].at(i), cubed + float(y.at(i % 70)));
    ASSERT_EQ(got[4].at(i), rounded(half, cubed + float(y.at(i % 70))));
    ASSERT_EQ(got[5].at(i), rounded(half, std::tanh(a)) < rounded(half, 0.3f));
  }
}

TEST_P(NarrowFloatKernels, EveryOpcodeIsFloat32sRounded) {
  Random random{9};
  const Buffer x = random.buffer(half, {5, 300}, 2), y = random.buffer(half, {300}, 2);
  for (int64_t number = 10; number <= 69; ++number) {
    const Op op = Op(number);
    const bool comparison = op >= Op::Equal && op <= Op::GreaterEqual,
               binary = (op >= Op::Add && op <= Op::Min) || comparison;
    if ((!binary && op < Op::Neg) || op == Op::Not)
      continue;
    SCOPED_TRACE("opcode " + std::to_string(number));
    const DType result = comparison || op == Op::IsNan ? DType::Bool : half;
    Program narrow{2}, full{2};
    narrow.results = {narrow.add(op, result, 0, binary ? 1 : -1)};
    full.results = {full.add(op, result == half ? wide : result, 0, binary ? 1 : -1)};
    std::vector<Buffer> got = {x, y, Buffer(type(result, {5, 300}))},
                        want = {converted(x, wide), converted(y, wide),
                                Buffer(type(full.code[1] == int64_t(wide) ? wide : result, {5, 300}))};
    ASSERT_TRUE(runKernel(cpuKernels(), invocationOf("elementwise", got, narrow.attributes()), got, 2).ok());
    ASSERT_TRUE(runKernel(cpuKernels(), invocationOf("elementwise", want, full.attributes()), want, 2).ok());
    for (int64_t i = 0; i < 1500; ++i) {
      const double expected = result == half ? rounded(half, float(want[2].at(i))) : want[2].at(i);
      if (!std::isnan(expected) || !std::isnan(got[2].at(i))) {
        ASSERT_EQ(got[2].at(i), expected);
      }
    }
  }
}

TEST_P(NarrowFloatKernels, CastsSelectsAndCopies) {
  Random random{10};
  const Shape shape = {4, 100};
  const Buffer x = random.buffer(half, shape, 50), n = random.buffer(DType::I64, shape),
               d = random.buffer(DType::F64, shape), b = random.buffer(DType::Bool, shape);
  Program program{4};
  const int64_t fromInteger = program.add(Op::Cast, half, 1), fromDouble = program.add(Op::Cast, half, 2);
  const int64_t chosen = program.add(Op::Select, half, 3, 0, fromInteger);
  const int64_t copied = program.add(Op::Copy, half, fromDouble), integer = program.add(Op::Cast, DType::I32, 0);
  const int64_t boolean = program.add(Op::Cast, DType::Bool, 0), wider = program.add(Op::Cast, wide, 0);
  const int64_t doubled = program.add(Op::Cast, DType::F64, copied), same = program.add(Op::Cast, half, 0);
  program.results = {fromInteger, chosen, copied, integer, boolean, wider, doubled, same, 0};
  check({x, n, d, b}, program, {half, half, half, DType::I32, DType::Bool, wide, DType::F64, half, half}, shape, {});
}

TEST_P(NarrowFloatKernels, RefusesOtherMixtures) {
  const std::string own(name(half));
  const Attributes axis = {{"axis", int64_t(0)}};
  expectRefused({"softmax", {{half, {3}}, {wide, {3}}}, axis}, "operand 1 (y) must be " + own + ", not float32");
  expectRefused({"layer_norm",
                 {{half, {2, 3}}, {half, {3}}, {half, {3}}, {half, {2, 3}}, {wide, {2}}, {wide, {2}}},
                 {{"epsilon", 1e-5}}},
                "operand 1 (gamma) must be float32, not " + own);
  expectRefused({"dropout", {{half, {3}}}, {{"ratio", 0.5}, {"op_id", int64_t(0)}}}, "takes 2 operands, not 1");
}

} // namespace

} // namespace ds::kernels::test
