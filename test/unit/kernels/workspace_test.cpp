// Bytes of workspace that plans reserve, and what kernels do with fewer.
#include "kernels/norm/norm_grad_pieces.h"
#include "test/unit/kernels/Harness.h"

#include <cstring>

namespace ds::kernels::test {

namespace {

constexpr WorkspaceLimits gpu{1, 32 << 20, Device::Cuda};

TensorType f32(Shape shape) { return {DType::F32, std::move(shape)}; }

const Attributes product = {
    {"trans_a", int64_t(0)}, {"trans_b", int64_t(0)}, {"bias", int64_t(0)}, {"pieces", int64_t(2)}};
const Attributes window = {
    {"strides", Shape{1, 1}}, {"dilations", Shape{1, 1}}, {"low", Shape{0, 0}}, {"groups", int64_t(1)}};
const Attributes attention = {{"scale", 0.5}, {"causal", int64_t(1)}, {"mask", int64_t(0)}};

TEST(CudaWorkspaces, HaveTheCapOfALibrary) {
  EXPECT_EQ(workspaceBytes({"matmul", {f32({4, 5}), f32({5, 6}), f32({4, 6})}, product}, gpu), 32 << 20);
  EXPECT_EQ(workspaceBytes({"matmul", {f32({4, 0}), f32({0, 6}), f32({4, 6})}, product}, gpu), 0);
  EXPECT_EQ(workspaceBytes({"conv_input_grad", {f32({1, 4, 6, 6}), f32({4, 3, 3, 3}), f32({1, 3, 8, 8})}, window}, gpu),
            32 << 20);
}

TEST(CudaWorkspaces, HoldAPieceOfEveryColumn) {
  const auto bytes = [](int64_t rows) {
    const TensorType x = f32({rows, 8}), c = f32({8}), r = f32({rows});
    return workspaceBytes({"layer_norm_grad", {x, x, c, r, r, x, c, c}, {}}, gpu);
  };
  EXPECT_EQ(bytes(100), 2 * 13 * 8 * 4); // 100 rows: pieces of 8, so 13 of them
  EXPECT_EQ(bytes(0), 0);
  EXPECT_EQ(cudaNormGradMostPieces(768), 8 * 132);
  EXPECT_EQ(cudaNormGradMostPieces(8192), 2 * 132);
  EXPECT_EQ(cudaNormGradRows(16384, 768), 16);
  EXPECT_EQ(cudaNormGradPieces(16384, 768), 1024);
}

TEST(CudaWorkspaces, CutAReductionOnlyWhereResultsAreFew) {
  const auto bytes = [](Shape x, Shape y) {
    return workspaceBytes({"reduce_sum", {f32(std::move(x)), f32(std::move(y))}, {{"axes", Shape{0}}}}, gpu);
  };
  EXPECT_EQ(bytes({16384, 768}, {768}), 64 * 768 * 8); // 85 wanted, of at least 256
  EXPECT_EQ(bytes({1 << 20}, {}), 128 * 8);
  EXPECT_EQ(bytes({512, 1 << 17}, {1 << 17}), 0);
  EXPECT_EQ(bytes({512, 0}, {0}), 0);
}

TEST(CudaWorkspaces, AttentionGradKeepsTwoNumbersPerQuery) {
  const TensorType q = f32({2, 4, 10, 8}), k = f32({2, 2, 10, 8}), lse = f32({2, 4, 10});
  EXPECT_EQ(workspaceBytes({"attention_grad", {q, q, k, k, q, lse, q, k, k}, attention}, gpu), 2 * 2 * 4 * 10 * 4);
  EXPECT_EQ(workspaceBytes({"attention", {q, k, k, q, lse}, attention}, gpu), 0);
}

TEST(CudaWorkspaces, AttentionGradHasRoomForSumsInAFixedOrder) {
  // GPT-2 124M at 16 x 1024: what cuDNN says it takes on Hopper, beside the sums of dq and a number per query.
  const TensorType q{DType::BF16, {16, 12, 1024, 64}}, lse = f32({16, 12, 1024});
  const int64_t ordered = 2 * 16 * 12 * 1024 * 1024 + 4 * 16 * 12 * 1024, others = 4 * 16 * 12 * 1024 * 66 + (1 << 20);
  EXPECT_EQ(workspaceBytes({"attention_grad", {q, q, q, q, q, lse, q, q, q}, attention}, gpu), ordered + others);
  const TensorType odd{DType::BF16, {1, 1, 65, 8}}, oddLse = f32({1, 1, 65}); // padded to 128 by 128
  EXPECT_EQ(workspaceBytes({"attention_grad", {odd, odd, odd, odd, odd, oddLse, odd, odd, odd}, attention}, gpu),
            2 * 128 * 128 + 4 * 65 + 4 * 128 * 10 + (1 << 20));
  // Llama 8B at 8192: all heads' ordered sums would take 4 GiB, so it goes by group, of four heads.
  const TensorType large{DType::BF16, {1, 32, 8192, 128}}, group{DType::BF16, {1, 8, 8192, 128}};
  const TensorType largeLse = f32({1, 32, 8192});
  EXPECT_EQ(workspaceBytes(
                {"attention_grad", {large, large, group, group, large, largeLse, large, group, group}, attention}, gpu),
            2LL * 4 * 8192 * 8192 + 4 * 4 * 8192 + 4LL * 4 * 8192 * 130 + 2LL * 4 * 8192 * 256 + (1 << 20));
}

TEST(CudaWorkspaces, OfPackedAttentionAreThoseOfItsParts) {
  const WorkspaceLimits cpu{2};
  const TensorType lse = f32({2, 4, 200});
  for (DType dtype : {DType::F32, DType::BF16}) {
    const TensorType q{dtype, {2, 200, 4, 64}}, k{dtype, {2, 200, 2, 64}}, qkv{dtype, {2, 200, 8, 64}};
    for (const WorkspaceLimits &limits : {gpu, cpu}) {
      if (dtype == DType::BF16 && limits.device == Device::Cpu)
        continue; // of float32 copies of the operands, which are others
      EXPECT_EQ(workspaceBytes({"packed_attention", {qkv, q, lse}, attention}, limits),
                workspaceBytes({"attention", {q, k, k, q, lse}, attention}, limits));
      EXPECT_EQ(workspaceBytes({"packed_attention_grad", {q, qkv, q, lse, qkv}, attention}, limits),
                workspaceBytes({"attention_grad", {q, q, k, k, q, lse, q, k, k}, attention}, limits));
    }
  }
}

TEST(CudaWorkspaces, OthersHaveNone) {
  EXPECT_EQ(workspaceBytes({"softmax", {f32({4, 5}), f32({4, 5})}, {{"axis", int64_t(1)}}}, gpu), 0);
}

TEST(CpuWorkspaces, HoldWhatEachWorkerPacks) {
  const auto bytes = [](DType dtype, int64_t side, int workers) {
    const TensorType matrix{dtype, {side, side}};
    return workspaceBytes({"matmul", {matrix, matrix, matrix}, product}, {workers});
  };
  // Pieces of [1024, 2048], of which a worker packs 512 x 512 at a time.
  EXPECT_EQ(bytes(DType::F32, 2048, 2), 2 * (2 * 512 * 768 + 4 * (512 * 512 + 2048)) + 63);
  EXPECT_EQ(bytes(DType::F32, 64, 2), 0); // too small for tiles
  EXPECT_EQ(bytes(DType::F64, 2048, 2), 0);
}

TEST(CpuWorkspaces, HoldFloat32CopiesOfBFloat16) {
  const TensorType x{DType::BF16, {5, 7}}; // 140 bytes of float32, so 192
  EXPECT_EQ(workspaceBytes({"softmax", {x, x}, {{"axis", int64_t(1)}}}, {}), 2 * 192);
  EXPECT_EQ(workspaceBytes({"transpose", {x, {DType::BF16, {7, 5}}}, {{"perm", Shape{1, 0}}}}, {}), 0);
}

/// The bits of a kernel do not depend on how much of its workspace it gets.
TEST(CpuWorkspaces, LessGivesTheSameBits) {
  Random random(3);
  struct Case {
    const char *kernel;
    std::vector<Buffer> operands;
    Attributes attributes;
    size_t result;
  };
  const auto halves = [&](Shape shape) { return random.buffer(DType::BF16, shape); };
  const auto floats = [&](Shape shape) { return random.buffer(DType::F32, shape); };
  std::vector<Case> cases;
  cases.push_back({"matmul", {floats({300, 200}), floats({200, 260}), floats({300, 260})}, product, 2});
  cases.push_back({"matmul", {halves({300, 200}), halves({200, 260}), halves({300, 260})}, product, 2});
  cases.push_back({"softmax", {halves({30, 20}), halves({30, 20})}, {{"axis", int64_t(1)}}, 1});
  cases.push_back({"attention",
                   {floats({1, 2, 200, 128}), floats({1, 2, 200, 128}), floats({1, 2, 200, 128}),
                    floats({1, 2, 200, 128}), floats({1, 2, 200})},
                   attention,
                   3});
  for (Case &c : cases) {
    std::vector<Buffer> whole = operandsOn(Device::Cpu, c.kernel, c.operands, c.attributes, 2);
    ASSERT_TRUE(runKernel(cpuKernels(), invocationOf(c.kernel, whole, c.attributes), whole, 2).ok());
    ASSERT_GT(whole.size(), c.operands.size()) << c.kernel;
    for (const int64_t bytes : {int64_t(0), int64_t(whole.back().bytes()) / 2}) {
      std::vector<Buffer> less = c.operands;
      if (bytes > 0)
        less.emplace_back(type(DType::U8, {bytes}));
      ASSERT_TRUE(runKernel(cpuKernels(), invocationOf(c.kernel, less, c.attributes), less, 2).ok());
      EXPECT_EQ(std::memcmp(less[c.result].data(), whole[c.result].data(), whole[c.result].bytes()), 0) << c.kernel;
    }
  }
}

} // namespace

} // namespace ds::kernels::test
