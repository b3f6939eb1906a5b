#include "test/unit/kernels/Harness.h"

namespace ds::kernels::test {

namespace {

constexpr WorkspaceLimits gpu{1, 32 << 20, Device::Cuda};

TensorType f32(Shape shape) { return {DType::F32, std::move(shape)}; }

int64_t bytesOf(const char *kernel, const std::vector<TensorType> &operands) {
  return workspaceBytes(kernel, operands, gpu);
}

TEST(CudaWorkspaces, HaveTheCapOfALibrary) {
  EXPECT_TRUE(hasWorkspace("matmul", Device::Cuda));
  EXPECT_FALSE(hasWorkspace("matmul", Device::Cpu));
  EXPECT_EQ(bytesOf("matmul", {f32({4, 5}), f32({5, 6}), f32({4, 6})}), 32 << 20);
  EXPECT_EQ(bytesOf("matmul", {f32({4, 0}), f32({0, 6}), f32({4, 6})}), 0);
  EXPECT_EQ(bytesOf("conv", {f32({1, 3, 8, 8}), f32({4, 3, 3, 3}), f32({1, 4, 6, 6})}), 32 << 20);
}

TEST(CudaWorkspaces, HoldAPieceOfEveryColumn) {
  // 100 rows: pieces of 32, so 4 of them.
  EXPECT_EQ(bytesOf("layer_norm_grad", {f32({100, 8}), f32({100, 8}), f32({8})}), 2 * 4 * 8 * 4);
  EXPECT_EQ(bytesOf("rms_norm_grad", {f32({100, 8}), f32({100, 8}), f32({8})}), 4 * 8 * 4);
  EXPECT_EQ(cudaNormGradPieces(1 << 20), cudaMostPieces);
  EXPECT_EQ(bytesOf("rms_norm_grad", {f32({0, 8}), f32({0, 8}), f32({8})}), 0);
}

TEST(CudaWorkspaces, CutAReductionOnlyWhereResultsAreFew) {
  EXPECT_EQ(bytesOf("reduce_sum", {f32({16384, 768}), f32({768})}), 64 * 768 * 8); // 85 wanted, of at least 256
  EXPECT_EQ(bytesOf("reduce_sum", {f32({1 << 20}), f32({})}), 128 * 8);
  EXPECT_EQ(bytesOf("reduce_sum", {f32({1 << 17, 512}), f32({1 << 17})}), 0);
  EXPECT_EQ(bytesOf("reduce_sum", {f32({0, 512}), f32({0})}), 0);
}

TEST(CudaWorkspaces, AttentionGradKeepsANumberPerQuery) {
  const std::vector<TensorType> operands = {f32({2, 4, 10, 8}), f32({2, 4, 10, 8}), f32({2, 2, 10, 8}),
                                            f32({2, 2, 10, 8})};
  EXPECT_EQ(bytesOf("attention_grad", operands), 2 * 4 * 10 * 4);
  EXPECT_EQ(bytesOf("attention", operands), 0);
}

TEST(CudaWorkspaces, OthersHaveNone) {
  EXPECT_FALSE(hasWorkspace("softmax", Device::Cuda));
  EXPECT_EQ(bytesOf("softmax", {f32({4, 5}), f32({4, 5})}), 0);
}

} // namespace

} // namespace ds::kernels::test
