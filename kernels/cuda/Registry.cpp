//===- Registry.cpp - the kernels of NVIDIA GPUs by name ------------------===//
#include "kernels/KernelRegistry.h"
#include "kernels/cuda/CudaKernels.h"
#include "kernels/cuda/Factories.h"

namespace ds::kernels {

namespace {

KernelRegistry allKernels() {
  using namespace cuda;
  KernelRegistry registry;
  registry.add("elementwise", makeElementwise);
  registry.add("matmul", makeMatmul);
  registry.add("attention", makeAttention);
  registry.add("attention_grad", makeAttentionGrad);
  registry.add("transpose", makeTranspose);
  registry.add("reduce_sum", makeReduce);
  registry.add("reduce_mean", makeReduce);
  registry.add("reduce_max", makeReduce);
  registry.add("softmax", makeSoftmax);
  registry.add("softmax_grad", makeSoftmaxGrad);
  registry.add("log_softmax", makeSoftmax);
  registry.add("log_softmax_grad", makeSoftmaxGrad);
  registry.add("layer_norm", makeLayerNorm);
  registry.add("layer_norm_grad", makeLayerNormGrad);
  registry.add("rms_norm", makeRmsNorm);
  registry.add("rms_norm_grad", makeRmsNormGrad);
  registry.add("batch_norm", makeBatchNorm);
  registry.add("batch_norm_grad", makeBatchNormGrad);
  registry.add("conv", makeConv);
  registry.add("conv_input_grad", makeConvInputGrad);
  registry.add("conv_weight_grad", makeConvWeightGrad);
  registry.add("max_pool", makePool);
  registry.add("average_pool", makePool);
  registry.add("max_pool_grad", makeMaxPoolGrad);
  registry.add("average_pool_grad", makeAveragePoolGrad);
  registry.add("gather", makeGather);
  registry.add("gather_grad", makeGatherGrad);
  registry.add("gather_elements", makeGatherElements);
  registry.add("scatter_elements", makeScatterElements);
  registry.add("arg_max", makeArgMax);
  registry.add("top_k", makeTopK);
  registry.add("cumsum", makeCumSum);
  registry.add("slice", makeSlice);
  registry.add("pad", makePad);
  registry.add("concat", makeConcat);
  registry.add("cross_entropy", makeCrossEntropy);
  registry.add("cross_entropy_grad", makeCrossEntropyGrad);
  registry.add("dropout", makeDropout);
  registry.add("adamw", makeAdamW);
  registry.add("sgd", makeSgd);
  registry.add("adagrad", makeAdagrad);
  registry.add("block_sum_squares", makeBlockSumSquares);
  registry.add("global_norm", makeGlobalNorm);
  registry.add("clip_factor", makeClipFactor);
  registry.add("learning_rate", makeLearningRate);
  registry.add("increment", makeIncrement);
  return registry;
}

} // namespace

const KernelRegistry &cudaKernels() {
  static const KernelRegistry registry = allKernels();
  return registry;
}

} // namespace ds::kernels
