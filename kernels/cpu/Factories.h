//===- Factories.h - the factory of every kernel --------------------------===//
#pragma once

#include "kernels/KernelRegistry.h"

#include <memory>

namespace ds::kernels {

/// Declares make<Name> (fast) and make<Name>Reference (obvious).
#define DS_DECLARE_KERNEL(name)                                                                                        \
  std::unique_ptr<Kernel> make##name(const Invocation &, const BuildOptions &);                                        \
  std::unique_ptr<Kernel> make##name##Reference(const Invocation &, const BuildOptions &)

DS_DECLARE_KERNEL(Elementwise);
DS_DECLARE_KERNEL(Matmul);
DS_DECLARE_KERNEL(Attention);
DS_DECLARE_KERNEL(AttentionGrad);
DS_DECLARE_KERNEL(Transpose);
DS_DECLARE_KERNEL(Reduce);  // reduce_sum, reduce_mean, reduce_max
DS_DECLARE_KERNEL(Softmax); // softmax, log_softmax
DS_DECLARE_KERNEL(SoftmaxGrad);
DS_DECLARE_KERNEL(LayerNorm);
DS_DECLARE_KERNEL(LayerNormGrad);
DS_DECLARE_KERNEL(RmsNorm);
DS_DECLARE_KERNEL(RmsNormGrad);
DS_DECLARE_KERNEL(BatchNorm);
DS_DECLARE_KERNEL(BatchNormGrad);
DS_DECLARE_KERNEL(Conv);
DS_DECLARE_KERNEL(ConvInputGrad);
DS_DECLARE_KERNEL(ConvWeightGrad);
DS_DECLARE_KERNEL(Pool); // max_pool, average_pool
DS_DECLARE_KERNEL(MaxPoolGrad);
DS_DECLARE_KERNEL(AveragePoolGrad);
DS_DECLARE_KERNEL(Gather);
DS_DECLARE_KERNEL(GatherGrad);
DS_DECLARE_KERNEL(GatherElements);
DS_DECLARE_KERNEL(ScatterElements);
DS_DECLARE_KERNEL(ArgMax);
DS_DECLARE_KERNEL(TopK);
DS_DECLARE_KERNEL(CumSum);
DS_DECLARE_KERNEL(Slice);
DS_DECLARE_KERNEL(Pad);
DS_DECLARE_KERNEL(Concat);
DS_DECLARE_KERNEL(CrossEntropy);
DS_DECLARE_KERNEL(CrossEntropyGrad);
DS_DECLARE_KERNEL(Dropout);
DS_DECLARE_KERNEL(AdamW);
DS_DECLARE_KERNEL(Sgd);
DS_DECLARE_KERNEL(Adagrad);
DS_DECLARE_KERNEL(BlockSumSquares);

#undef DS_DECLARE_KERNEL

// One scalar each: nothing to make fast, so both registries hold the same kernel.
std::unique_ptr<Kernel> makeGlobalNorm(const Invocation &, const BuildOptions &);
std::unique_ptr<Kernel> makeClipFactor(const Invocation &, const BuildOptions &);
std::unique_ptr<Kernel> makeLearningRate(const Invocation &, const BuildOptions &);
std::unique_ptr<Kernel> makeIncrement(const Invocation &, const BuildOptions &);

} // namespace ds::kernels
