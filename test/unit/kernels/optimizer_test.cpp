// adamw, sgd, adagrad, lion, lamb, block_sum_squares, global_norm, clip_factor, learning_rate, cycled_momentum,
// increment.
#include "kernels/KernelTable.h"
#include "kernels/Numbers.h"
#include "test/unit/kernels/Harness.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <utility>

namespace ds::kernels::test {

namespace {

Buffer scalar(double value) { return {type(DType::F64, {}), std::vector<double>{value}}; }
Buffer scalar(int64_t value) { return {type(DType::I64, {}), std::vector<int64_t>{value}}; }

Attributes adamAttributes(double weightDecay, int64_t decoupled, double beta1 = 0.9) {
  return {
      {"beta1", beta1}, {"beta2", 0.999}, {"epsilon", 1e-8}, {"weight_decay", weightDecay}, {"adam_w_mode", decoupled}};
}

Buffer squares(Random &random, DType dtype, const Shape &shape) {
  Buffer v = random.buffer(dtype, shape);
  for (int64_t i = 0; i < elementCount(shape); ++i)
    dtype == DType::F32 ? void(v.as<float>()[i] *= v.as<float>()[i]) : void(v.as<double>()[i] *= v.as<double>()[i]);
  return v;
}

TEST(AdamW, MatchesTheFormula) {
  for (DType dtype : floatTypes)
    for (const Shape &shape : {Shape{}, Shape{0}, Shape{3, 7}, Shape{40000}})
      for (int64_t step : {0, 1, 100, 100000})
        for (int64_t decoupled : {0, 1})
          for (double beta1 : {0.9, 0.3}) {
            Random random{uint64_t(step)};
            SCOPED_TRACE(toString(shape) + " step " + std::to_string(step));
            const double epsilon = dtype == DType::F32 ? 1e-6 : 1e-14;
            expectMatchesReference("adamw",
                                   {random.buffer(dtype, shape), random.buffer(dtype, shape),
                                    random.buffer(dtype, shape), squares(random, dtype, shape), scalar(0.01),
                                    scalar(step), scalar(0.5)},
                                   adamAttributes(0.1, decoupled, beta1), {0, 2, 3}, {epsilon, epsilon}, {}, {0, 2, 3});
          }
}

TEST(AdamW, OneStepByHand) {
  // torch.optim.AdamW([1.], lr=.1, weight_decay=.5), gradient 2: p = 1 * (1 - .05) - .1 * 1 / (1 + 1e-8 / 2).
  std::vector<Buffer> operands = {Buffer(type(DType::F64, {1}), std::vector<double>{1}),
                                  Buffer(type(DType::F64, {1}), std::vector<double>{2}),
                                  Buffer(type(DType::F64, {1}), std::vector<double>{0}),
                                  Buffer(type(DType::F64, {1}), std::vector<double>{0}),
                                  scalar(0.1),
                                  scalar(int64_t(0)),
                                  scalar(1.0)};
  ASSERT_TRUE(runKernel(cpuKernels(), invocationOf("adamw", operands, adamAttributes(0.5, 1)), operands).ok());
  EXPECT_NEAR(operands[0].at(0), 0.85, 1e-8);
  EXPECT_NEAR(operands[2].at(0), 0.2, 1e-15);
  EXPECT_NEAR(operands[3].at(0), 0.004, 1e-15);
}

TEST(Sgd, MatchesTheFormula) {
  for (DType dtype : floatTypes)
    for (const Shape &shape : {Shape{}, Shape{0}, Shape{3, 7}, Shape{40000}})
      for (int64_t step : {0, 3})
        for (double momentum : {0.0, 0.9})
          for (int64_t nesterov = 0; nesterov <= (momentum > 0); ++nesterov) {
            Random random{uint64_t(step)};
            SCOPED_TRACE(toString(shape) + " momentum " + std::to_string(momentum));
            std::vector<Buffer> operands = {random.buffer(dtype, shape), random.buffer(dtype, shape)};
            std::vector<size_t> written = {0};
            if (momentum > 0) {
              operands.push_back(random.buffer(dtype, shape));
              written.push_back(2);
            }
            for (const Buffer &value : {scalar(0.1), scalar(step), scalar(0.5)})
              operands.push_back(value);
            const double epsilon = dtype == DType::F32 ? 1e-6 : 1e-15;
            expectMatchesReference("sgd", operands,
                                   {{"momentum", momentum}, {"weight_decay", 0.01}, {"nesterov", nesterov}}, written,
                                   {epsilon, epsilon}, {}, written);
          }
}

TEST(Sgd, FirstStepIgnoresTheBuffer) {
  std::vector<Buffer> operands = {Buffer(type(DType::F32, {1}), std::vector<float>{1}),
                                  Buffer(type(DType::F32, {1}), std::vector<float>{2}),
                                  Buffer(type(DType::F32, {1}), std::vector<float>{std::nanf("")}),
                                  scalar(0.5),
                                  scalar(int64_t(0)),
                                  scalar(1.0)};
  const Attributes attributes = {{"momentum", 0.9}, {"weight_decay", 0.0}, {"nesterov", int64_t(0)}};
  ASSERT_TRUE(runKernel(cpuKernels(), invocationOf("sgd", operands, attributes), operands).ok());
  EXPECT_EQ(operands[0].at(0), 0);
  EXPECT_EQ(operands[2].at(0), 2);
}

Attributes adagradAttributes(double lrDecay) {
  return {{"epsilon", 1e-10}, {"weight_decay", 0.01}, {"lr_decay", lrDecay}};
}

TEST(Adagrad, MatchesTheFormula) {
  for (DType dtype : floatTypes)
    for (const Shape &shape : {Shape{}, Shape{0}, Shape{3, 7}, Shape{40000}})
      for (int64_t step : {0, 7})
        for (double lrDecay : {0.0, 0.1}) {
          Random random{uint64_t(step)};
          SCOPED_TRACE(toString(shape) + " step " + std::to_string(step));
          const double epsilon = dtype == DType::F32 ? 1e-6 : 1e-14;
          expectMatchesReference("adagrad",
                                 {random.buffer(dtype, shape), random.buffer(dtype, shape),
                                  squares(random, dtype, shape), scalar(0.1), scalar(step), scalar(0.5)},
                                 adagradAttributes(lrDecay), {0, 2}, {epsilon, epsilon}, {}, {0, 2});
        }
}

TEST(Adagrad, OneStepByHand) {
  // torch.optim.Adagrad([1.], lr=.1, lr_decay=1) after one update that left 5: gradient 2 gives p = 1 - .1 / 2 * 2 / 3.
  std::vector<Buffer> operands = {Buffer(type(DType::F64, {1}), std::vector<double>{1}),
                                  Buffer(type(DType::F64, {1}), std::vector<double>{2}),
                                  Buffer(type(DType::F64, {1}), std::vector<double>{5}),
                                  scalar(0.1),
                                  scalar(int64_t(1)),
                                  scalar(1.0)};
  const Attributes attributes = {{"epsilon", 0.0}, {"weight_decay", 0.0}, {"lr_decay", 1.0}};
  ASSERT_TRUE(runKernel(cpuKernels(), invocationOf("adagrad", operands, attributes), operands).ok());
  EXPECT_NEAR(operands[0].at(0), 1 - 0.1 / 3, 1e-15);
  EXPECT_EQ(operands[2].at(0), 9);
}

Attributes lionAttributes(int64_t cycled = 0) {
  return {{"beta1", 0.75}, {"beta2", 0.5}, {"weight_decay", 0.5}, {"cycled", cycled}};
}

TEST(Lion, MatchesTheFormula) {
  for (DType dtype : floatTypes)
    for (const Shape &shape : {Shape{}, Shape{0}, Shape{3, 7}, Shape{40000}})
      for (int64_t cycled : {0, 1}) {
        Random random{7};
        SCOPED_TRACE(toString(shape));
        std::vector<Buffer> operands = {random.buffer(dtype, shape), random.buffer(dtype, shape),
                                        random.buffer(dtype, shape), scalar(0.1),
                                        scalar(int64_t(3)),          scalar(0.5)};
        if (cycled)
          operands.push_back(scalar(0.25));
        const double epsilon = dtype == DType::F32 ? 1e-6 : 1e-14;
        expectMatchesReference("lion", operands, lionAttributes(cycled), {0, 2}, {epsilon, epsilon}, {}, {0, 2});
      }
}

TEST(Lion, OneStepByHand) {
  // Directions 0.75 * 1 - 0.25 * 4 < 0, 0, and 0.75 * 2 + 0.25 * 2 > 0; where there is none, there is only the decay.
  const auto three = [](double a, double b, double c) {
    return Buffer(type(DType::F64, {3}), std::vector<double>{a, b, c});
  };
  std::vector<Buffer> operands = {three(1, 1, 1), three(-8, 0, 4),    three(1, 0, 2),
                                  scalar(0.1),    scalar(int64_t(0)), scalar(0.5)};
  ASSERT_TRUE(runKernel(cpuKernels(), invocationOf("lion", operands, lionAttributes()), operands).ok());
  const double p[] = {1.05, 0.95, 0.85}, m[] = {-1.5, 0, 2};
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR(operands[0].at(i), p[i], 1e-15);
    EXPECT_EQ(operands[2].at(i), m[i]);
  }
}

Attributes lambAttributes(int64_t biasCorrection, double minCoeff = 0.01, double maxCoeff = 10, int64_t cycled = 0) {
  return {{"beta1", 0.75},
          {"beta2", 0.5},
          {"epsilon", 1e-6},
          {"weight_decay", 0.5},
          {"bias_correction", biasCorrection},
          {"max_coeff", maxCoeff},
          {"min_coeff", minCoeff},
          {"cycled", cycled}};
}

TEST(Lamb, MatchesTheFormula) {
  for (DType dtype : floatTypes)
    for (const Shape &shape : {Shape{}, Shape{0}, Shape{3, 7}, Shape{40000}})
      for (int64_t step : {0, 100})
        for (int64_t biasCorrection : {0, 1})
          for (int64_t cycled : {0, 1}) {
            Random random{uint64_t(step)};
            SCOPED_TRACE(toString(shape) + " step " + std::to_string(step));
            std::vector<Buffer> operands = {random.buffer(dtype, shape),
                                            random.buffer(dtype, shape),
                                            random.buffer(dtype, shape),
                                            squares(random, dtype, shape),
                                            scalar(0.01),
                                            scalar(step),
                                            scalar(0.5)};
            if (cycled)
              operands.push_back(scalar(0.25));
            const double epsilon = dtype == DType::F32 ? 1e-6 : 1e-14;
            expectMatchesReference("lamb", operands, lambAttributes(biasCorrection, 0.01, 10, cycled), {0, 2, 3},
                                   {epsilon, epsilon}, {}, {0, 2, 3});
          }
}

/// p = [3, 4], m = [0, 0.25 * 4], v = [0, 0.5 * 16]; without epsilon and decay the update is [0, 1 / sqrt(8)].
double secondAfterLamb(int64_t biasCorrection, double minCoeff, double maxCoeff) {
  const auto two = [](double a, double b) { return Buffer(type(DType::F64, {2}), std::vector<double>{a, b}); };
  std::vector<Buffer> operands = {two(3, 4),   two(0, 8),          two(0, 0),  two(0, 0),
                                  scalar(0.1), scalar(int64_t(0)), scalar(0.5)};
  Attributes attributes = lambAttributes(biasCorrection, minCoeff, maxCoeff);
  attributes["epsilon"] = 1e-300;
  attributes["weight_decay"] = 0.0;
  // 0 / 1e-300 is 0: the first element stays.
  EXPECT_TRUE(runKernel(cpuKernels(), invocationOf("lamb", operands, attributes), operands).ok());
  EXPECT_EQ(operands[0].at(0), 3);
  EXPECT_EQ(operands[2].at(1), 1);
  EXPECT_EQ(operands[3].at(1), 8);
  return operands[0].at(1);
}

TEST(Lamb, OneStepByHand) {
  const double update = 1 / std::sqrt(8.0);
  EXPECT_NEAR(secondAfterLamb(0, 0, 100), 4 - 0.1 * 5, 1e-14); // |p| / |update| * update
  EXPECT_NEAR(secondAfterLamb(0, 0, 2), 4 - 0.1 * 2 * update, 1e-14);
  EXPECT_NEAR(secondAfterLamb(0, 20, 100), 4 - 0.1 * 20 * update, 1e-14);
  EXPECT_NEAR(secondAfterLamb(1, 0, 100), 4 - 0.1 * 5 * std::sqrt(0.5) / 0.25, 1e-14);
}

TEST(Lamb, GoesByOneWhereThereIsNoNorm) {
  const auto one = [](double a) { return Buffer(type(DType::F64, {1}), std::vector<double>{a}); };
  std::vector<Buffer> operands = {one(0), one(8), one(0), one(0), scalar(0.1), scalar(int64_t(0)), scalar(0.5)};
  const Attributes attributes = lambAttributes(0, 2, 3);
  ASSERT_TRUE(runKernel(cpuKernels(), invocationOf("lamb", operands, attributes), operands).ok());
  EXPECT_NEAR(operands[0].at(0), -0.1 / (std::sqrt(8.0) + 1e-6), 1e-14);
}

TEST(AdamW, TakesAMomentumThatIsCycled) {
  Random random{1};
  const std::vector<Buffer> plain = {random.buffer(DType::F64, {5}),
                                     random.buffer(DType::F64, {5}),
                                     random.buffer(DType::F64, {5}),
                                     squares(random, DType::F64, {5}),
                                     scalar(0.1),
                                     scalar(int64_t(3)),
                                     scalar(1.0)};
  std::vector<Buffer> fixed = plain, cycled = plain;
  cycled.push_back(scalar(0.3));
  Attributes attributes = adamAttributes(0.1, 1, 0.9);
  attributes["cycled"] = int64_t(1);
  expectMatchesReference("adamw", cycled, attributes, {0, 2, 3}, {1e-14, 1e-14}, {}, {0, 2, 3});
  ASSERT_TRUE(runKernel(cpuKernels(), invocationOf("adamw", cycled, attributes), cycled).ok());
  ASSERT_TRUE(runKernel(cpuKernels(), invocationOf("adamw", fixed, adamAttributes(0.1, 1, 0.3)), fixed).ok());
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(cycled[0].at(i), fixed[0].at(i));
}

TEST(Optimizers, FailOnANegativeStep) {
  const Buffer x(type(DType::F32, {2}), std::vector<float>{1, 2});
  expectFails("adamw", {x, x, x, x, scalar(0.1), scalar(int64_t(-1)), scalar(1.0)}, adamAttributes(0, 1),
              "step is -1; it counts from 0");
  expectFails("sgd", {x, x, scalar(0.1), scalar(INT64_MIN), scalar(1.0)},
              {{"momentum", 0.0}, {"weight_decay", 0.0}, {"nesterov", int64_t(0)}}, "it counts from 0");
  expectFails("lion", {x, x, x, scalar(0.1), scalar(int64_t(-1)), scalar(1.0)}, lionAttributes(), "it counts from 0");
  expectFails("lamb", {x, x, x, x, scalar(0.1), scalar(int64_t(-1)), scalar(1.0)}, lambAttributes(1),
              "it counts from 0");
  expectFails("adagrad", {x, x, x, scalar(0.1), scalar(int64_t(-1)), scalar(1.0)}, adagradAttributes(0),
              "it counts from 0");
}

/// Calls visit(kernel, attributes, operands) for each optimizer of the table, so that one that is added is asked, too:
/// `tensor` stands for what is a variable, `clip` for the factor.
void forEachOptimizer(const Buffer &tensor, double clip, auto visit) {
  const std::map<std::string, Attributes> known = {
      {"adamw", adamAttributes(0.1, 1)},
      {"sgd", {{"momentum", 0.9}, {"weight_decay", 0.1}, {"nesterov", int64_t(0)}}},
      {"adagrad", adagradAttributes(0.1)},
      {"lion", lionAttributes()},
      {"lamb", lambAttributes(1)}};
  for (const KernelRow &row : allKernels()) {
    if (!row.isOptimizer())
      continue;
    SCOPED_TRACE(row.name);
    const std::string kernel(row.name);
    ASSERT_TRUE(known.contains(kernel));
    std::vector<Buffer> operands;
    for (const OperandRow &operand : row.operands)
      if (operand.attribute != "cycled")
        operands.push_back(operand.name == "lr"     ? scalar(0.1)
                           : operand.name == "step" ? scalar(int64_t(1))
                           : operand.name == "clip" ? scalar(clip)
                                                    : tensor);
    visit(kernel, known.at(kernel), std::move(operands));
  }
}

bool sameBytes(const Buffer &a, const Buffer &b) { return std::memcmp(a.data(), b.data(), b.bytes()) == 0; }

TEST(Optimizers, ChangeNothingWhereClipIsZero) {
  const Buffer tensor(type(DType::F32, {2}), std::vector<float>{1, 2});
  forEachOptimizer(tensor, 0.0,
                   [](const std::string &kernel, const Attributes &attributes, std::vector<Buffer> before) {
                     before[1] = Buffer(type(DType::F32, {2}), std::vector<float>{HUGE_VALF, std::nanf("")});
                     for (const KernelRegistry *registry : {&cpuKernels(), &cpuReferenceKernels()}) {
                       std::vector<Buffer> got = before;
                       ASSERT_TRUE(runKernel(*registry, invocationOf(kernel, got, attributes), got).ok());
                       for (size_t i = 0; i < got.size(); ++i)
                         EXPECT_TRUE(sameBytes(got[i], before[i])) << i;
                     }
                   });
}

/// A gradient of 16 bits, and the same numbers in `wide`.
std::pair<Buffer, Buffer> narrowGradient(DType narrow, DType wide, int64_t count) {
  Random random{uint64_t(count)};
  Buffer low = random.buffer(narrow, {count}), high(type(wide, {count}));
  for (int64_t i = 0; i < count; ++i)
    storeDouble(high.data() + i * byteSize(wide), wide, low.at(i));
  return {low, high};
}

/// Gradients of 16 bits give the bits of the same numbers in float32, and need no workspace for it.
TEST(Optimizers, ReadGradientsOfSixteenBits) {
  for (DType narrow : {DType::BF16, DType::F16})
    for (int64_t count : {0, 5, 1024, 70001}) {
      const auto [low, high] = narrowGradient(narrow, DType::F32, count);
      Random random{7};
      const Buffer tensor = squares(random, DType::F32, {count});
      forEachOptimizer(
          tensor, 0.5, [&](const std::string &kernel, const Attributes &attributes, std::vector<Buffer> operands) {
            std::vector<Buffer> expected = operands;
            operands[1] = low, expected[1] = high;
            ASSERT_TRUE(runKernel(cpuKernels(), invocationOf(kernel, expected, attributes), expected).ok());
            EXPECT_EQ(workspaceBytes(invocationOf(kernel, operands, attributes), {}), 0);
            std::vector<size_t> written = {0};
            for (size_t i = KernelRow::state; operands[i].type.dtype == DType::F32; ++i)
              written.push_back(i);
            const std::vector<Buffer> got =
                expectMatchesReference(kernel, operands, attributes, written, {1e-5, 1e-5}, {}, written);
            for (size_t i : written)
              EXPECT_TRUE(sameBytes(got[i], expected[i])) << kernel << " operand " << i << " of " << count;
          });
    }
}

/// `buffer` rounded to `dtype`, or widened.
Buffer converted(const Buffer &buffer, DType dtype) {
  Buffer result(type(dtype, buffer.type.shape));
  for (int64_t i = 0; i < elementCount(buffer.type.shape); ++i)
    storeDouble(result.data() + i * byteSize(dtype), dtype, buffer.at(i));
  return result;
}

/// State of 16 bits becomes what float32 makes of the same numbers, rounded once, and needs no workspace for it.
TEST(AdamW, KeepsStateOfSixteenBits) {
  for (DType narrow : {DType::BF16, DType::F16})
    for (DType moments : {narrow, DType::F32})
      for (int64_t count : {0, 5, 1024, 70001}) {
        Random random{7};
        std::vector<Buffer> operands = {random.buffer(narrow, {count}),
                                        random.buffer(narrow, {count}),
                                        converted(random.buffer(DType::F32, {count}), moments),
                                        converted(squares(random, DType::F32, {count}), moments),
                                        scalar(0.1),
                                        scalar(int64_t(1)),
                                        scalar(0.5)};
        std::vector<Buffer> expected = operands;
        for (size_t i = 0; i < 4; ++i)
          expected[i] = converted(operands[i], DType::F32);
        const Attributes attributes = adamAttributes(0.1, 1);
        EXPECT_EQ(workspaceBytes(invocationOf("adamw", operands, attributes), {}), 0);
        ASSERT_TRUE(runKernel(cpuKernels(), invocationOf("adamw", expected, attributes), expected).ok());
        ASSERT_TRUE(runKernel(cpuKernels(), invocationOf("adamw", operands, attributes), operands).ok());
        for (size_t i : {0, 2, 3})
          EXPECT_TRUE(sameBytes(operands[i], converted(expected[i], operands[i].type.dtype))) << i << " of " << count;
      }
}

/// Not of the reference, which widens them first.
TEST(AdamW, RefusesStateOfOtherTypes) {
  const TensorType x = type(DType::F32, {2}), low = type(DType::BF16, {2}), half = type(DType::F16, {2}),
                   f64 = type(DType::F64, {}), i64 = type(DType::I64, {});
  const auto refusal = [&](const TensorType &p, const TensorType &g, const TensorType &m, const TensorType &v) {
    try {
      cpuKernels().find("adamw")({"adamw", {p, g, m, v, f64, i64, f64}, adamAttributes(0, 1)}, {});
    } catch (const Error &error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(refusal(low, half, x, x), "kernel 'adamw': operand 1 (g) must have the type of p, bfloat16");
  EXPECT_EQ(refusal(x, x, low, low), "kernel 'adamw': operand 2 (m) must have the type of p, float32");
  EXPECT_EQ(refusal(low, low, low, x), "kernel 'adamw': operand 3 (v) must have the type of m, bfloat16");
  EXPECT_EQ(refusal(low, low, half, half),
            "kernel 'adamw': operand 2 (m) must have the type of p, bfloat16, or float32");
  EXPECT_EQ(refusal(low, low, x, x), "accepted");
}

TEST(Optimizers, RefuseWrongCalls) {
  const TensorType x = type(DType::F32, {2}), f64 = type(DType::F64, {}), i64 = type(DType::I64, {});
  expectRefused({"adamw", {x, x, x, x, f64, f64, f64}, adamAttributes(0, 1)}, "must be int64");
  expectRefused({"adamw", {x, x, type(DType::F32, {3}), x, f64, i64, f64}, adamAttributes(0, 1)},
                "must have shape [2]");
  expectRefused({"adamw", {x, x, x, x, f64, i64, f64}, adamAttributes(0, 2)}, "must be 0 or 1, not 2");
  expectRefused({"lamb", {x, x, x, x, f64, i64, f64}, lambAttributes(1, 3, 2)}, "at most 'max_coeff'");
  expectRefused({"lamb", {x, x, x, x, f64, i64, f64}, lambAttributes(1, -1, 2)}, "must be at least 0");
  const auto sgd = [](double momentum, int64_t nesterov) {
    return Attributes{{"momentum", momentum}, {"weight_decay", 0.0}, {"nesterov", nesterov}};
  };
  expectRefused({"sgd", {x, x, f64, i64, f64}, sgd(0.9, 0)}, "takes 6 operands, not 5");
  expectRefused({"sgd", {x, x, x, f64, i64, f64}, sgd(0, 0)}, "takes 5 operands, not 6");
  expectRefused({"sgd", {x, x, f64, i64, f64}, sgd(0, 1)}, "'nesterov' needs momentum");
  expectRefused({"adagrad", {x, x, type(DType::F64, {2}), f64, i64, f64}, adagradAttributes(0)}, "must be float32");
  expectRefused({"adagrad", {x, x, x, i64, i64, f64}, adagradAttributes(0)}, "must be float64");
}

TEST(BlockSumSquares, ReadsSixteenBits) {
  for (DType narrow : {DType::BF16, DType::F16})
    for (int64_t count : {0, 65, 5000}) {
      const auto [low, high] = narrowGradient(narrow, DType::F32, count);
      const Buffer partials(type(DType::F64, {(count + 255) / 256}));
      const Attributes attributes = {{"block", int64_t(256)}};
      std::vector<Buffer> expected = {high, partials};
      ASSERT_TRUE(runKernel(cpuKernels(), invocationOf("block_sum_squares", expected, attributes), expected).ok());
      const std::vector<Buffer> got =
          expectMatchesReference("block_sum_squares", {low, partials}, attributes, {1}, {1e-14, 0});
      EXPECT_TRUE(sameBytes(got[1], expected[1])) << count;
    }
}

TEST(BlockSumSquares, MatchesBlockByBlock) {
  for (DType dtype : floatTypes)
    for (int64_t block : {64, 256, 1024})
      for (int64_t count : {0, 1, 63, 64, 65, 1023, 1024, 1025, 100000}) {
        Random random{uint64_t(count)};
        SCOPED_TRACE(count);
        expectMatchesReference("block_sum_squares",
                               {random.buffer(dtype, {count}), Buffer(type(DType::F64, {(count + block - 1) / block}))},
                               {{"block", block}}, {1}, {1e-14, 0});
      }
  expectRefused({"block_sum_squares", {type(DType::F32, {1025}), type(DType::F64, {1})}, {{"block", int64_t(1024)}}},
                "must have shape [2]");
  for (int64_t block : {32, 96, 2048})
    expectRefused({"block_sum_squares", {type(DType::F32, {64}), type(DType::F64, {1})}, {{"block", block}}},
                  "'block' must be a power of two from 64 to 1024");
}

double runScalar(const std::string &kernel, std::vector<Buffer> operands, const Attributes &attributes) {
  operands.push_back(scalar(std::nan("")));
  const size_t result = operands.size() - 1;
  return expectMatchesReference(kernel, std::move(operands), attributes, {result}, {1e-15, 0})[result].at(0);
}

Attributes blocksOf(std::vector<int64_t> blocks) { return {{"blocks", std::move(blocks)}}; }

TEST(GlobalNorm, AddsAllPartials) {
  EXPECT_EQ(runScalar("global_norm",
                      {Buffer(type(DType::F64, {2}), std::vector<double>{1, 4}),
                       Buffer(type(DType::F64, {1}), std::vector<double>{4})},
                      blocksOf({1024, 1024})),
            3);
  EXPECT_EQ(runScalar("global_norm", {}, blocksOf({})), 0);
  const TensorType f64 = type(DType::F64, {}), two = type(DType::F64, {2});
  expectRefused({"global_norm", {two, f64}, blocksOf({})}, "takes 1 operands, not 2");
  expectRefused({"global_norm", {two, f64}, blocksOf({100})}, "must be powers of two from 64 to 1024");
  expectRefused({"global_norm", {two, f64}, blocksOf({256})}, "operands must make whole blocks of 1024");
}

TEST(GlobalNorm, TakesManyTensors) { // a GPU takes 1,024 in one launch, and their blocks in some order
  Random random{8};
  std::vector<Buffer> operands;
  std::vector<int64_t> blocks;
  double sum = 0;
  for (int64_t i = 0; i < 1025; ++i) {
    const int64_t parts = int64_t(1) << random.below(5), count = parts * (i == 7 ? 600 : random.below(3));
    operands.emplace_back(type(DType::F64, {count}));
    blocks.push_back(1024 / parts);
    for (int64_t k = 0; k < count; ++k) // whole numbers have one sum, in any order
      sum += operands.back().as<double>()[k] = double(random.below(1000));
  }
  EXPECT_EQ(runScalar("global_norm", operands, blocksOf(blocks)), std::sqrt(sum));
  operands.back() = Buffer(type(DType::F64, {1}), std::vector<double>{HUGE_VAL});
  blocks.back() = 1024;
  EXPECT_EQ(runScalar("global_norm", operands, blocksOf(blocks)), HUGE_VAL);
  *operands.back().as<double>() = std::nan("");
  EXPECT_TRUE(std::isnan(runScalar("global_norm", operands, blocksOf(blocks))));
}

/// The bits do not depend on what the sums are of: slices of ranks end where they like.
TEST(GlobalNorm, AddsPartsOfBlocksAsBlocks) {
  const int64_t count = 10 * 1024;
  Random random{7};
  const Buffer gradient = random.buffer(DType::F32, {count});
  std::vector<double> norms;
  for (int64_t block : {1024, 512, 256, 128, 64}) {
    std::vector<Buffer> operands = {gradient, Buffer(type(DType::F64, {count / block}))};
    const Attributes attributes = {{"block", block}};
    ASSERT_TRUE(runKernel(cpuKernels(), invocationOf("block_sum_squares", operands, attributes), operands).ok());
    norms.push_back(runScalar("global_norm", {operands[1]}, blocksOf({block})));
  }
  EXPECT_GT(norms[0], 0);
  EXPECT_EQ(norms, std::vector<double>(norms.size(), norms[0]));
}

TEST(ClipFactor, IsAtMostOne) {
  const Attributes one = {{"max_norm", 1.0}};
  EXPECT_EQ(runScalar("clip_factor", {scalar(0.5)}, one), 1);
  EXPECT_DOUBLE_EQ(runScalar("clip_factor", {scalar(4.0)}, one), 1 / (4 + 1e-6));
  EXPECT_DOUBLE_EQ(runScalar("clip_factor", {scalar(4.0)}, {{"max_norm", 2.0}}), 2 / (4 + 1e-6));
  EXPECT_EQ(runScalar("clip_factor", {scalar(std::numeric_limits<double>::infinity())}, one), 0);
  EXPECT_TRUE(std::isnan(runScalar("clip_factor", {scalar(std::nan(""))}, one)));
  expectRefused({"clip_factor", {type(DType::F64, {}), type(DType::F64, {})}, {{"max_norm", 0.0}}}, "must be positive");
}

double rate(const Attributes &attributes, int64_t step) {
  return runScalar("learning_rate", {scalar(step)}, attributes);
}

TEST(LearningRate, Constant) {
  EXPECT_EQ(rate({{"schedule", std::string("constant")}, {"lr", 0.25}}, 0), 0.25);
  EXPECT_EQ(rate({{"schedule", std::string("constant")}, {"lr", 0.25}}, 1000), 0.25);
}

TEST(LearningRate, WarmupLR) {
  Attributes attributes = {{"schedule", std::string("WarmupLR")},
                           {"warmup_min_lr", 0.1},
                           {"warmup_max_lr", 1.1},
                           {"warmup_num_steps", int64_t(4)},
                           {"warmup_type", std::string("linear")}};
  const double linear[] = {0.1, 0.1, 0.35, 0.6, 0.85, 1.1, 1.1};
  for (int64_t j = 0; j < 7; ++j)
    EXPECT_NEAR(rate(attributes, j), linear[j], 1e-15) << j;
  attributes["warmup_type"] = std::string("log");
  for (int64_t j = 1; j < 5; ++j)
    EXPECT_NEAR(rate(attributes, j), 0.1 + std::log(double(j)) / std::log(4.0), 1e-15) << j;
  EXPECT_EQ(rate(attributes, 5), 1.1);
  attributes["warmup_num_steps"] = int64_t(0); // at least 2
  EXPECT_NEAR(rate(attributes, 2), 1.1, 1e-15);
}

TEST(LearningRate, WarmupDecayLR) {
  const Attributes attributes = {{"schedule", std::string("WarmupDecayLR")},
                                 {"warmup_min_lr", 0.0},
                                 {"warmup_max_lr", 1.0},
                                 {"warmup_num_steps", int64_t(2)},
                                 {"warmup_type", std::string("linear")},
                                 {"total_num_steps", int64_t(6)}};
  const double expected[] = {0, 0, 0.5, 1, 0.75, 0.5, 0.25, 0, 0};
  for (int64_t j = 0; j < 9; ++j)
    EXPECT_NEAR(rate(attributes, j), expected[j], 1e-15) << j;
}

TEST(LearningRate, WarmupCosineLR) {
  const Attributes attributes = {{"schedule", std::string("WarmupCosineLR")},
                                 {"lr", 2.0},
                                 {"warmup_min_ratio", 0.1},
                                 {"cos_min_ratio", 0.2},
                                 {"warmup_num_steps", int64_t(2)},
                                 {"warmup_type", std::string("linear")},
                                 {"total_num_steps", int64_t(6)}};
  EXPECT_EQ(rate(attributes, 0), 0);
  EXPECT_NEAR(rate(attributes, 1), 0.2, 1e-15);
  EXPECT_NEAR(rate(attributes, 2), 2 * 0.55, 1e-15);
  EXPECT_NEAR(rate(attributes, 3), 2 * (0.2 + 0.8 * (1 + std::cos(M_PI / 4)) / 2), 1e-15);
  EXPECT_NEAR(rate(attributes, 4), 2 * (0.2 + 0.8 / 2), 1e-15);
  EXPECT_NEAR(rate(attributes, 6), 2 * 0.2, 1e-15);
  EXPECT_NEAR(rate(attributes, 1000), 2 * 0.2, 1e-15);
}

TEST(LearningRate, LRRangeTest) {
  Attributes attributes = {{"schedule", std::string("LRRangeTest")},
                           {"lr_range_test_min_lr", 0.5},
                           {"lr_range_test_step_rate", 2.0},
                           {"lr_range_test_step_size", int64_t(4)},
                           {"lr_range_test_staircase", int64_t(0)}};
  EXPECT_EQ(rate(attributes, 0), 0.5);
  EXPECT_EQ(rate(attributes, 3), 0.5 * 2.5);
  attributes["lr_range_test_staircase"] = int64_t(1);
  EXPECT_EQ(rate(attributes, 3), 0.5);
  EXPECT_EQ(rate(attributes, 9), 0.5 * 5);
}

Attributes cycle(Attributes own) {
  own.insert({{"cycle_first_step_size", int64_t(4)},
              {"cycle_second_step_size", int64_t(2)},
              {"cycle_first_stair_count", int64_t(0)},
              {"cycle_second_stair_count", int64_t(0)},
              {"decay_step_size", int64_t(2)}});
  return own;
}

TEST(LearningRate, OneCycle) {
  const Attributes attributes = cycle(
      {{"schedule", std::string("OneCycle")}, {"cycle_min_lr", 1.0}, {"cycle_max_lr", 3.0}, {"decay_lr_rate", 1.0}});
  const double expected[] = {1, 1.5, 2, 2.5, 3, 2, 1, 1 / 1.5, 0.5, 1 / 2.5};
  for (int64_t j = 0; j < 10; ++j)
    EXPECT_NEAR(rate(attributes, j), expected[j], 1e-15) << j;
  Attributes stairs = attributes;
  stairs["cycle_first_stair_count"] = int64_t(2);
  EXPECT_EQ(rate(stairs, 1), 1);
  EXPECT_EQ(rate(stairs, 3), 2);
  EXPECT_EQ(rate(stairs, 4), 3);
}

TEST(CycledMomentum, FallsWhileTheRateRises) {
  const Attributes attributes = cycle({{"cycle_min_mom", 0.5}, {"cycle_max_mom", 0.75}, {"decay_mom_rate", 0.5}});
  const double expected[] = {0.5, 0.6875, 0.625, 0.5625, 0.5, 0.625, 0.75, 0.75 * 1.25, 0.75 * 1.5};
  for (int64_t j = 0; j < 9; ++j)
    EXPECT_NEAR(runScalar("cycled_momentum", {scalar(j)}, attributes), expected[j], 1e-15) << j;
  expectFails("cycled_momentum", {scalar(int64_t(-1)), scalar(0.0)}, attributes, "it counts from 0");
}

TEST(LearningRate, RefusesAndFails) {
  const std::vector<TensorType> operands = {type(DType::I64, {}), type(DType::F64, {})};
  expectRefused({"learning_rate", operands, {{"schedule", std::string("Cosine")}}}, "not 'Cosine'");
  expectRefused({"learning_rate", operands, {{"schedule", std::string("constant")}}}, "needs attribute 'lr'");
  expectFails("learning_rate", {scalar(int64_t(-1)), scalar(0.0)}, {{"schedule", std::string("constant")}, {"lr", 1.0}},
              "it counts from 0");
}

TEST(Increment, AddsOne) {
  std::vector<Buffer> operands = {scalar(int64_t(41))};
  ASSERT_TRUE(runKernel(cpuKernels(), invocationOf("increment", operands, {}), operands).ok());
  EXPECT_EQ(*operands[0].as<int64_t>(), 42);
  expectFails("increment", {scalar(INT64_MAX)}, {}, "largest int64");
}

} // namespace

} // namespace ds::kernels::test
