// The interpreter of kernels/elementwise/elementwise.cu, thread by thread on the host, against the reference.
#include "kernels/elementwise/elementwise_cuda_run.h"
#include "test/unit/kernels/Program.h"

namespace ds::kernels::cuda::test {

namespace {

using namespace ds::kernels::test;

using Arguments = ElementwiseArguments<mostSteps, mostTensors>;

template <typename Thread> void runThreads(const Arguments &arguments, bool &dividedByZero) {
  for (int64_t first = 0; first < arguments.elements; first += Thread::width) {
    auto thread = std::make_unique<Thread>(arguments, first);
    thread->run();
    if constexpr (Thread::width == 1)
      dividedByZero = dividedByZero || thread->dividesByZero;
  }
}

/// Runs `program` by the reference and by the interpreter, and expects the same numbers to within `tolerance`.
void expectSame(std::vector<Buffer> operands, const Program &program, const std::vector<DType> &types,
                const Shape &shape, double tolerance, bool allFloat) {
  const size_t inputs = operands.size();
  for (DType dtype : types)
    operands.emplace_back(type(dtype, shape));
  const Invocation invocation = invocationOf("elementwise", operands, program.attributes());
  std::vector<Buffer> reference = operands;
  ASSERT_TRUE(runKernel(cpuReferenceKernels(), invocation, reference).ok());
  const ElementwisePlan plan{Call(invocation)};
  EXPECT_EQ(plan.allFloat, allFloat);
  auto arguments = std::make_unique<Arguments>(elementwiseArguments<Arguments>(plan));
  std::vector<void *> addresses;
  for (Buffer &operand : operands)
    addresses.push_back(operand.data());
  setAddresses(*arguments, plan, addresses.data());
  bool dividedByZero = false;
  if (plan.allFloat)
    runThreads<FloatElementwise<Arguments, mostSlots>>(*arguments, dividedByZero);
  else
    runThreads<CellElementwise<Arguments, mostSlots>>(*arguments, dividedByZero);
  EXPECT_FALSE(dividedByZero);
  for (size_t r = inputs; r < operands.size(); ++r) {
    EXPECT_TRUE(operands[r].guardIntact());
    for (int64_t i = 0; i < elementCount(shape); ++i) {
      const double got = operands[r].at(i), want = reference[r].at(i);
      if (got == want || (std::isnan(got) && std::isnan(want)))
        continue;
      ASSERT_NEAR(got, want, tolerance * (1 + std::fabs(want))) << "result " << r - inputs << ", element " << i;
    }
  }
}

constexpr Op floatOps[] = {Op::Neg,   Op::Abs,   Op::Sqrt,  Op::Rsqrt,    Op::Reciprocal,   Op::Exp,
                           Op::Log,   Op::Erf,   Op::Tanh,  Op::Sigmoid,  Op::Relu,         Op::Sin,
                           Op::Cos,   Op::Sign,  Op::Floor, Op::Ceil,     Op::Round,        Op::Atan,
                           Op::Log1p, Op::Expm1, Op::Copy,  Op::GeluTanh, Op::GeluTanhSlope};

TEST(CudaElementwise, EveryFloatOpcode) {
  for (DType dtype : floatTypes)
    for (const Shape &shape : {Shape{3, 7}, Shape{4, 8}})
      for (Op op : floatOps) {
        Random random(uint64_t(op) + 1);
        SCOPED_TRACE("opcode " + std::to_string(int64_t(op)));
        Program program{1};
        program.results = {program.add(op, dtype, 0)};
        expectSame({random.buffer(dtype, shape)}, program, {dtype}, shape, dtype == DType::F32 ? 1e-6 : 1e-14,
                   dtype == DType::F32);
      }
}

TEST(CudaElementwise, BinaryComparisonsAndSelect) {
  for (DType dtype : {DType::F32, DType::F64, DType::I32, DType::I64, DType::U8}) {
    const bool isFloating = dtype == DType::F32 || dtype == DType::F64;
    for (Op op : {Op::Add, Op::Sub, Op::Mul, Op::Max, Op::Min, Op::Equal, Op::Less, Op::GreaterEqual}) {
      Random random(uint64_t(op) + 7);
      SCOPED_TRACE("opcode " + std::to_string(int64_t(op)) + " of " + std::string(name(dtype)));
      Program program{2};
      const bool compares = op >= Op::Equal;
      const int64_t value = program.add(op, compares ? DType::Bool : dtype, 0, 1);
      const int64_t smaller = program.add(Op::Less, DType::Bool, 0, 1);
      const int64_t chosen = program.add(Op::Select, dtype, smaller, 1, 0);
      const int64_t both = program.add(Op::Or, DType::Bool, smaller, program.add(Op::Not, DType::Bool, smaller));
      program.results = {value, chosen, both};
      expectSame({random.buffer(dtype, {5, 6}), random.buffer(dtype, {6})}, program,
                 {compares ? DType::Bool : dtype, dtype, DType::Bool}, {5, 6}, isFloating ? 1e-6 : 0,
                 dtype == DType::F32);
    }
  }
}

TEST(CudaElementwise, BroadcastsAndCasts) {
  for (const Shape &inner : {Shape{1, 3, 1}, Shape{5, 1, 8}, Shape{8}, Shape{}, Shape{5, 3, 1}, Shape{1, 3, 8}}) {
    Random random(11);
    SCOPED_TRACE(toString(inner));
    Program program{3};
    const int64_t sum = program.add(Op::Add, DType::F32, 0, 1);
    const int64_t scaled = program.add(Op::Mul, DType::F32, sum, program.constant(DType::F32, 0.5));
    const int64_t whole = program.add(Op::Cast, DType::I32, scaled);
    const int64_t with = program.add(Op::Add, DType::I32, whole, 2);
    program.results = {with, program.add(Op::Cast, DType::Bool, with)};
    expectSame(
        {random.buffer(DType::F32, {5, 3, 8}), random.buffer(DType::F32, inner), random.buffer(DType::I32, inner)},
        program, {DType::I32, DType::Bool}, {5, 3, 8}, 0, false);
    Program floats{2};
    floats.results = {floats.add(Op::Mul, DType::F32, floats.add(Op::Add, DType::F32, 0, 1), 1)};
    expectSame({random.buffer(DType::F32, {5, 3, 8}), random.buffer(DType::F32, inner)}, floats, {DType::F32},
               {5, 3, 8}, 1e-6, true);
  }
}

/// A chain in which every third register is read again at the end: slots are taken, kept and taken again.
TEST(CudaElementwise, ManyRegistersShareSlots) {
  Random random(5);
  for (int length : {1, 2, 9, 60, 200}) {
    Program program{2};
    std::vector<int64_t> kept;
    int64_t last = 0;
    for (int i = 0; i < length; ++i) {
      last = program.add(i % 2 ? Op::Add : Op::Max, DType::F32, last, i % 5 ? 1 : last);
      if (i % 3 == 0 && kept.size() < 20)
        kept.push_back(last);
    }
    for (int64_t reg : kept)
      last = program.add(Op::Sub, DType::F32, last, reg);
    program.results = {last, 0, kept.front()}; // an input as a result, too
    expectSame({random.buffer(DType::F32, {9, 3}), random.buffer(DType::F32, {3})}, program,
               {DType::F32, DType::F32, DType::F32}, {9, 3}, 1e-5, true);
    const ElementwisePlan plan{Call([&] {
      static Invocation invocation;
      invocation = {"elementwise",
                    {type(DType::F32, {9, 3}), type(DType::F32, {3}), type(DType::F32, {9, 3}),
                     type(DType::F32, {9, 3}), type(DType::F32, {9, 3})},
                    program.attributes()};
      return invocation;
    }())};
    EXPECT_LE(plan.slots, 24);
  }
}

/// What the plan of `program`, of one input and its results, is refused for; "" if it is not.
std::string refusalOf(const Program &program) {
  const Invocation invocation{"elementwise", std::vector<TensorType>(1 + program.results.size(), type(DType::F32, {4})),
                              program.attributes()};
  try {
    const ElementwisePlan plan{Call(invocation)};
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

TEST(CudaElementwise, RefusesWhatALaunchCannotHold) {
  const auto chain = [](int length) {
    Program program{1};
    int64_t last = 0;
    for (int i = 0; i < length; ++i)
      last = program.add(Op::Neg, DType::F32, last);
    program.results = {last};
    return program;
  };
  EXPECT_EQ(refusalOf(chain(mostSteps)), "");
  EXPECT_NE(refusalOf(chain(mostSteps + 1)).find("has 641 instructions; a GPU takes 640"), std::string::npos);
  const auto kept = [](int count) { // all made before the first is read again, by a sum
    Program program{1};
    std::vector<int64_t> values;
    for (int i = 0; i < count; ++i)
      values.push_back(program.add(Op::Neg, DType::F32, 0));
    int64_t sum = program.add(Op::Copy, DType::F32, 0);
    for (const int64_t value : values)
      sum = program.add(Op::Add, DType::F32, sum, value);
    program.results = {sum};
    return program;
  };
  EXPECT_EQ(refusalOf(kept(mostSlots)), "");
  EXPECT_NE(refusalOf(kept(mostSlots + 1)).find("values at once; a GPU keeps 128"), std::string::npos);
  const auto wide = [](int results) {
    Program program{1};
    program.results.assign(size_t(results), program.add(Op::Neg, DType::F32, 0));
    return program;
  };
  EXPECT_EQ(refusalOf(wide(mostTensors - 1)), "");
  EXPECT_NE(refusalOf(wide(mostTensors)).find(std::to_string(mostTensors)), std::string::npos);
}

TEST(CudaElementwise, AResultMayBeTheMemoryOfAnInput) {
  Random random(6);
  std::vector<Buffer> operands = {random.buffer(DType::F32, {10}), random.buffer(DType::F32, {10})};
  Program program{2};
  const int64_t sum = program.add(Op::Add, DType::F32, 0, 1);
  program.results = {sum, 0}; // result 0 is written over input 0, which is result 1
  const Invocation invocation{
      "elementwise",
      {type(DType::F32, {10}), type(DType::F32, {10}), type(DType::F32, {10}), type(DType::F32, {10})},
      program.attributes()};
  const ElementwisePlan plan{Call(invocation)};
  const std::vector<float> before(operands[0].as<float>(), operands[0].as<float>() + 10);
  auto arguments = std::make_unique<Arguments>(elementwiseArguments<Arguments>(plan));
  void *addresses[] = {operands[0].data(), operands[1].data(), operands[0].data(), operands[1].data()};
  const std::vector<float> second(operands[1].as<float>(), operands[1].as<float>() + 10);
  setAddresses(*arguments, plan, addresses);
  bool unused = false;
  runThreads<FloatElementwise<Arguments, mostSlots>>(*arguments, unused);
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(operands[0].as<float>()[i], before[i] + second[i]);
    EXPECT_EQ(operands[1].as<float>()[i], before[i]);
  }
}

TEST(CudaElementwise, FindsADivisionByZero) {
  Program program{2};
  program.results = {program.add(Op::Div, DType::I64, 0, 1)};
  std::vector<Buffer> operands = {Buffer(type(DType::I64, {2}), std::vector<int64_t>{6, INT64_MIN}),
                                  Buffer(type(DType::I64, {2}), std::vector<int64_t>{0, -1}),
                                  Buffer(type(DType::I64, {2}))};
  const ElementwisePlan plan{Call(invocationOf("elementwise", operands, program.attributes()))};
  auto arguments = std::make_unique<Arguments>(elementwiseArguments<Arguments>(plan));
  void *addresses[] = {operands[0].data(), operands[1].data(), operands[2].data()};
  setAddresses(*arguments, plan, addresses);
  bool divided = false;
  runThreads<CellElementwise<Arguments, mostSlots>>(*arguments, divided);
  EXPECT_TRUE(divided);
  EXPECT_EQ(operands[2].as<int64_t>()[1], INT64_MIN);
}

} // namespace

} // namespace ds::kernels::cuda::test
