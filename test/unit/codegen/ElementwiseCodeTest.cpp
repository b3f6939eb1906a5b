// Compiled programs of `elementwise`, run on the host, against the kernels' reference: the same bits where a step is
// one rounded operation, a few units of the last place where it is a function. Their PTX, emulated, has the host's
// bits.
#include "EmulatedCode.h"
#include "HostCode.h"
#include "Samples.h"
#include "core/Error.h"
#include "kernels/Numbers.h"

#include <cmath>
#include <limits>

namespace ds::codegen::test {
namespace {

constexpr DType f32 = DType::F32, bf16 = DType::BF16, f16 = DType::F16, boolean = DType::Bool;

// 1 / sqrt is two operations, which the reference rounds together.
constexpr Op functions[] = {Op::Rsqrt, Op::Exp,     Op::Log, Op::Log1p, Op::Expm1, Op::Erf,
                            Op::Tanh,  Op::Sigmoid, Op::Sin, Op::Cos,   Op::Atan};
constexpr Op exactOps[] = {Op::Neg,   Op::Abs,  Op::Sqrt,  Op::Reciprocal, Op::Relu, Op::Sign,
                           Op::Floor, Op::Ceil, Op::Round, Op::Copy,       Op::IsNan};

/// Numbers of a float type, among them those with rules of their own.
Buffer numbers(Random &random, DType dtype, const Shape &shape, bool specials) {
  Buffer buffer = random.buffer(dtype, shape, 3);
  constexpr float inf = std::numeric_limits<float>::infinity();
  constexpr float list[] = {0.0f,    -0.0f, inf,    -inf, NAN,  1,     -1,  1e-40f,
                            -1e-40f, 3e38f, -3e38f, 0.5f, 2.5f, 88.8f, -104};
  if (specials && isFloat(dtype))
    for (int64_t i = 0; i < elementCount(shape); ++i) {
      const float value = list[size_t(random.below(int64_t(std::size(list))))];
      if (random.below(3) != 0)
        continue;
      kernels::storeDouble(buffer.data() + i * byteSize(dtype), dtype, value);
    }
  return buffer;
}

std::vector<Buffer *> addressesOf(std::vector<Buffer> &operands) {
  std::vector<Buffer *> addresses;
  for (Buffer &operand : operands)
    addresses.push_back(&operand);
  return addresses;
}

/// The bits are, but for those of NaNs.
bool isSame(double got, double want) {
  return (got == want && std::signbit(got) == std::signbit(want)) || (std::isnan(got) && std::isnan(want));
}

/// `relative` 0: the same bits, but for those of NaNs.
void expectReference(std::vector<Buffer> operands, const Program &program, const std::vector<DType> &types,
                     const Shape &shape, uint64_t alignment, double relative) {
  const size_t inputs = operands.size();
  for (DType dtype : types)
    operands.emplace_back(type(dtype, shape));
  const kernels::Invocation invocation = invocationOf("elementwise", operands, program.attributes());
  std::vector<Buffer> reference = operands;
  ASSERT_TRUE(runKernel(kernels::cpuReferenceKernels(), invocation, reference).ok());
  const HostCode code(invocation, std::vector<uint64_t>(operands.size(), alignment));
  ASSERT_EQ(code.exists(), elementCount(shape) > 0);
  if (!code.exists())
    return;
  std::vector<Buffer> emulated = operands;
  code.run(addressesOf(operands));
  runPtx(invocation, std::vector<uint64_t>(operands.size(), alignment), addressesOf(emulated));
  for (size_t r = inputs; r < operands.size(); ++r)
    for (int64_t i = 0; i < elementCount(shape); ++i)
      ASSERT_TRUE(isSame(emulated[r].at(i), operands[r].at(i)))
          << emulated[r].at(i) << " by PTX, " << operands[r].at(i) << " on the host: result " << r - inputs
          << ", element " << i;
  for (size_t r = inputs; r < operands.size(); ++r) {
    EXPECT_TRUE(operands[r].guardIntact());
    for (int64_t i = 0; i < elementCount(shape); ++i) {
      const double got = operands[r].at(i), want = reference[r].at(i);
      if (isSame(got, want))
        continue;
      ASSERT_GT(relative, 0) << got << " for " << want << " in result " << r - inputs << ", element " << i;
      const double least = operands[r].type.dtype == f16 ? 0x1p-24 : 1e-44; // of its numbers
      ASSERT_NEAR(got, want, relative * std::fabs(want) + least) << "result " << r - inputs << ", element " << i;
    }
  }
}

double toleranceOf(DType dtype) { return dtype == bf16 ? 1.0 / 128 : dtype == f16 ? 1.0 / 1024 : 4e-7; }

TEST(ElementwiseCode, EveryUnaryOpcode) {
  for (DType dtype : {f32, bf16, f16})
    for (const Shape &shape : {Shape{}, Shape{0}, Shape{3, 7}, Shape{4, 264}, Shape{2051}})
      for (uint64_t alignment : {uint64_t(byteSize(dtype)), uint64_t(512)}) {
        for (Op op : exactOps) {
          SCOPED_TRACE("opcode " + std::to_string(int64_t(op)) + " on " + std::string(name(dtype)) + toString(shape));
          Random random(uint64_t(op) + 1);
          Program program{1};
          const DType result = op == Op::IsNan ? boolean : dtype;
          program.results = {program.add(op, result, 0)};
          expectReference({numbers(random, dtype, shape, true)}, program, {result}, shape, alignment, 0);
        }
        for (Op op : functions) {
          SCOPED_TRACE("opcode " + std::to_string(int64_t(op)) + " on " + std::string(name(dtype)) + toString(shape));
          Random random(uint64_t(op) + 1);
          Program program{1};
          program.results = {program.add(op, dtype, 0)};
          expectReference({numbers(random, dtype, shape, true)}, program, {dtype}, shape, alignment,
                          toleranceOf(dtype));
        }
      }
}

// Far below 0 GELU is the rest of a difference, and right to digits of x alone.
TEST(ElementwiseCode, GeluAddedToItsInput) {
  for (DType dtype : {f32, bf16, f16})
    for (Op op : {Op::GeluTanh, Op::GeluTanhSlope}) {
      SCOPED_TRACE(int64_t(op));
      Random random(uint64_t(op) + 1);
      Program program{1};
      const int64_t size = program.add(Op::Add, dtype, program.add(Op::Abs, dtype, 0), program.constant(dtype, 1));
      program.results = {program.add(Op::Add, dtype, program.add(op, dtype, 0), size)};
      expectReference({numbers(random, dtype, {2051}, false)}, program, {dtype}, {2051}, 512, 2 * toleranceOf(dtype));
    }
}

TEST(ElementwiseCode, EveryBinaryOpcode) {
  for (DType dtype : {f32, bf16, f16, boolean})
    for (const Shape &shape : {Shape{1}, Shape{3, 5}, Shape{4, 264}, Shape{1030}})
      for (int64_t code = 10; code <= 34; ++code) {
        const auto op = Op(code);
        const bool logical = op == Op::And || op == Op::Or || op == Op::Xor;
        const bool known = (code <= 19 || code >= 30) && (logical            ? dtype == boolean
                                                          : dtype == boolean ? op == Op::Equal
                                                                             : true);
        if (!known)
          continue;
        SCOPED_TRACE("opcode " + std::to_string(code) + " on " + std::string(name(dtype)) + toString(shape));
        Random random(uint64_t(code) + 9);
        Program program{2};
        const DType result = code >= 30 ? boolean : dtype;
        program.results = {program.add(op, result, 0, 1)};
        expectReference({numbers(random, dtype, shape, true), numbers(random, dtype, shape, true)}, program, {result},
                        shape, 16, op == Op::Pow ? 2 * toleranceOf(dtype) : 0);
      }
}

TEST(ElementwiseCode, PowersByConstants) {
  for (DType dtype : {f32, bf16, f16})
    for (double exponent : {1.0, 2.0, 3.0, 0.5, -0.5, -1.0, -2.0, 1.5, 0.0, -7.0}) {
      SCOPED_TRACE(exponent);
      Random random(3);
      Program program{1};
      const int64_t positive = program.add(Op::Abs, dtype, 0);
      program.results = {program.add(Op::Pow, dtype, positive, program.constant(dtype, exponent))};
      expectReference({random.buffer(dtype, {999})}, program, {dtype}, {999}, 512, 2 * toleranceOf(dtype));
    }
}

TEST(ElementwiseCode, CastsSelectsAndConstants) {
  for (DType from : {f32, bf16, f16, boolean})
    for (DType to : {f32, bf16, f16, boolean})
      for (const Shape &shape : {Shape{3, 11}, Shape{520}}) {
        SCOPED_TRACE(std::string(name(from)) + " to " + std::string(name(to)));
        Random random(4);
        Program program{3};
        const int64_t constant = program.constant(to, -1.2345678);
        const int64_t cast = program.add(Op::Cast, to, 0);
        const int64_t chosen = program.add(Op::Select, to, 2, cast, constant);
        program.results = {cast, chosen, program.add(Op::Select, from, 2, 0, 1), 1};
        expectReference(
            {numbers(random, from, shape, true), numbers(random, from, shape, true), random.buffer(boolean, shape)},
            program, {to, to, from, from}, shape, 512, 0);
      }
}

TEST(ElementwiseCode, BroadcastsEverySide) {
  const Shape shapes[] = {{},        {1},          {5},          {8},          {4, 1},       {1, 5},
                          {4, 5},    {4, 8},       {3, 1, 1},    {3, 4, 1},    {3, 1, 5},    {3, 1, 8},
                          {3, 4, 8}, {2, 3, 4, 5}, {2, 1, 4, 8}, {2, 3, 1, 8}, {1, 3, 4, 1}, {2, 3, 4, 8}};
  for (DType dtype : {f32, bf16, f16})
    for (const Shape &a : shapes)
      for (const Shape &b : shapes) {
        const std::optional<Shape> out = broadcast(a, b);
        if (!out)
          continue;
        SCOPED_TRACE(toString(a) + " with " + toString(b));
        Random random(99);
        Program program{2};
        program.results = {program.add(Op::Sub, dtype, 0, 1)};
        expectReference({random.buffer(dtype, a), random.buffer(dtype, b)}, program, {dtype}, *out, 512, 0);
      }
}

TEST(ElementwiseCode, ChainsRoundAfterEachStep) {
  for (DType dtype : {f32, bf16, f16})
    for (const Shape &shape : {Shape{2, 3, 40}, Shape{7, 13}}) {
      Random random(12);
      Program program{3}; // x * y + z and the like: one rounding too few would show
      int64_t last = 0;
      for (int k = 0; k < 30; ++k)
        last = program.add(k % 3 == 0 ? Op::Mul : k % 3 == 1 ? Op::Add : Op::Sub, dtype, last, k % 3);
      program.results = {last};
      expectReference({random.buffer(dtype, shape), random.buffer(dtype, shape), random.buffer(dtype, shape)}, program,
                      {dtype}, shape, 512, 0);
    }
}

TEST(ElementwiseCode, ManyValuesMakeGroupsNarrow) {
  for (int kept : {4, 20, 40, 90}) {
    SCOPED_TRACE(kept);
    Program program{2};
    std::vector<int64_t> values;
    for (int k = 0; k < kept; ++k)
      values.push_back(program.add(Op::Add, f32, 0, k == 0 ? 1 : values.back()));
    int64_t last = 1;
    for (int64_t value : values)
      last = program.add(Op::Sub, f32, last, value);
    program.results = {last};
    Random random(8);
    expectReference({random.buffer(f32, {300}), random.buffer(f32, {300})}, program, {f32}, {300}, 512, 0);
  }
}

TEST(ElementwiseCode, LeavesOtherProgramsToTheInterpreter) {
  for (DType dtype : {DType::F64, DType::I64, DType::I32}) {
    Program program{1};
    program.results = {program.add(Op::Neg, dtype, 0)};
    const Sample made = sample("", {type(dtype, {8})}, program, {dtype}, {8});
    EXPECT_FALSE(HostCode(made.invocation, made.alignments).exists());
  }
  Program program{1}; // more values than registers
  std::vector<int64_t> values;
  for (int k = 0; k < 100; ++k)
    values.push_back(program.add(Op::Mul, f32, 0, k == 0 ? 0 : values.back()));
  int64_t last = 0;
  for (int64_t value : values)
    last = program.add(Op::Sub, f32, last, value);
  program.results = {last};
  const Sample made = sample("", {type(f32, {8})}, program, {f32}, {8});
  EXPECT_FALSE(HostCode(made.invocation, made.alignments).exists());
}

TEST(ElementwiseCode, AResultMayBeTheMemoryOfAnInput) {
  Random random(6);
  Program program{2};
  program.results = {program.add(Op::Add, f32, 0, 1), 0}; // result 0 lies over input 0, which is result 1
  const Sample made = sample("", {type(f32, {1027}), type(f32, {1027})}, program, {f32, f32}, {1027});
  Buffer first = random.buffer(f32, {1027}), second = random.buffer(f32, {1027});
  const std::vector<float> a(first.as<float>(), first.as<float>() + 1027),
      b(second.as<float>(), second.as<float>() + 1027);
  HostCode(made.invocation, made.alignments).run({&first, &second, &first, &second});
  for (size_t i = 0; i < 1027; ++i) {
    ASSERT_EQ(first.as<float>()[i], a[i] + b[i]);
    ASSERT_EQ(second.as<float>()[i], a[i]);
  }
}

TEST(ElementwiseCode, GeluAndItsGradient) {
  for (DType dtype : {f32, bf16, f16})
    for (const Shape &shape : {Shape{5, 48}, Shape{3, 37}})
      for (const Sample &made : {gelu(dtype, shape), geluGradient(dtype, shape)}) {
        SCOPED_TRACE(made.name);
        Random random(21);
        std::vector<Buffer> operands;
        for (const kernels::TensorType &operand : made.invocation.operands)
          operands.push_back(random.buffer(operand.dtype, operand.shape));
        std::vector<Buffer> reference = operands;
        ASSERT_TRUE(runKernel(kernels::cpuReferenceKernels(), made.invocation, reference).ok());
        HostCode(made.invocation, made.alignments).run(addressesOf(operands));
        for (int64_t i = 0; i < elementCount(shape); ++i)
          EXPECT_NEAR(operands.back().at(i), reference.back().at(i), dtype == f32 ? 1e-6 : 0.02);
      }
}

} // namespace
} // namespace ds::codegen::test
