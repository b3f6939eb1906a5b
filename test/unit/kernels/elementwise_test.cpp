#include "test/unit/kernels/Program.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

namespace ds::kernels::test {

namespace {

constexpr std::array allTypes = {DType::Bool, DType::U8,  DType::U16, DType::U32,
                                 DType::I32,  DType::I64, DType::F32, DType::F64};

Tolerance toleranceOf(DType dtype) { return dtype == DType::F32 ? Tolerance{3e-7, 1e-37} : Tolerance{4e-16, 1e-300}; }

bool isFloatOp(Op op) {
  return op == Op::Pow || (op >= Op::Sqrt && op <= Op::Sigmoid) || op == Op::Sin || op == Op::Cos || op == Op::IsNan ||
         (op >= Op::Floor && op <= Op::Expm1);
}

void checkBinary(Op op, DType dtype, const Shape &shape) {
  Random random{uint64_t(op) * 100 + uint64_t(dtype)};
  SCOPED_TRACE("opcode " + std::to_string(int64_t(op)) + " on " + std::string(name(dtype)) + toString(shape));
  Buffer a = random.buffer(dtype, shape, 3), b = random.buffer(dtype, shape, 3);
  if (op == Op::Div && !isFloat(dtype))
    for (int64_t i = 0; i < elementCount(shape); ++i)
      if (b.at(i) == 0)
        b.data()[i * byteSize(dtype)] = std::byte{3};
  const bool comparison = op >= Op::Equal && op <= Op::GreaterEqual;
  Program program{2};
  program.results = {program.add(op, comparison ? DType::Bool : dtype, 0, 1)};
  check({a, b}, program, {comparison ? DType::Bool : dtype}, shape, toleranceOf(dtype));
}

TEST(Elementwise, EveryBinaryOpcode) {
  for (const Shape &shape : {Shape{}, Shape{0}, Shape{3, 0, 2}, Shape{1}, Shape{7}, Shape{3, 1025}})
    for (int64_t op = 10; op <= 34; ++op) {
      if (op > 19 && op < 30)
        continue;
      const bool logical = Op(op) == Op::And || Op(op) == Op::Or || Op(op) == Op::Xor;
      for (DType dtype : allTypes)
        if (logical                ? dtype == DType::Bool
            : dtype == DType::Bool ? Op(op) == Op::Equal
                                   : (!isFloatOp(Op(op)) || isFloat(dtype)))
          checkBinary(Op(op), dtype, shape);
    }
}

TEST(Elementwise, EveryUnaryOpcode) {
  for (int64_t op = 50; op <= 69; ++op)
    for (DType dtype : allTypes) {
      if ((Op(op) == Op::Not) != (dtype == DType::Bool) || (isFloatOp(Op(op)) && !isFloat(dtype)))
        continue;
      for (const Shape &shape : {Shape{}, Shape{0}, Shape{5}, Shape{3, 1500}}) {
        Random random{uint64_t(op) * 100 + uint64_t(dtype)};
        SCOPED_TRACE("opcode " + std::to_string(op) + " on " + std::string(name(dtype)) + toString(shape));
        Program program{1};
        const DType result = Op(op) == Op::IsNan ? DType::Bool : dtype;
        program.results = {program.add(Op(op), result, 0)};
        check({random.buffer(dtype, shape, 3)}, program, {result}, shape, toleranceOf(dtype));
      }
    }
}

TEST(Elementwise, CastsBetweenAllTypes) {
  for (DType from : allTypes)
    for (DType to : allTypes) {
      Random random{uint64_t(from) * 10 + uint64_t(to)};
      SCOPED_TRACE(std::string(name(from)) + " to " + std::string(name(to)));
      Program program{1};
      program.results = {program.add(Op::Cast, to, 0), program.add(Op::Copy, to, 1)};
      check({random.buffer(from, {2000}, 10)}, program, {to, to}, {2000}, {});
    }
}

TEST(Elementwise, CastsWhatDoesNotFit) {
  const float inf = std::numeric_limits<float>::infinity();
  Buffer x(type(DType::F32, {8}),
           std::vector<float>{3e20f, -3e20f, inf, -inf, std::nanf(""), 2147483648.0f, -2147483648.0f, -1.9f});
  for (DType to : allTypes) {
    Program program{1};
    program.results = {program.add(Op::Cast, to, 0)};
    check({x}, program, {to}, {8}, {});
  }
}

TEST(Elementwise, SelectsByBool) {
  for (DType dtype : allTypes) {
    Random random{uint64_t(dtype)};
    Program program{3};
    program.results = {program.add(Op::Select, dtype, 0, 1, 2)};
    check({random.buffer(DType::Bool, {3000}), random.buffer(dtype, {3000}), random.buffer(dtype, {3000})}, program,
          {dtype}, {3000}, {});
  }
}

TEST(Elementwise, BroadcastsEverySide) {
  const Shape shapes[] = {
      {},        {1},          {5},       {4, 1},       {1, 5},          {4, 5},       {3, 1, 1},
      {3, 4, 1}, {1, 4, 1, 1}, {3, 1, 5}, {2, 3, 4, 5}, {2, 1, 1, 4, 5}, {2, 3, 1, 5}, {1, 1, 1, 1, 1}};
  for (DType dtype : {DType::F32, DType::F64, DType::I64})
    for (const Shape &a : shapes)
      for (const Shape &b : shapes) {
        const std::optional<Shape> out = broadcast(a, b);
        if (!out)
          continue;
        SCOPED_TRACE(toString(a) + " with " + toString(b));
        Random random(99);
        Program program{2};
        program.results = {program.add(Op::Sub, dtype, 0, 1)};
        check({random.buffer(dtype, a), random.buffer(dtype, b)}, program, {dtype}, *out, {});
      }
}

TEST(Elementwise, BroadcastsOverManyTiles) {
  struct Case {
    Shape a, b, out;
  };
  for (const Case &c : {Case{{40, 768}, {768}, {40, 768}}, Case{{40, 770}, {770}, {40, 770}},
                        Case{{40, 770}, {40, 1}, {40, 770}}, Case{{5, 3, 30, 64}, {30, 64}, {5, 3, 30, 64}},
                        Case{{7, 3072}, {3072}, {7, 3072}}, Case{{2, 3, 50, 50}, {2, 1, 1, 50}, {2, 3, 50, 50}},
                        Case{{600, 3}, {600, 1}, {600, 3}}, Case{{9, 1, 400}, {1, 8, 1}, {9, 8, 400}}}) {
    SCOPED_TRACE(toString(c.a) + " with " + toString(c.b));
    Random random(5);
    Program program{2};
    const int64_t sum = program.add(Op::Add, DType::F32, 0, 1);
    program.results = {program.add(Op::Mul, DType::F32, sum, 1)};
    check({random.buffer(DType::F32, c.a), random.buffer(DType::F32, c.b)}, program, {DType::F32}, c.out, {});
  }
}

/// A random program on three float inputs, the second broadcast, the third a scalar, with `results` results.
Program randomProgram(Random &random, DType dtype, int length, int results) {
  constexpr std::array unary = {Op::Neg, Op::Abs, Op::Relu, Op::Tanh, Op::Sigmoid, Op::Copy, Op::Erf};
  constexpr std::array binary = {Op::Add, Op::Sub, Op::Mul, Op::Max, Op::Min};
  Program program{3};
  std::vector<int64_t> floats = {0, 1, 2};
  const auto any = [&] { return floats[size_t(random.below(int64_t(floats.size())))]; };
  for (int k = 0; k < length; ++k)
    switch (random.below(5)) {
    case 0:
      floats.push_back(program.constant(dtype, double(random.below(5)) - 2));
      break;
    case 1:
      floats.push_back(program.add(unary[size_t(random.below(unary.size()))], dtype, any()));
      break;
    case 2: {
      const int64_t less = program.add(Op::Less, DType::Bool, any(), any());
      floats.push_back(program.add(Op::Select, dtype, less, any(), any()));
      break;
    }
    default:
      floats.push_back(program.add(binary[size_t(random.below(binary.size()))], dtype, any(), any()));
    }
  for (int r = 0; r < results; ++r)
    program.results.push_back(any());
  return program;
}

TEST(Elementwise, RandomProgramsAlsoInPlace) {
  for (uint64_t seed = 0; seed < 60; ++seed)
    for (DType dtype : floatTypes) {
      Random random(seed);
      const Shape shape{3, 700};
      const Program program = randomProgram(random, dtype, 1 + int(seed % 20), 2);
      std::vector<Buffer> inputs = {random.buffer(dtype, shape), random.buffer(dtype, {700}), random.buffer(dtype, {})};
      // Sums cancel, so an error of one operand's last place may be larger relative to the result.
      check(inputs, program, {dtype, dtype}, shape,
            dtype == DType::F32 ? Tolerance{1e-4, 1e-4} : Tolerance{1e-12, 1e-12});
    }
}

TEST(Elementwise, SwapsInputsInPlace) {
  Random random(3);
  std::vector<Buffer> operands = {random.buffer(DType::F32, {5000}), random.buffer(DType::F32, {5000})};
  const std::vector<Buffer> before = operands;
  Invocation invocation{"elementwise", std::vector(4, type(DType::F32, {5000})),
                        Program{2, {}, {}, {1, 0}}.attributes()};
  Workers workers(2);
  CallContext context{&workers};
  void *addresses[] = {operands[0].data(), operands[1].data(), operands[0].data(), operands[1].data()};
  ASSERT_TRUE(cpuKernels().find("elementwise")(invocation, {2})->execute(context, addresses).ok());
  EXPECT_EQ(std::memcmp(operands[0].data(), before[1].data(), operands[0].bytes()), 0);
  EXPECT_EQ(std::memcmp(operands[1].data(), before[0].data(), operands[0].bytes()), 0);
}

TEST(Elementwise, FailsOnIntegerDivisionByZero) {
  Program program{2};
  program.results = {program.add(Op::Div, DType::I64, 0, 1)};
  expectFails("elementwise",
              {Buffer(type(DType::I64, {3}), std::vector<int64_t>{1, INT64_MIN, 3}),
               Buffer(type(DType::I64, {3}), std::vector<int64_t>{1, -1, 0}), Buffer(type(DType::I64, {3}))},
              program.attributes(), "integer division by zero");
}

TEST(Elementwise, IntegersWrap) {
  for (Op op : {Op::Add, Op::Sub, Op::Mul, Op::Div, Op::Neg, Op::Abs}) {
    Program program{2};
    program.results = {elementwiseArity(op) == 2 ? program.add(op, DType::I64, 0, 1) : program.add(op, DType::I64, 0)};
    check({Buffer(type(DType::I64, {3}), std::vector<int64_t>{INT64_MAX, INT64_MIN, INT64_MIN}),
           Buffer(type(DType::I64, {3}), std::vector<int64_t>{1, -1, 7})},
          program, {DType::I64}, {3}, {});
  }
  Program program{1};
  program.results = {program.add(Op::Mul, DType::U16, 0, 0)};
  check({Buffer(type(DType::U16, {2}), std::vector<uint16_t>{65535, 50000})}, program, {DType::U16}, {2}, {});
}

TEST(Elementwise, RefusesBrokenPrograms) {
  const auto invoke = [](std::vector<int64_t> code, std::vector<int64_t> results, DType result = DType::F32) {
    return Invocation{
        "elementwise",
        {type(DType::F32, {4}), type(DType::F32, {4}), type(result, {4})},
        {{"program", std::move(code)}, {"constants", std::vector<double>{1}}, {"results", std::move(results)}}};
  };
  const auto f32 = int64_t(DType::F32);
  expectRefused(invoke({10, f32, 0, 2, -1}, {2}), "reads register 2, which is not defined before it");
  expectRefused(invoke({10, f32, -1, 0, -1}, {2}), "reads register -1");
  expectRefused(invoke({10, f32, 0, INT64_MAX, -1}, {2}), "is not defined before it");
  expectRefused(invoke({10, f32, 0, 1}, {2}), "not a multiple of five");
  expectRefused(invoke({99, f32, 0, 1, -1}, {2}), "unknown opcode 99");
  expectRefused(invoke({INT64_MIN, f32, 0, 1, -1}, {2}), "unknown opcode");
  expectRefused(invoke({10, 77, 0, 1, -1}, {2}), "unknown dtype 77");
  expectRefused(invoke({10, (int64_t(1) << 32) + f32, 0, 1, -1}, {2}), "unknown dtype");
  expectRefused(invoke({0, f32, 1, -1, -1}, {2}), "reads constant 1 of 1");
  expectRefused(invoke({10, f32, 0, 1, -1}, {3}), "is never defined");
  expectRefused(invoke({10, f32, 0, 1, -1}, {-1}), "names register -1");
  expectRefused(invoke({10, f32, 0, 1, -1}, {}), "attribute 'results' is empty");
  expectRefused(invoke({30, f32, 0, 1, -1}, {2}), "gives bool, not float32");
  expectRefused(invoke({16 + 1, f32, 0, 1, -1}, {2}), "is not defined for float32");
  expectRefused(invoke({40, f32, 0, 1, 1}, {2}), "chooses by a float32");
  expectRefused(invoke({10, f32, 0, 1, -1}, {2}, DType::F64), "must be float32, not float64");
  Invocation wide = invoke({10, f32, 0, 1, -1}, {2});
  wide.operands[0].shape = {2, 4};
  expectRefused(wide, "does not broadcast to the result [4]");
  wide.operands[0].shape = Shape(9, 1);
  expectRefused(wide, "has rank 9");
}

TEST(Elementwise, RefusesTooManyLiveRegisters) {
  Program program{1};
  for (int k = 0; k < 200; ++k)
    program.constant(DType::F32, k);
  int64_t sum = 0;
  for (int k = 0; k < 200; ++k)
    sum = program.add(Op::Add, DType::F32, sum, 1 + k);
  program.results = {sum};
  const Invocation invocation{"elementwise", {type(DType::F32, {4}), type(DType::F32, {4})}, program.attributes()};
  EXPECT_THROW(cpuKernels().find("elementwise")(invocation, {1}), Error);
}

} // namespace

} // namespace ds::kernels::test
