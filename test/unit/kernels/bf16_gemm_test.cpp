// Products of bfloat16 numbers, which run on units for them where the machine has some: as the reference has them, in
// all forms and sizes, and whatever the numbers are.
#include "kernels/BFloat16.h"
#include "kernels/cpu/Bf16Gemm.h"
#include "kernels/matmul/matmul_bf16.h"
#include "test/unit/kernels/Harness.h"

#include <cmath>
#include <limits>

namespace ds::kernels::test {

namespace {

constexpr double lastBit = 0x1p-7; // of bfloat16: sums in another order may be rounded to the neighbour

struct Size {
  int64_t m, n, k;
};
constexpr Size sizes[] = {{1, 70, 33}, {33, 31, 90}, {64, 96, 128}, {129, 257, 65}, {600, 40, 1100}};

struct Form {
  int64_t batches, m, n, k;
  bool transA, transB, bias;
  DType result;

  Attributes attributes() const {
    return {
        {"trans_a", int64_t(transA)}, {"trans_b", int64_t(transB)}, {"bias", int64_t(bias)}, {"pieces", int64_t(3)}};
  }
  std::vector<Buffer> operands(uint64_t seed) const {
    Random random(seed);
    const auto matrix = [&](int64_t rows, int64_t cols) {
      return batches > 1 ? Shape{batches, rows, cols} : Shape{rows, cols};
    };
    std::vector<Buffer> all = {random.buffer(DType::BF16, transA ? matrix(k, m) : matrix(m, k)),
                               random.buffer(DType::BF16, transB ? Shape{n, k} : Shape{k, n})};
    if (bias)
      all.push_back(random.buffer(DType::BF16, {n}));
    all.emplace_back(type(result, matrix(m, n)));
    return all;
  }
};

TEST(Bf16Gemm, TakesEveryForm) {
  for (auto [m, n, k] : sizes)
    for (int bits = 0; bits < 16; ++bits) {
      const Form form{bits & 8 ? 3 : 1,
                      m,
                      n,
                      k,
                      bool(bits & 1),
                      bool(bits & 2),
                      bool(bits & 4),
                      bits & 4 ? DType::BF16 : DType::F32};
      const double rounding = form.result == DType::F32 ? 0 : lastBit;
      expectMatchesReference("matmul", form.operands(uint64_t(bits)), form.attributes(), {size_t(form.bias ? 3 : 2)},
                             {rounding, 8 * 6e-8 * double(k + 1)});
    }
}

TEST(Bf16Gemm, RunsOnTheUnitsWhereBothOperandsFillPanels) {
  const auto kernelOf = [](int64_t m, int64_t n) {
    const Form form{1, m, n, 128, false, false, false, DType::BF16};
    return makeBf16Matmul(invocationOf("matmul", form.operands(1), form.attributes()), {});
  };
  EXPECT_EQ(kernelOf(128, 128) != nullptr, hasBf16Units());
  EXPECT_EQ(kernelOf(3, 5), nullptr); // 32 rows and columns in place of these
}

TEST(Bf16Gemm, KeepsWhatIsNoNumber) {
  const Form form{1, 64, 64, 64, false, false, false, DType::F32};
  for (float number : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(), NAN}) {
    std::vector<Buffer> operands = operandsOn(Device::Cpu, "matmul", form.operands(2), form.attributes());
    operands[0].as<uint16_t>()[5 * 64 + 7] = BFloat16(number).bits;
    operands[1].as<uint16_t>()[7 * 64 + 9] = BFloat16(2).bits;
    ASSERT_TRUE(runKernel(cpuKernels(), invocationOf("matmul", operands, form.attributes()), operands).ok());
    const double product = operands[2].at(5 * 64 + 9), elsewhere = operands[2].at(4 * 64 + 9);
    EXPECT_TRUE(std::isnan(number) ? std::isnan(product) : product == double(number)) << product;
    EXPECT_TRUE(std::isfinite(elsewhere));
  }
}

} // namespace

} // namespace ds::kernels::test
