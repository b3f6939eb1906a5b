// The fast functions of elementwise against float64.
#include "test/unit/kernels/Program.h"

#include <cmath>
#include <limits>

namespace ds::kernels::test {

namespace {

/// Values where the fast functions change their formula, and the special ones.
std::vector<float> hardFloats() {
  const float inf = std::numeric_limits<float>::infinity();
  std::vector<float> values = {0.0f,    -0.0f,           inf,     -inf,    std::nanf(""), 1e-45f,
                               -1e-45f, 1.17549435e-38f, 3.4e38f, -3.4e38f};
  for (float magnitude : {1e-40f, 1e-20f, 1e-6f,  0.1f,   0.5f,    0.624999f, 0.625f,     0.9999999f, 1.0f,  1.0000001f,
                          1.5f,   2.0f,   3.9f,   4.0f,   5.0f,    9.0f,      20.0f,      87.3f,      88.7f, 88.73f,
                          89.5f,  103.9f, 104.5f, 150.0f, 1000.0f, 1e5f,      1048575.0f, 1e7f,       1e20f})
    for (float sign : {1.0f, -1.0f})
      values.push_back(sign * magnitude);
  return values;
}

/// Distance in units in the last place of a float near `want`; 0 for equal specials.
double ulps(float got, double want) {
  if (std::isnan(want))
    return std::isnan(got) ? 0 : 1e9;
  const float rounded = float(want);
  if (rounded == got)
    return 0;
  if (std::isinf(rounded) || std::isinf(got))
    return 1e9;
  const double unit =
      std::max(std::ldexp(1.0, -149), std::ldexp(1.0, std::ilogb(std::max(std::fabs(want), 1e-45)) - 23));
  return std::fabs(got - want) / unit;
}

void checkAccuracy(Op op, double (*exact)(double), double limit) {
  std::vector<float> values = hardFloats();
  std::mt19937 engine(uint32_t(op) + 1);
  for (int i = 0; i < 200000; ++i)
    values.push_back(float(std::ldexp(std::uniform_real_distribution<double>(-2, 2)(engine), int(engine() % 30) - 20)));
  const Shape shape{int64_t(values.size())};
  Program program{1};
  program.results = {program.add(op, DType::F32, 0)};
  std::vector<Buffer> operands = {Buffer(type(DType::F32, shape), values), Buffer(type(DType::F32, shape))};
  ASSERT_TRUE(runKernel(cpuKernels(), invocationOf("elementwise", operands, program.attributes()), operands).ok());
  double worst = 0;
  float worstAt = 0;
  for (size_t i = 0; i < values.size(); ++i)
    if (const double error = ulps(operands[1].as<float>()[i], exact(double(values[i]))); error > worst) {
      worst = error;
      worstAt = values[i];
    }
  EXPECT_LE(worst, limit) << "opcode " << int64_t(op) << " at " << worstAt;
  testing::Test::RecordProperty("ulps", std::to_string(worst));
}

TEST(Elementwise, FastFunctionsAreAccurate) {
  checkAccuracy(Op::Exp, [](double x) { return std::exp(x); }, 1.5);
  checkAccuracy(Op::Log, [](double x) { return std::log(x); }, 1.5);
  checkAccuracy(Op::Log1p, [](double x) { return std::log1p(x); }, 2);
  checkAccuracy(Op::Expm1, [](double x) { return std::expm1(x); }, 3);
  checkAccuracy(Op::Tanh, [](double x) { return std::tanh(x); }, 2);
  checkAccuracy(Op::Erf, [](double x) { return std::erf(x); }, 2);
  checkAccuracy(
      Op::Sigmoid, [](double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }, 2.5);
  checkAccuracy(Op::Sin, [](double x) { return std::isinf(x) ? std::nan("") : std::sin(x); }, 1);
  checkAccuracy(Op::Cos, [](double x) { return std::isinf(x) ? std::nan("") : std::cos(x); }, 1);
  checkAccuracy(Op::Sqrt, [](double x) { return std::sqrt(x); }, 0.5);
}

// Far below 0 GELU is the rest of a difference: right to digits of x.
TEST(Elementwise, GeluIsAccurateBesideItsInput) {
  std::vector<float> values;
  for (int i = -40000; i <= 40000; ++i)
    values.push_back(float(i) / 3001);
  const Shape shape{int64_t(values.size())};
  for (Op op : {Op::GeluTanh, Op::GeluTanhSlope}) {
    Program program{1};
    program.results = {program.add(op, DType::F32, 0)};
    std::vector<Buffer> operands = {Buffer(type(DType::F32, shape), values), Buffer(type(DType::F32, shape))};
    ASSERT_TRUE(runKernel(cpuKernels(), invocationOf("elementwise", operands, program.attributes()), operands).ok());
    for (size_t i = 0; i < values.size(); ++i) {
      const auto x = double(values[i]), t = std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x));
      const double slope = 0.7978845608028654 * (1 + 0.134145 * x * x);
      const double want = op == Op::GeluTanh ? 0.5 * x * (1 + t) : 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope;
      ASSERT_NEAR(double(operands[1].as<float>()[i]), want, 6e-7 * (1 + std::fabs(x))) << "at " << x;
    }
  }
}

