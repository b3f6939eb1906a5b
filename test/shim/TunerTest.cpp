// What --tune finds among the three algorithms of cuBLASLt's stand-in (FakeCublasLt.cpp), by a clock that no load
// changes.
#include "kernels/cuda/Tuner.h"

#include "kernels/cuda/CudaKernels.h"
#include "test/shim/FakeRuntime.h"
#include "test/shim/cublasLt.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace ds::kernels::test {

namespace {

/// c [m, n] = a [m, depth] b [depth, n] with a workspace; cuBLASLt sees it as [n, m] by columns.
Invocation matmul(int64_t m, int64_t n, DType dtype = DType::BF16, const std::string &epilogue = "",
                  int64_t depth = 24) {
  Invocation call{"matmul",
                  {{dtype, {m, depth}}, {dtype, {depth, n}}},
                  {{"trans_a", int64_t(0)}, {"trans_b", int64_t(0)}, {"bias", int64_t(0)}, {"pieces", int64_t(1)}}};
  if (!epilogue.empty())
    call.attributes.emplace("epilogue", epilogue);
  if (epilogue == "gelu_tanh_grad")
    call.operands.push_back({dtype, {m, n}});
  call.operands.push_back({dtype, {m, n}});
  if (epilogue == "gelu_tanh")
    call.operands.push_back({dtype, {m, n}});
  call.operands.push_back({DType::U8, {8192}});
  return call;
}

/// dw [16, n] and db of dy [48, n] and x [48, 16].
Invocation weightGrad(int64_t n) {
  return {
      "linear_weight_grad",
      {{DType::BF16, {48, n}}, {DType::BF16, {48, 16}}, {DType::F32, {16, n}}, {DType::F32, {n}}, {DType::U8, {8192}}},
      {{"transposed", int64_t(0)}, {"pieces", int64_t(1)}}};
}

void expectTrials(const TunedCall &tuned, double second) {
  ASSERT_EQ(tuned.trials.size(), 3u);
  EXPECT_TRUE(tuned.trials[0].isSameBits);
  EXPECT_TRUE(tuned.trials[1].isSameBits);
  EXPECT_FALSE(tuned.trials[2].isSameBits); // it adds up from the other end
  EXPECT_NEAR(tuned.trials[1].seconds / tuned.trials[0].seconds, second, 1e-3);
  EXPECT_NEAR(tuned.trials[2].seconds / tuned.trials[0].seconds, 0.5, 1e-3);
}

TEST(Tuner, TakesTheFastestOfTheSameBits) {
  for (const Invocation &call :
       {matmul(16, 64), matmul(16, 64, DType::F32), matmul(8, 64, DType::BF16, "gelu_tanh"),
        matmul(8, 64, DType::BF16, "gelu_tanh_grad"), matmul(16, 64, DType::F16), weightGrad(64)}) {
    const TunedCall tuned = tunedCall(call);
    expectTrials(tuned, 0.8);
    EXPECT_EQ(tuned.chosen, 1u);
    EXPECT_EQ(tuned.algorithm.size(), sizeof(cublasLtMatmulAlgo_t));
  }
}

TEST(Tuner, LeavesTheOwnChoiceWhereThatIsFastest) {
  for (const Invocation &call : {matmul(64, 16), weightGrad(8)}) {
    const TunedCall tuned = tunedCall(call);
    expectTrials(tuned, 1.25);
    EXPECT_EQ(tuned.chosen, 0u);
    EXPECT_EQ(tuned.algorithm, "");
  }
}

TEST(Tuner, LeavesTheOwnChoiceWhereResultsAreTooFewToTell) {
  const TunedCall tuned = tunedCall(matmul(1, 64));
  ASSERT_EQ(tuned.trials.size(), 3u);
  for (const TunedCall::Trial &trial : tuned.trials)
    EXPECT_FALSE(trial.isSameBits);
  EXPECT_EQ(tuned.algorithm, "");
}

TEST(Tuner, BringsNoMoreOfALargeResultToTheHostThanItTakesToTell) {
  constexpr uint64_t limit = uint64_t(64) << 20;
  const int64_t rows = 8192, cols = int64_t(limit / sizeof(uint16_t)) / rows + 8;
  const uint64_t before = shim::bytesStagedToHost();
  const TunedCall tuned = tunedCall(matmul(rows, cols, DType::BF16, "", 1));
  ASSERT_EQ(tuned.trials.size(), 3u);
  EXPECT_EQ(shim::bytesStagedToHost() - before, (1 + tuned.trials.size()) * limit);
}

TEST(Tuner, HasNothingForACallOfNoLibrary) {
  EXPECT_TRUE(tunedCall({"reduce_sum", {{DType::F32, {4, 4}}, {DType::F32, {4}}}, {{"axes", std::vector<int64_t>{0}}}})
                  .trials.empty());
}

/// The algorithm that a kernel of this call runs.
std::string runs(Invocation call, const std::string &gpu, uint64_t version, const std::string &bytes) {
  call.algorithm = {.gpu = gpu, .version = version, .bytes = bytes};
  return cudaKernels().find(call.kernel)(call, {})->algorithms(1).at(0);
}

TEST(Tuner, WhatItFoundHoldsForItsGpuAndVersion) {
  const char here[] = "a processor in place of a GPU";
  for (const Invocation &call : {matmul(16, 64), weightGrad(64)}) {
    const std::string found = tunedCall(call).algorithm;
    const std::string own = cudaKernels().find(call.kernel)(call, {})->algorithms(1).at(0);
    ASSERT_NE(found, own);
    EXPECT_EQ(runs(call, here, cublasLtGetVersion(), found), found);
    EXPECT_EQ(runs(call, "another GPU", cublasLtGetVersion(), found), own);
    EXPECT_EQ(runs(call, here, cublasLtGetVersion() + 1, found), own);
    std::string broken = found;
    broken.back() = 1;
    EXPECT_EQ(runs(call, here, cublasLtGetVersion(), broken), own);
    cublasLtMatmulAlgo_t greedy{{1, 16, 1 << 20}}; // more workspace than the call has
    EXPECT_EQ(
        runs(call, here, cublasLtGetVersion(), std::string(reinterpret_cast<const char *>(&greedy), sizeof greedy)),
        own);
  }
}

} // namespace

} // namespace ds::kernels::test
