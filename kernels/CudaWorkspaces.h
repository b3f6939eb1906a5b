//===- CudaWorkspaces.h - workspaces of the kernels for CUDA --------------===//
//
// Part of KernelSignatures.h: bytes that a plan for CUDA reserves, by the shapes of a call alone. Kernels and plans
// compute the same cuts from here.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "kernels/KernelRegistry.h"

#include <algorithm>

namespace ds::kernels {

/// Bytes of a sum or a statistic of a call on `dtype`: bfloat16 is summed in float32.
constexpr int64_t cudaSumBytes(DType dtype) { return dtype == DType::F64 ? 8 : 4; }

/// Sums over rows are cut into at most so many pieces, which are added in order: enough to keep a GPU busy together
/// with the cut along columns.
inline constexpr int64_t cudaMostPieces = 128;
/// Rows of one piece of a norm's gradient; at least 32.
constexpr int64_t cudaNormGradRows(int64_t rows) {
  return std::max<int64_t>(32, (rows + cudaMostPieces - 1) / cudaMostPieces);
}
constexpr int64_t cudaNormGradPieces(int64_t rows) {
  const int64_t perPiece = cudaNormGradRows(rows);
  return (rows + perPiece - 1) / perPiece;
}

/// Elements of one piece of a reduction of `length` elements each to `outputs` results; the pieces are one where there
/// are results enough to keep a GPU busy.
constexpr int64_t cudaReduceElements(int64_t outputs, int64_t length) {
  constexpr int64_t least = 256, busy = 1 << 16;
  const int64_t wanted = std::clamp<int64_t>(busy / std::max<int64_t>(outputs, 1), 1, cudaMostPieces);
  return std::max(least, (length + wanted - 1) / wanted);
}
constexpr int64_t cudaReducePieces(int64_t outputs, int64_t length) {
  const int64_t perPiece = cudaReduceElements(outputs, length);
  return std::max<int64_t>(1, (length + perPiece - 1) / perPiece);
}

/// Whether a kernel's last operand is a workspace on CUDA.
inline bool hasCudaWorkspace(std::string_view kernel) {
  constexpr std::string_view kernels[] = {
      "matmul",     "attention",       "attention_grad",    "layer_norm_grad", "rms_norm_grad",
      "conv",       "conv_input_grad", "conv_weight_grad",  "reduce_sum",      "reduce_mean",
      "reduce_max", "cross_entropy",   "cross_entropy_grad"};
  return std::find(std::begin(kernels), std::end(kernels), kernel) != std::end(kernels);
}

/// attention_grad: a number per query; where cuDNN runs it, also sums of dq in float32 and, if heads share k and v, dk
/// and dv of every head.
inline int64_t cudaAttentionGradBytes(std::span<const TensorType> operands) {
  const TensorType &q = operands[1], &k = operands[2], &v = operands[3];
  if (q.shape.size() != 4 || k.shape.size() != 4 || v.shape.size() != 4)
    return 0;
  const int64_t rows = q.shape[0] * q.shape[1] * q.shape[2];
  if (q.dtype == DType::F32 || q.dtype == DType::F64)
    return rows * cudaSumBytes(q.dtype);
  const int64_t padded = q.shape[0] * q.shape[1] * ((q.shape[2] + 127) / 128 * 128);
  const bool shared = k.shape[1] != q.shape[1];
  const int64_t everyHead = shared ? q.shape[0] * q.shape[1] * k.shape[2] * (k.shape[3] + v.shape[3]) : 0;
  return 4 * padded * (q.shape[3] + 2) + 2 * everyHead + (1 << 20);
}

/// Bytes of the workspace of a call; a library may use `cap`. Every kernel runs with fewer, at worst more slowly.
inline int64_t cudaWorkspaceBytes(std::string_view kernel, std::span<const TensorType> operands, int64_t cap) {
  const auto count = [&](size_t operand) { return elementCount(operands[operand].shape); };
  if (kernel == "layer_norm_grad" || kernel == "rms_norm_grad") { // dgamma (and dbeta) of each piece
    const int64_t cols = count(2), rows = cols ? count(1) / cols : 0;
    return (kernel == "layer_norm_grad" ? 2 : 1) * cudaNormGradPieces(rows) * cols * cudaSumBytes(operands[1].dtype);
  }
  if (kernel.starts_with("reduce_")) { // a result of each piece
    const int64_t outputs = count(1), length = outputs ? count(0) / outputs : 0;
    const int64_t pieces = cudaReducePieces(outputs, length);
    return pieces > 1 ? pieces * outputs * 8 : 0;
  }
  if (kernel == "attention_grad")
    return cudaAttentionGradBytes(operands);
  if (kernel == "attention")
    return operands[0].dtype == DType::F32 || operands[0].dtype == DType::F64 ? 0 : std::min<int64_t>(cap, 1 << 20);
  if (kernel == "cross_entropy") // a loss per row
    return count(1) * cudaSumBytes(operands[0].dtype);
  if (kernel == "cross_entropy_grad") // how many labels count
    return 8;
  if (kernel == "matmul")
    return count(0) == 0 || count(1) == 0 ? 0 : cap;
  return hasCudaWorkspace(kernel) && count(0) > 0 ? cap : 0; // conv and its gradients
}

} // namespace ds::kernels
