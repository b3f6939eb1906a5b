//===- KernelSignatures.h - every kernel: operands, attributes, workspace --===//
//
// The one list that compiler and runtime share. The compiler writes these names into plans and asks here for the bytes
// of a workspace; the runtime looks names up in a KernelRegistry; a kernel checks its Invocation against its entry.
// Shapes in brackets. Element types, each the same for all operands so marked:
//   T   float32, float64 or bfloat16. With bfloat16 all arithmetic inside is float32, and what is written is rounded
//       once, to nearest even. In `elementwise` registers of dtype bfloat16 are rounded after each instruction.
//   S   statistics, losses, scales of norms: float32 where T is bfloat16, else T
//   G   sums over many elements, such as gradients of parameters: T, or float32 where T is bfloat16 (not rounded then)
// Optimizers and norms of gradients know float32 and float64 only: F. "rw" is read and written. Only some kernels have
// a workspace, and on CUDA others than those where the list says so: see hasWorkspace below.
//
//   kernel             operands                                                     attributes
//   elementwise        inputs..., results...                                        program, constants, results
//                      See ElementwiseProgram.h. A result may be the same memory as an input of its own shape and size.
//   matmul             a T, b T, [bias T [N]], [aux T], c G, [aux T], [dbias G [N]] trans_a, trans_b (0|1), bias (0|1),
//                      pieces, epilogue, dbias (0|1), tf32 (0|1)
//                      c[..., M, N] = op(a)[..., M, K] op(b)[..., K, N] + bias; leading dims broadcast as in NumPy. c
//                      is computed in `pieces` pieces or a multiple, so that as many workers are busy. epilogue may be
//                      left out or "", and with r what c would be without one
//                        gelu_tanh       c = gelu_tanh(r), and aux = r behind c
//                        gelu_tanh_grad  c = r * gelu_tanh'(aux), aux before c; no bias; with dbias the sums of c's
//                                        columns over all rows and leading dims, behind c
//                      (GeluTanh.h). tf32, which may be left out: a GPU may round float32 factors to TF32.
//   attention          q T [B, H, Q, D], k T [B, G, K, D], v T [B, G, K, E], [mask T|bool], out T [B, H, Q, E],
//                      lse S [B, H, Q]                                              scale, causal (0|1), mask (0|1)
//                      out = softmax(scale q k^T + mask) v; head h reads group h / (H / G); the mask broadcasts to
//                      [B, H, Q, K], a bool hides where it is 0; causal hides key j from query i where j > i; lse = log
//                      sum exp of a row's scores, +inf where it sees no key, and then out is 0.
//   attention_grad     dout T, q, k, v, [mask], out, lse, dq T, dk T, dv T          as attention
//   transpose          x any, y same                                                perm
//   reduce_sum         x T or i64|i32, y G or same                                  axes
//   reduce_mean        as reduce_sum, floats only; reduce_max: y same as x (y has the reduced dims removed or kept as
//   1) softmax            x T, y T                                                     axis softmax_grad       y T, dy
//   T, dx T                                              axis log_softmax        x T, y T axis log_softmax_grad   y T,
//   dy T, dx T                                              axis layer_norm         x T [rows, cols], gamma S [cols],
//   beta S [cols], y T, mean S [rows], rstd S [rows]   epsilon layer_norm_grad    dy, x, gamma, mean, rstd, dx, dgamma
//   S, dbeta S, workspace   - rms_norm           x T [rows, cols], gamma S [cols], y T, rrms S [rows]         epsilon
//   rms_norm_grad      dy, x, gamma, rrms, dx, dgamma S, workspace                  -
//   batch_norm         x T [N, C, ...], gamma S [C], beta S [C], y T, mean S [C], variance S [C], rstd S [C]    epsilon
//   batch_norm_grad    dy, x, gamma, mean, rstd, dx, dgamma S, dbeta S              -
//                      Statistics over all dimensions but C; the variance is the biased one.
//   conv               x T [N, C, in...], w T [M, C / groups, window...], [bias T [M]], y T [N, M, out...], workspace
//                      strides, dilations, low, groups, bias (0|1)
//                      One to three spatial dimensions. Element k of the window at place o is x's at
//                      o * strides + k * dilations - low, 0 outside of x.
//   conv_input_grad    dy T, w T, dx T, workspace                                   strides, dilations, low, groups
//   conv_weight_grad   dy T, x T, dw G, workspace                                   strides, dilations, low, groups
//   max_pool           x T [N, C, in...], y T [N, C, out...]                        window, strides, dilations, low
//   average_pool       as max_pool; elements outside of x belong to no window
//   max_pool_grad      dy T, x T, dx T                                              as max_pool; to the first largest
//   average_pool_grad  dy T, dx T                                                   as max_pool
//   gather             data any, indices i64|i32, y same as data                    axis
//                      y = numpy.take(data, indices, axis); negative indices count from the end.
//   gather_grad        dy T, indices, ddata G (written whole)                       axis
//                      Contributions to one row are added in index order.
//   gather_elements    data any, indices i64|i32, y same as data [as indices]       axis
//                      y[.., j, ..] = data[.., indices[.., j, ..], ..]; negative indices count from the end.
//   scatter_elements   data any, indices, updates same, y same [as data]            axis, reduction
//                      y = data, then each update meets y at its index, in row-major order: reduction is replace, add,
//                      mul, max or min.
//   arg_max            x number, y i64                                              axis, last (0|1)
//                      The first of equal ones, or the last; NaN is the largest.
//   top_k              x number [.., n], values same [.., k], indices i64 [.., k]   smallest (0|1)
//                      In order; equal ones by index.
//   cumsum             x number, y same                                             axis, exclusive, reverse (0|1)
//   slice              x any, y same                                                starts, steps (> 0)
//   pad                x any, y same                                                low, interior, value (float)
//                      y is `value` except y[low + i * (interior + 1)] = x[i]; trailing room follows from y's shape.
//   concat             inputs..., y                                                 axis
//   cross_entropy      logits T [N, C], labels i64 [N], loss S [], lse S [N]        ignore_index, reduction (mean|sum)
//                      lse = log sum exp of each row; mean divides by the labels that are not ignored.
//   cross_entropy_grad logits T, labels, lse S, dloss S [], dlogits T               ignore_index, reduction
//                      dlogits may be the same memory as logits.
//   dropout            x T, y T                                                     ratio, op_id
//                      y = x * keep / (1 - ratio), keep drawn from Philox (Philox.h). Its own gradient: dx =
//                      dropout(dy).
//   adamw              p F rw, g F, m F rw, v F rw, lr f64 [], step i64 [], clip f64 []
//                      beta1, beta2, epsilon, weight_decay, adam_w_mode (0|1)
//   sgd                p F rw, g F, momentum_buffer F rw, lr f64 [], step i64 [], clip f64 []
//                      momentum, weight_decay, nesterov (0|1)
//   adagrad            p F rw, g F, sum F rw, lr f64 [], step i64 [], clip f64 []
//                      epsilon, weight_decay, lr_decay
//                      torch.optim.{AdamW,SGD,Adagrad}; g is first multiplied by clip; step = updates done before this
//                      one. Without momentum `sgd` has no momentum_buffer operand.
//   block_sum_squares  g F, partials f64 [ceil(n / block)]                          block (64, 128, ... 1024)
//   global_norm        partials f64..., norm f64 []                                 blocks, one an operand
//                      sqrt of the sum in operand order, element order.
//   clip_factor        norm f64 [], factor f64 []                                   max_norm
//                      1 / max(1, (norm + 1e-6) / max_norm), DeepSpeed's and torch.nn.utils.clip_grad_norm_'s rule.
//   learning_rate      step i64 [], lr f64 []                                       schedule, and what it uses of:
//                      lr, warmup_min_lr, warmup_max_lr, warmup_num_steps (integer), warmup_type, total_num_steps
//                      (integer), warmup_min_ratio, cos_min_ratio
//                      schedule is constant (lr), WarmupLR (min, max, warm-up), WarmupDecayLR (also total_num_steps) or
//                      WarmupCosineLR (lr, ratios, warm-up, total_num_steps); warmup_type is log or linear. DeepSpeed's
//                      rules, in float64; `step` counts updates from 0 and may not be negative.
//   increment          step i64 [] rw                                               -
//
//===----------------------------------------------------------------------===//
#pragma once

