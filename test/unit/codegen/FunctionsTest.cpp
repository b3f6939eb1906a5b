// exp, log, tanh and the like of compiled kernels against the library's in double precision: every 1009th float32, and
// those that have rules of their own.
#include "kernels/elementwise/elementwise_compiled_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <limits>

namespace ds::kernels {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float notANumber = std::numeric_limits<float>::quiet_NaN();
constexpr std::array specials = {0.0f,
                                 -0.0f,
                                 1.0f,
                                 -1.0f,
                                 2.0f,
                                 -2.0f,
                                 3.0f,
                                 -3.0f,
                                 0.5f,
                                 -0.5f,
                                 1.5f,
                                 -2.5f,
                                 infinity,
                                 -infinity,
                                 1e-45f,
                                 -1e-45f,
                                 1e-39f,
                                 -1e-39f,
                                 1.17549435e-38f,
                                 3.4028235e38f,
                                 -3.4028235e38f,
                                 88.72283f,
                                 88.7229f,
                                 -103.97f,
                                 -104.0f,
                                 -87.3365f,
                                 0.61f,
                                 0.925f,
                                 3.95f,
                                 0.785398185f,
                                 1.57079637f,
                                 3.14159274f,
                                 16777216.0f,
                                 16777217.0f,
                                 1e30f,
                                 notANumber};

/// How far `got` is from `wanted`, in units of the last place of a float32 of that size.
double distance(float got, double wanted) {
  const float rounded = float(wanted);
  if (std::isnan(rounded) || std::isnan(got))
    return std::isnan(rounded) && std::isnan(got) ? 0 : INFINITY;
  if (std::isinf(rounded) || std::isinf(got) || rounded == 0)
    return got == rounded && std::signbit(got) == std::signbit(rounded) ? 0
           : std::isinf(rounded) || std::isinf(got)
               ? (std::fabs(got) >= 3.4028e38f && std::fabs(wanted) > 3.4028e38 ? 1 : INFINITY)
               : std::fabs(got) / 1.401298464324817e-45 + (std::signbit(got) != std::signbit(rounded));
  const float size = std::max(std::fabs(rounded), 1.17549435e-38f);
  const double unit = double(std::nextafter(size, infinity)) - double(size);
  return std::fabs(double(got) - wanted) / unit;
}

struct Function {
  const char *name;
  double most; ///< units of the last place
  std::function<float(FloatFunctions<HostFloats> &, float)> ours;
  double (*library)(double);
};

void PrintTo(const Function &function, std::ostream *stream) { *stream << function.name; }

class Unary : public testing::TestWithParam<Function> {};

TEST_P(Unary, IsTheLibrarysWithinAFewUnits) {
  HostFloats model;
  FloatFunctions functions(model);
  const auto &[name, most, ours, library] = GetParam();
  double worst = 0;
  float at = 0;
  const auto compare = [&](float x) {
    const double far = distance(ours(functions, x), library(double(x)));
    if (far > worst) {
      worst = far;
      at = x;
    }
  };
  for (float x : specials)
    compare(x);
  for (uint64_t bits = 0; bits < uint64_t(1) << 32; bits += 1009)
    compare(std::bit_cast<float>(uint32_t(bits)));
  RecordProperty("worst", std::to_string(worst));
  std::printf("%s: %.2f units at %.9g\n", name, worst, double(at));
  EXPECT_LE(worst, most) << "at " << at;
}

#define DS_OURS(NAME) [](FloatFunctions<HostFloats> &f, float x) { return f.NAME(x); }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

INSTANTIATE_TEST_SUITE_P(
    Functions, Unary,
    testing::Values(Function{"exp", 2, DS_OURS(exp), std::exp}, Function{"log", 2, DS_OURS(log), std::log},
                    Function{"log1p", 2.5, DS_OURS(log1p), std::log1p},
                    Function{"expm1", 4, DS_OURS(expm1), std::expm1}, Function{"tanh", 2.5, DS_OURS(tanh), std::tanh},
                    Function{"erf", 2.5, DS_OURS(erf), std::erf}, Function{"sigmoid", 3, DS_OURS(sigmoid), sigmoid},
                    Function{"sin", 2.5, DS_OURS(sin), std::sin}, Function{"cos", 2.5, DS_OURS(cos), std::cos},
                    Function{"atan", 2.5, DS_OURS(atan), std::atan}),
    [](const auto &info) { return std::string(info.param.name); });

TEST(Power, IsTheLibrarysWithinAFewUnits) {
  HostFloats model;
  FloatFunctions functions(model);
  double worst = 0;
  float base = 0, exponent = 0;
  const auto compare = [&](float x, float y) {
    const double far = distance(functions.pow(x, y), std::pow(double(x), double(y)));
    if (far > worst) {
      worst = far;
      base = x;
      exponent = y;
    }
  };
  for (float x : specials)
    for (float y : specials)
      compare(x, y);
  uint64_t state = 7;
  const auto draw = [&] { return std::bit_cast<float>(uint32_t((state = state * 6364136223846793005u + 1) >> 32)); };
  for (int k = 0; k < 2000000; ++k) {
    const float x = draw(), y = draw();
    compare(x, y);
    // What does not overflow: exponents for which the result lies anywhere among the floats.
    const float size = std::fabs(x), logarithm = std::log(size);
    const float share = float(int32_t(state >> 40) % 2001 - 1000) / 1000;
    compare(size, 88 * share / logarithm);
    compare(1 + share / 1000, y);
    compare(x, float(int32_t(state >> 44) % 9 - 4));
  }
  std::printf("pow: %.2f units at %.9g ^ %.9g\n", worst, double(base), double(exponent));
  EXPECT_LE(worst, 5);
}

} // namespace
} // namespace ds::kernels