TEST(Elementwise, SmallSinesWithoutTheSlowPath) {
  // Without infinities in the tile: the vector code alone.
  std::vector<float> values;
  std::mt19937 engine(3);
  for (int i = 0; i < 100000; ++i)
    values.push_back(float(std::uniform_real_distribution<double>(-1000000, 1000000)(engine)) /
                     float(1 + engine() % 100000));
  const Shape shape{int64_t(values.size())};
  Program program{1};
  program.results = {program.add(Op::Sin, DType::F32, 0), program.add(Op::Cos, DType::F32, 0)};
  std::vector<Buffer> operands = {Buffer(type(DType::F32, shape), values), Buffer(type(DType::F32, shape)),
                                  Buffer(type(DType::F32, shape))};
  ASSERT_TRUE(runKernel(cpuKernels(), invocationOf("elementwise", operands, program.attributes()), operands).ok());
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_LE(ulps(operands[1].as<float>()[i], std::sin(double(values[i]))), 1) << values[i];
    ASSERT_LE(ulps(operands[2].as<float>()[i], std::cos(double(values[i]))), 1) << values[i];
  }
}

TEST(Elementwise, PowersOfAllKinds) {
  Random random(17);
  Buffer base = random.buffer(DType::F32, {20000}, 5), positive = base;
  for (int64_t i = 0; i < 20000; ++i)
    positive.as<float>()[i] = std::fabs(positive.as<float>()[i]) + 1e-3f;
  const Buffer exponent = random.buffer(DType::F32, {20000}, 8);
  const std::vector<float> hard = hardFloats();
  Buffer specialBase(type(DType::F32, {int64_t(hard.size()), 1}), hard);
  Buffer specialExponent(type(DType::F32, {int64_t(hard.size())}), hard);
  Program program{2};
  program.results = {program.add(Op::Pow, DType::F32, 0, 1)};
  check({positive, exponent}, program, {DType::F32}, {20000}, {2e-7, 2e-45});
  check({base, exponent}, program, {DType::F32}, {20000}, {2e-7, 2e-45});
  const auto n = int64_t(hard.size());
  check({specialBase, specialExponent}, program, {DType::F32}, {n, n}, {2e-7, 2e-45});
  for (DType dtype : floatTypes)
    for (double constant : {2.0, 3.0, 0.5, -0.5, 1.0, -1.0, -2.0, 2.5, 0.0}) {
      SCOPED_TRACE("exponent " + std::to_string(constant));
      Buffer x = random.buffer(dtype, {3000}, 2);
      for (int64_t i = 0; constant != std::floor(constant) && i < 3000; ++i)
        dtype == DType::F32 ? void(x.as<float>()[i] = std::fabs(x.as<float>()[i]))
                            : void(x.as<double>()[i] = std::fabs(x.as<double>()[i]));
      Program power{1};
      power.results = {power.add(Op::Pow, dtype, 0, power.constant(dtype, constant))};
      check({x}, power, {dtype}, {3000}, dtype == DType::F32 ? Tolerance{4e-7, 0} : Tolerance{1e-15, 0});
    }
}

} // namespace

} // namespace ds::kernels::test
