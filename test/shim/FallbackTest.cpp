// Kernels that run without the library they are made for say so.
#include "kernels/cuda/Fallback.h"
#include "kernels/CallWork.h"
#include "kernels/cuda/CudaKernels.h"
#include "test/shim/ShimAccelerator.h"

#include <functional>
#include <random>

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

/// What `compile` says and prices is what is run, for calls drawn of lengths, heads and masks of all kinds, long ones
/// too, whose gradients go in chunks of heads.
TEST(Fallback, IsWhatTheCompilerSaysOfAttention) {
  const WithCudnn all(true);
  const Strictly leniently(false);
  std::mt19937 generator(1);
  const auto draw = [&](std::initializer_list<int64_t> of) {
    return *(of.begin() + std::uniform_int_distribution<size_t>(0, of.size() - 1)(generator));
  };
  int plain = 0, taken = 0;
  for (int i = 0; i < 400; ++i) {
    const int64_t batch = draw({1, 2, 3}), groups = draw({1, 2, 3, 5}), heads = groups * draw({1, 1, 3});
    const int64_t queries = draw({1, 3, 4, 7, 33, 8192, 32766, 32768, 65536}), keys = draw({queries, 8, 33});
    const int64_t depth = draw({8, 8, 16, 64, 12}), columns = draw({depth, depth, 8});
    const Shape whole = {batch, heads, queries, keys};
    Shape mask = whole;
    for (int64_t &side : mask)
      side = draw({side, 1});
    mask.erase(mask.begin(), mask.begin() + draw({0, 0, 1, 2, 3}));
    const bool isMasked = draw({0, 1}), isBool = draw({0, 0, 0, 1});
    const TensorType q{DType::BF16, {batch, heads, queries, depth}}, k{DType::BF16, {batch, groups, keys, depth}};
    const TensorType v{DType::BF16, {batch, groups, keys, columns}}, out{DType::BF16, {batch, heads, queries, columns}};
    const TensorType lse{DType::F32, {batch, heads, queries}}, added{isBool ? DType::Bool : DType::BF16, mask};
    Invocation forward{"attention", {q, k, v}, {{"scale", 0.5}, {"causal", draw({0, 1})}, {"mask", int64_t(isMasked)}}};
    Invocation backward{"attention_grad", {out, q, k, v}, forward.attributes};
    for (Invocation *call : {&forward, &backward})
      if (isMasked)
        call->operands.push_back(added);
    forward.operands.insert(forward.operands.end(), {out, lse});
    backward.operands.insert(backward.operands.end(), {out, lse, q, k, v});
    for (Invocation &call : {std::ref(forward), std::ref(backward)}) {
      const bool isSaid = !whyPlainAttention(call.kernel, CallTypes(call)).empty();
      if (const int64_t bytes = workspaceBytes(call, {.device = Device::Cuda}))
        call.operands.push_back({DType::U8, {bytes}});
      const int64_t before = cuda::fallbacks();
      (void)cudaKernels().find(call.kernel)(call, {});
      EXPECT_EQ(cuda::fallbacks() - before, int64_t(isSaid))
          << call.kernel << " q " << toString(q.shape) << " k " << toString(k.shape) << " v " << toString(v.shape)
          << " mask " << (isMasked ? toString(mask) : "none") << ": "
          << whyPlainAttention(call.kernel, CallTypes(call));
      ++(isSaid ? plain : taken);
    }
  }
  EXPECT_GT(std::min(plain, taken), 100);
}

/// Its 33 float32 numbers end at no multiple of 16 bytes, and behind them cuDNN's workspace would begin.
TEST(Fallback, IsForAGradientOfOddLength) {
  const WithCudnn all(true);
  const Strictly leniently(false);
  const TensorType q{DType::BF16, {1, 1, 33, 64}}, lse{DType::F32, {1, 1, 33}};
  Invocation call{"attention_grad", {q, q, q, q, q, lse, q, q, q}, attentionIn(DType::BF16).attributes};
  call.operands.push_back({DType::U8, {workspaceBytes(call, {.device = Device::Cuda})}});
  const int64_t before = cuda::fallbacks();
  (void)cudaKernels().find("attention_grad")(call, {});
  EXPECT_EQ(cuda::fallbacks(), before + 1);
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
