//===- Registry.cpp - the names of the CPU kernels ------------------------===//
#include "kernels/KernelRegistry.h"
#include "kernels/cpu/Factories.h"
#include "kernels/cpu/Widened.h"

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
  registry.add("matmul", widened<makeMatmul>);
  registry.add("attention", widened<makeAttention>);
  registry.add("attention_grad", widened<makeAttentionGrad>);
  registry.add("transpose", makeTranspose);
  registry.add("reduce_sum", widened<makeReduce>);
  registry.add("reduce_mean", widened<makeReduce>);
  registry.add("reduce_max", widened<makeReduce>);
  registry.add("softmax", widened<makeSoftmax>);
  registry.add("softmax_grad", widened<makeSoftmaxGrad>);
  registry.add("log_softmax", widened<makeSoftmax>);
  registry.add("log_softmax_grad", widened<makeSoftmaxGrad>);
  registry.add("layer_norm", widened<makeLayerNorm>);
  registry.add("layer_norm_grad", widened<makeLayerNormGrad>);
  registry.add("rms_norm", widened<makeRmsNorm>);
  registry.add("rms_norm_grad", widened<makeRmsNormGrad>);
  registry.add("batch_norm", widened<makeBatchNorm>);
  registry.add("batch_norm_grad", widened<makeBatchNormGrad>);
  registry.add("conv", widened<makeConv>);
  registry.add("conv_input_grad", widened<makeConvInputGrad>);
  registry.add("conv_weight_grad", widened<makeConvWeightGrad>);
  registry.add("max_pool", widened<makePool>);
  registry.add("average_pool", widened<makePool>);
  registry.add("max_pool_grad", widened<makeMaxPoolGrad>);
  registry.add("average_pool_grad", widened<makeAveragePoolGrad>);
  registry.add("gather", makeGather);
  registry.add("gather_grad", widened<makeGatherGrad>);
  registry.add("gather_elements", makeGatherElements);
  registry.add("scatter_elements", widened<makeScatterElements>);
  registry.add("arg_max", widened<makeArgMax>);
  registry.add("top_k", widened<makeTopK>);
  registry.add("cumsum", widened<makeCumSum>);
  registry.add("slice", makeSlice);
  registry.add("pad", makePad);
  registry.add("concat", makeConcat);
  registry.add("cross_entropy", widened<makeCrossEntropy>);
  registry.add("cross_entropy_grad", widened<makeCrossEntropyGrad>);
  registry.add("dropout", widened<makeDropout>);
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
  registry.add("matmul", widened<makeMatmulReference>);
  registry.add("attention", widened<makeAttentionReference>);
  registry.add("attention_grad", widened<makeAttentionGradReference>);
  registry.add("transpose", makeTransposeReference);
  registry.add("reduce_sum", widened<makeReduceReference>);
  registry.add("reduce_mean", widened<makeReduceReference>);
  registry.add("reduce_max", widened<makeReduceReference>);
  registry.add("softmax", widened<makeSoftmaxReference>);
  registry.add("softmax_grad", widened<makeSoftmaxGradReference>);
  registry.add("log_softmax", widened<makeSoftmaxReference>);
  registry.add("log_softmax_grad", widened<makeSoftmaxGradReference>);
  registry.add("layer_norm", widened<makeLayerNormReference>);
  registry.add("layer_norm_grad", widened<makeLayerNormGradReference>);
  registry.add("rms_norm", widened<makeRmsNormReference>);
  registry.add("rms_norm_grad", widened<makeRmsNormGradReference>);
  registry.add("batch_norm", widened<makeBatchNormReference>);
  registry.add("batch_norm_grad", widened<makeBatchNormGradReference>);
  registry.add("conv", widened<makeConvReference>);
  registry.add("conv_input_grad", widened<makeConvInputGradReference>);
  registry.add("conv_weight_grad", widened<makeConvWeightGradReference>);
  registry.add("max_pool", widened<makePoolReference>);
  registry.add("average_pool", widened<makePoolReference>);
  registry.add("max_pool_grad", widened<makeMaxPoolGradReference>);
  registry.add("average_pool_grad", widened<makeAveragePoolGradReference>);
  registry.add("gather", makeGatherReference);
  registry.add("gather_grad", widened<makeGatherGradReference>);
  registry.add("gather_elements", makeGatherElementsReference);
  registry.add("scatter_elements", widened<makeScatterElementsReference>);
  registry.add("arg_max", widened<makeArgMaxReference>);
  registry.add("top_k", widened<makeTopKReference>);
  registry.add("cumsum", widened<makeCumSumReference>);
  registry.add("slice", makeSliceReference);
  registry.add("pad", makePadReference);
  registry.add("concat", makeConcatReference);
  registry.add("cross_entropy", widened<makeCrossEntropyReference>);
  registry.add("cross_entropy_grad", widened<makeCrossEntropyGradReference>);
  registry.add("dropout", widened<makeDropoutReference>);
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
