// Equal calls share one graph of cuDNN.
#include "kernels/cuda/SharedGraph.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

namespace ds::kernels::cuda {

namespace {

struct NoWork final : CudnnGraph {
  Status enqueue(std::span<void *const>, void *, cudaStream_t) noexcept override { return Status::success(); }
};

Invocation attentionOf(int64_t queries, double scale) {
  const TensorType q{DType::BF16, {1, 2, queries, 8}};
  return {"attention", {q, q, q, q, {DType::F32, {1, 2, queries}}}, {{"scale", scale}, {"causal", int64_t(1)}}};
}

/// Makes graphs, and counts them.
struct Maker {
  std::shared_ptr<CudnnGraph> operator()(const Invocation &invocation, bool refuses = false) {
    return sharedGraph(invocation, [&]() -> std::unique_ptr<CudnnGraph> {
      ++made;
      return refuses ? nullptr : std::make_unique<NoWork>();
    });
  }
  int made = 0;
};

TEST(SharedGraph, IsOfEqualCalls) {
  Maker maker;
  const auto first = maker(attentionOf(4, 0.5)), again = maker(attentionOf(4, 0.5));
  EXPECT_EQ(first, again);
  EXPECT_EQ(maker.made, 1);
  EXPECT_NE(maker(attentionOf(6, 0.5)), first);
  EXPECT_NE(maker(attentionOf(4, 0.25)), first);
  EXPECT_EQ(maker.made, 3);
}

TEST(SharedGraph, LivesAsLongAsAKernelHoldsIt) {
  Maker maker;
  std::weak_ptr<CudnnGraph> graph = maker(attentionOf(10, 0.5));
  EXPECT_TRUE(graph.expired());
  auto held = maker(attentionOf(10, 0.5));
  EXPECT_EQ(maker(attentionOf(10, 0.5)), held);
  EXPECT_EQ(maker.made, 2);
}

TEST(SharedGraph, ARefusalIsKept) {
  Maker maker;
  EXPECT_EQ(maker(attentionOf(12, 0.5), true), nullptr);
  EXPECT_EQ(maker(attentionOf(12, 0.5), true), nullptr);
  EXPECT_EQ(maker.made, 1);
}

TEST(SharedGraph, IsNotTakenFromAnotherThread) {
  Maker maker;
  const auto mine = maker(attentionOf(14, 0.5));
  std::shared_ptr<CudnnGraph> theirs;
  std::thread([&] { theirs = maker(attentionOf(14, 0.5)); }).join();
  EXPECT_NE(mine, theirs);
}

} // namespace

} // namespace ds::kernels::cuda
