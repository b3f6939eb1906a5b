//===- Registry.cpp - the names of the CPU kernels ------------------------===//
#include "kernels/KernelRegistry.h"
#include "kernels/cpu/Factories.h"

namespace ds::kernels {

namespace {

void addScalarKernels(KernelRegistry &registry) {
  registry.add("global_norm", makeGlobalNorm);
  registry.add("clip_factor", makeClipFactor);
  registry.add("learning_rate", makeLearningRate);
  registry.add("increment", makeIncrement);
}

KernelRegistry fastKernels() {
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
  addScalarKernels(registry);
  return registry;
}

KernelRegistry referenceKernels() {
  KernelRegistry registry;
  registry.add("elementwise", makeElementwiseReference);
  registry.add("matmul", makeMatmulReference);
  registry.add("attention", makeAttentionReference);
  registry.add("attention_grad", makeAttentionGradReference);
  registry.add("transpose", makeTransposeReference);
  registry.add("reduce_sum", makeReduceReference);
  registry.add("reduce_mean", makeReduceReference);
  registry.add("reduce_max", makeReduceReference);
  registry.add("softmax", makeSoftmaxReference);
  registry.add("softmax_grad", makeSoftmaxGradReference);
  registry.add("log_softmax", makeSoftmaxReference);
  registry.add("log_softmax_grad", makeSoftmaxGradReference);
  registry.add("layer_norm", makeLayerNormReference);
  registry.add("layer_norm_grad", makeLayerNormGradReference);
  registry.add("rms_norm", makeRmsNormReference);
  registry.add("rms_norm_grad", makeRmsNormGradReference);
  registry.add("batch_norm", makeBatchNormReference);
  registry.add("batch_norm_grad", makeBatchNormGradReference);
  registry.add("conv", makeConvReference);
  registry.add("conv_input_grad", makeConvInputGradReference);
  registry.add("conv_weight_grad", makeConvWeightGradReference);
  registry.add("max_pool", makePoolReference);
  registry.add("average_pool", makePoolReference);
  registry.add("max_pool_grad", makeMaxPoolGradReference);
  registry.add("average_pool_grad", makeAveragePoolGradReference);
  registry.add("gather", makeGatherReference);
  registry.add("gather_grad", makeGatherGradReference);
  registry.add("gather_elements", makeGatherElementsReference);
  registry.add("scatter_elements", makeScatterElementsReference);
  registry.add("arg_max", makeArgMaxReference);
  registry.add("top_k", makeTopKReference);
  registry.add("cumsum", makeCumSumReference);
  registry.add("slice", makeSliceReference);
  registry.add("pad", makePadReference);
  registry.add("concat", makeConcatReference);
  registry.add("cross_entropy", makeCrossEntropyReference);
  registry.add("cross_entropy_grad", makeCrossEntropyGradReference);
  registry.add("dropout", makeDropoutReference);
  registry.add("adamw", makeAdamWReference);
  registry.add("sgd", makeSgdReference);
  registry.add("adagrad", makeAdagradReference);
  registry.add("block_sum_squares", makeBlockSumSquaresReference);
  addScalarKernels(registry);
  return registry;
}

} // namespace

const KernelRegistry &cpuKernels() {
  static const KernelRegistry registry = fastKernels();
  return registry;
}

const KernelRegistry &cpuReferenceKernels() {
  static const KernelRegistry registry = referenceKernels();
  return registry;
}

} // namespace ds::kernels