#include "kernels/ConvBlocks.h"
#include "kernels/CudaWorkspaces.h"
#include "kernels/Device.h"
#include "kernels/KernelRegistry.h"

#include <algorithm>

namespace ds::kernels {

/// What of a machine file decides workspaces.
struct WorkspaceLimits {
  int workers = 1;                  ///< compute workers of one rank
  int64_t bytesPerWorker = 4 << 20; ///< cap a worker, machine file `workspace_bytes_per_thread`
  Device device = Device::Cpu;      ///< a GPU counts as one worker
};

/// Rows that one piece of layer_norm_grad or rms_norm_grad sums before the pieces are added in order.
inline constexpr int64_t normGradRowsPerPiece = 64;

/// Whether a kernel's last operand is a workspace.
inline bool hasWorkspace(std::string_view kernel, Device device) {
  if (device == Device::Cuda)
    return hasCudaWorkspace(kernel);
  constexpr std::string_view kernels[] = {"layer_norm_grad", "rms_norm_grad", "conv", "conv_input_grad",
                                          "conv_weight_grad"};
  return std::find(std::begin(kernels), std::end(kernels), kernel) != std::end(kernels);
}

/// Bytes of the workspace operand of a call whose other operands are `operands`; 0 for kernels without one.
inline int64_t workspaceBytes(std::string_view kernel, std::span<const TensorType> operands,
                              const WorkspaceLimits &limits) {
  if (limits.device == Device::Cuda)
    return cudaWorkspaceBytes(kernel, operands, limits.bytesPerWorker);
  if (kernel == "layer_norm_grad" || kernel == "rms_norm_grad") { // dgamma (and dbeta) of each piece
    const TensorType &x = operands[1], &gamma = operands[2];
    const int64_t cols = elementCount(gamma.shape), rows = cols ? elementCount(x.shape) / cols : 0;
    const int64_t pieces = (rows + normGradRowsPerPiece - 1) / normGradRowsPerPiece;
    return (kernel == "layer_norm_grad" ? 2 : 1) * pieces * cols * byteSize(gamma.dtype);
  }
  if (kernel == "conv" || kernel == "conv_input_grad" || kernel == "conv_weight_grad")
    return std::min(limits.workers * limits.bytesPerWorker, convWorkspaceBytes(kernel, operands, limits.workers));
  return 0;
}

} // namespace ds::kernels
