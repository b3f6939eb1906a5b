// Kernels that run without the library they are made for say so.
#include "kernels/cuda/Fallback.h"
#include "kernels/cuda/CudaKernels.h"
#include "test/shim/ShimAccelerator.h"

namespace ds::kernels::test {

namespace {

/// A call that cuDNN is there for.
Invocation attentionIn(DType dtype) {
  const TensorType q{dtype, {1, 2, 4, 8}}, lse{dtype == DType::F64 ? DType::F64 : DType::F32, {1, 2, 4}};
  return {"attention", {q, q, q, q, lse}, {{"scale", 0.5}, {"causal", int64_t(1)}, {"mask", int64_t(0)}}};
}

TEST(Fallback, IsCounted) {
  const WithCudnn none(false);
  const Strictly leniently(false);
  const int64_t before = cuda::fallbacks();
  (void)cudaKernels().find("attention")(attentionIn(DType::BF16), {});
  (void)cudaKernels().find("attention")(attentionIn(DType::F16), {});
  EXPECT_EQ(cuda::fallbacks(), before + 2);
  EXPECT_EQ(cuda::fallbacksByKernel().count("kernel 'attention' in bfloat16"), 1u);
  EXPECT_EQ(cuda::fallbacksByKernel().count("kernel 'attention' in float16"), 1u);
  (void)cudaKernels().find("attention")(attentionIn(DType::F32), {}); // ours is the one for float32
  EXPECT_EQ(cuda::fallbacks(), before + 2);
}

TEST(Fallback, IsAnErrorWhereSoAsked) {
  const WithCudnn none(false);
  const Strictly strictly(true);
  EXPECT_NO_THROW((void)cudaKernels().find("attention")(attentionIn(DType::F32), {}));
  try {
    (void)cudaKernels().find("attention")(attentionIn(DType::BF16), {});
    ADD_FAILURE() << "our own kernel was taken";
  } catch (const Error &error) {
    EXPECT_STREQ(error.what(),
                 "kernel 'attention' in bfloat16: cuDNN has nothing for it, first for an operand of shape "
                 "[1, 2, 4, 8]; without DS_CUDA_STRICT=1 our own slower kernel runs it");
  }
}

TEST(Fallback, IsNotForAMaskOfKeys) { // as BERT has it
  const WithCudnn all(true);
  const int64_t before = cuda::fallbacks();
  const TensorType q{DType::BF16, {2, 2, 16, 8}}, mask{DType::BF16, {2, 1, 1, 16}}, lse{DType::F32, {2, 2, 16}};
  const Attributes attributes = {{"scale", 0.5}, {"causal", int64_t(0)}, {"mask", int64_t(1)}};
  Invocation call{"attention_grad", {q, q, q, q, mask, q, lse, q, q, q}, attributes};
  call.operands.push_back({DType::U8, {workspaceBytes(call, {.device = Device::Cuda})}});
  (void)cudaKernels().find("attention_grad")(call, {});
  (void)cudaKernels().find("attention")({"attention", {q, q, q, mask, q, lse}, attributes}, {});
  EXPECT_EQ(cuda::fallbacks(), before);
}

TEST(Fallback, IsNotForAConvolutionsWeightGradientInFloat32) {
  const WithCudnn all(true);
  const int64_t before = cuda::fallbacks();
  for (DType half : {DType::BF16, DType::F16}) {
    const TensorType x{half, {2, 3, 8, 8}}, dy{half, {2, 5, 8, 8}}, dw{DType::F32, {5, 3, 3, 3}};
    Invocation call{
        "conv_weight_grad",
        {dy, x, dw},
        {{"strides", Shape{1, 1}}, {"dilations", Shape{1, 1}}, {"low", Shape{1, 1}}, {"groups", int64_t(1)}}};
    call.operands.push_back({DType::U8, {workspaceBytes(call, {.device = Device::Cuda})}});
    (void)cudaKernels().find("conv_weight_grad")(call, {});
  }
  EXPECT_EQ(cuda::fallbacks(), before);
}

} // namespace

} // namespace ds::kernels::test
