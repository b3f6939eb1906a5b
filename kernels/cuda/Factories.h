//===- Factories.h - the kernels of one file each -------------------------===//
#pragma once

#include "kernels/KernelRegistry.h"

#include <memory>

namespace ds::kernels::cuda {

#define DS_FACTORY(name) std::unique_ptr<Kernel> name(const Invocation &, const BuildOptions &)
DS_FACTORY(makeElementwise);
DS_FACTORY(makeMatmul);
DS_FACTORY(makeAttention);
DS_FACTORY(makeAttentionGrad);
DS_FACTORY(makeTranspose);
DS_FACTORY(makeReduce);
DS_FACTORY(makeSoftmax);
DS_FACTORY(makeSoftmaxGrad);
DS_FACTORY(makeLayerNorm);
DS_FACTORY(makeLayerNormGrad);
DS_FACTORY(makeRmsNorm);
DS_FACTORY(makeRmsNormGrad);
DS_FACTORY(makeBatchNorm);
DS_FACTORY(makeBatchNormGrad);
DS_FACTORY(makeConv);
DS_FACTORY(makeConvInputGrad);
DS_FACTORY(makeConvWeightGrad);
DS_FACTORY(makePool);
DS_FACTORY(makeMaxPoolGrad);
DS_FACTORY(makeAveragePoolGrad);
DS_FACTORY(makeGather);
DS_FACTORY(makeGatherGrad);
DS_FACTORY(makeGatherElements);
DS_FACTORY(makeScatterElements);
DS_FACTORY(makeArgMax);
DS_FACTORY(makeTopK);
DS_FACTORY(makeCumSum);
DS_FACTORY(makeSlice);
DS_FACTORY(makePad);
DS_FACTORY(makeConcat);
DS_FACTORY(makeCrossEntropy);
DS_FACTORY(makeCrossEntropyGrad);
DS_FACTORY(makeDropout);
DS_FACTORY(makeAdamW);
DS_FACTORY(makeSgd);
DS_FACTORY(makeAdagrad);
DS_FACTORY(makeBlockSumSquares);
DS_FACTORY(makeGlobalNorm);
DS_FACTORY(makeClipFactor);
DS_FACTORY(makeLearningRate);
DS_FACTORY(makeIncrement);
#undef DS_FACTORY

} // namespace ds::kernels::cuda
