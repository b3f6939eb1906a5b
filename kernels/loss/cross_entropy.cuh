//===- cross_entropy.cuh - losses of rows, their gradients, and both at once -===//
#pragma once

#include "kernels/cuda/Launch.cuh"
#include "kernels/cuda/Packs.cuh"
#include "kernels/cuda/Reduce.cuh"
#include "kernels/cuda/Refuse.cuh"
#include "kernels/loss/cross_entropy_call.h"
#include "kernels/reduce/online_softmax.h"

#include <algorithm>

namespace ds::kernels::cuda {

/// Most threads of a block that shares a row, few enough that a multiprocessor has registers for two blocks, of
/// bfloat16 for four: while one block adds up, another loads.
inline constexpr int lossThreads = 256;
/// Threads of the one block that goes through the labels or losses of all rows.
inline constexpr int allRowsThreads = 1024;
/// Packs of packOf<T> elements that a thread has in flight. Rows are cut into packs even where no 16 bytes can be moved
/// at once, so that a row's sums have one order, by its classes alone: padding does not change a bit.
inline constexpr int packsAtOnce = 4;

template <typename T> unsigned lossThreadsFor(int64_t elements) {
  return std::min<unsigned>(rowThreads(elements, packsAtOnce * packOf<T>), lossThreads);
}

/// The pack of a row that begins at element `first`, of which those before `end` are wanted. `packed`: all at once,
/// where that is 16 bytes in the row and at an address for it.
template <bool packed, typename T> __device__ Pack<T, packOf<T>> rowPack(const T *row, int64_t first, int64_t end) {
  Pack<T, packOf<T>> all{};
  if constexpr (packed) {
    if (first < end)
      all = packAt<packOf<T>>(row, first / packOf<T>);
  } else {
    for (int j = 0; j < packOf<T>; ++j)
      if (first + j < end)
        all.values[j] = row[first + j];
  }
  return all;
}

/// Stores the pack that begins at element `first`, its part before `end`.
template <bool packed, typename T>
__device__ void storeRowPack(T *row, int64_t first, int64_t end, const Pack<T, packOf<T>> &values) {
  if constexpr (packed) {
    if (first < end)
      storePack(row, first / packOf<T>, values);
  } else {
    for (int j = 0; j < packOf<T>; ++j)
      if (first + j < end)
        row[first + j] = values.values[j];
  }
}

/// The largest of a thread's elements of a row, every so many packs, and the sum of their exponentials.
template <bool packed, typename T> __device__ MaxSum<Sum<T>> ownMaxSum(const T *row, int64_t classes) {
  using S = Sum<T>;
  constexpr int width = packOf<T>;
  MaxSum<S> own;
  for (int64_t c = int64_t(threadIdx.x) * width; c < classes; c += int64_t(blockDim.x) * packsAtOnce * width) {
    Pack<T, width> packs[packsAtOnce];
    S largest = S(-HUGE_VAL), sum = 0;
#pragma unroll
    for (int k = 0; k < packsAtOnce; ++k)
      packs[k] = rowPack<packed>(row, c + int64_t(k) * blockDim.x * width, classes);
#pragma unroll
    for (int k = 0; k < packsAtOnce; ++k) {
      const int64_t first = c + int64_t(k) * blockDim.x * width;
      if (first + width > classes) // padding, and what lies behind the row
        for (int j = 0; j < width; ++j)
          if (first + j >= classes)
            packs[k].values[j] = narrow<T>(S(-HUGE_VAL));
      for (int j = 0; j < width; ++j)
        largest = Larger{}(largest, wide(packs[k].values[j]));
    }
    const S base = largest == S(-HUGE_VAL) ? S(0) : largest; // no -inf less -inf: such elements add nothing
#pragma unroll
    for (int k = 0; k < packsAtOnce; ++k)
      for (int j = 0; j < width; ++j)
        sum += std::exp(wide(packs[k].values[j]) - base);
    own = MaxSum<S>::combined(own, {largest, sum});
  }
  return own;
}

/// The log of the sum of exponentials of a row, for every thread of a block.
template <bool packed, typename T> __device__ Sum<T> logSumOfRow(const T *row, int64_t classes) {
  using S = Sum<T>;
  const MaxSum<S> own = ownMaxSum<packed>(row, classes);
  const S largest = blockReduce(own.largest, Larger{}, S(-HUGE_VAL));
  return MaxSum<S>{largest, blockSum(MaxSum<S>::combined(own, {largest, S(0)}).sum)}.logSum();
}

inline __device__ bool isClass(int64_t label, int64_t classes, int64_t ignored) {
  return label != ignored && label >= 0 && label < classes;
}
inline __device__ bool isNoLabel(int64_t label, int64_t classes, int64_t ignored) {
  return label != ignored && !isClass(label, classes, ignored);
}

/// `x` and `dx` may be the same memory: a thread reads an element before it writes that one. Rows without a label
/// get 0, and so does padding.
template <bool packed, typename T>
__device__ void gradientOfRow(const T *x, Sum<T> lse, int64_t label, Sum<T> factor, T *dx, int64_t columns,
                              int64_t classes, int64_t ignored) {
  using S = Sum<T>;
  constexpr int width = packOf<T>;
  for (int64_t c = int64_t(threadIdx.x) * width; c < columns; c += int64_t(blockDim.x) * packsAtOnce * width) {
    Pack<T, width> packs[packsAtOnce];
#pragma unroll
    for (int k = 0; k < packsAtOnce; ++k)
      packs[k] = rowPack<packed>(x, c + int64_t(k) * blockDim.x * width, columns);
#pragma unroll
    for (int k = 0; k < packsAtOnce; ++k) {
      const int64_t first = c + int64_t(k) * blockDim.x * width;
      for (int j = 0; j < width; ++j) {
        const S probability = std::exp(wide(packs[k].values[j]) - lse);
        packs[k].values[j] =
            narrow<T>(first + j < classes && label != ignored ? (probability - S(first + j == label)) * factor : S(0));
      }
      storeRowPack<packed>(dx, first, columns, packs[k]);
    }
  }
}

/// Labels that are not ignored, for every thread of a block.
inline __device__ int64_t countLabels(const int64_t *labels, int64_t rows, int64_t ignored) {
  int64_t count = 0;
  for (int64_t row = threadIdx.x; row < rows; row += blockDim.x)
    count += labels[row] != ignored;
  return blockSum(count);
}

/// What rows of the gradient are multiplied with. Refuses labels that are none.
template <typename S>
__global__ void __launch_bounds__(allRowsThreads)
    scaleKernel(const int64_t *labels, const S *dloss, S *scale, int64_t rows, int64_t classes, int64_t ignored,
                bool mean, Refuser refuse) {
  for (int64_t row = threadIdx.x; row < rows; row += blockDim.x)
    if (isNoLabel(labels[row], classes, ignored))
      refuse(labels[row]);
  const int64_t count = countLabels(labels, rows, ignored);
  if (threadIdx.x == 0)
    *scale = mean ? *dloss / S(count) : *dloss;
}

/// The sum or mean of the rows' losses.
template <typename S>
__global__ void __launch_bounds__(allRowsThreads)
    lossKernel(const S *losses, const int64_t *labels, S *loss, int64_t rows, int64_t ignored, bool mean) {
  S sum = 0;
  for (int64_t row = threadIdx.x; row < rows; row += blockDim.x)
    sum += losses[row];
  sum = blockSum(sum);
  const int64_t count = countLabels(labels, rows, ignored);
  if (threadIdx.x == 0)
    *loss = mean ? sum / S(count) : sum;
}

/// Makes of each row what is asked for: its loss, logsumexp - logit of its label, and the log of that sum (`lses`);
/// its gradient, (softmax - one_hot(label)) * `scale`, which may lie over the row's logits. What follows reads a row
/// that is in the cache. A gradient alone reads the `lses` that the loss has left.
template <bool makesLoss, bool makesGradient, bool packed, typename T>
__global__ void __launch_bounds__(lossThreads)
    rowsKernel(const T *logits, const int64_t *labels, const Sum<T> *scale, Sum<T> *lses, Sum<T> *losses, T *dlogits,
               int64_t rows, int64_t columns, int64_t classes, int64_t ignored, Refuser refuse) {
  using S = Sum<T>;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T *x = logits + row * columns;
    const int64_t label = labels[row];
    S lse, own = 0;
    if constexpr (makesLoss) {
      if (threadIdx.x == 0 && isClass(label, classes, ignored))
        own = wide(x[label]); // now: some thread may write its gradient there
      lse = logSumOfRow<packed>(x, classes);
      if (threadIdx.x == 0) {
        lses[row] = lse;
        losses[row] = isClass(label, classes, ignored) ? lse - own : S(0);
      }
    } else {
      lse = lses[row];
    }
    if constexpr (makesGradient)
      gradientOfRow<packed>(x, lse, label, *scale, dlogits + row * columns, columns, classes, ignored);
    else if (threadIdx.x == 0 && isNoLabel(label, classes, ignored))
      refuse(label); // a gradient's scaleKernel has seen all labels before
  }
}

/// Which operands of a kernel are what, beside its logits (0) and labels (1); `none` where it has no such one.
struct LossOperands {
  static constexpr int none = -1;
  int dloss, loss, lses, dlogits;
};

/// The kernel of those operands. Its workspace holds what rows are multiplied with, made by one block before, and the
/// rows' losses, added by one block behind; each where it is of use.
template <bool makesLoss, bool makesGradient>
std::unique_ptr<Kernel> makeLossKernel(const char *name, const Invocation &invocation, LossOperands of) {
  const Call checked(invocation);
  checked.requireWorkspace(Device::Cuda);
  const CrossEntropyCall call(checked);
  Refusal refusal = [name, classes = call.classes, ignored = call.ignoreIndex](int64_t label) {
    return Status::failure("kernel '%s': label %lld is out of range [0, %lld) and is not the ignored label %lld", name,
                           static_cast<long long>(label), static_cast<long long>(classes),
                           static_cast<long long>(ignored));
  };
  return withFloat(call.dtype, [&](auto zero) {
    using T = decltype(zero);
    using S = Sum<T>;
    return launching(
        invocation,
        [call, of, workspace = checked.workspace()](const CallContext &context, std::span<void *const> operands) {
          const cudaStream_t stream = streamOf(context);
          const auto *labels = at<const int64_t>(operands, 1);
          auto *scale = static_cast<S *>(workspace.at(operands)), *losses = scale + makesGradient;
          if constexpr (makesGradient)
            launch<scaleKernel<S>>(1, allRowsThreads, stream, labels, at<const S>(operands, of.dloss), scale, call.rows,
                                   call.classes, call.ignoreIndex, call.mean, Refuser(context));
          const auto *logits = at<const T>(operands, 0);
          T *dlogits = makesGradient ? at<T>(operands, of.dlogits) : nullptr;
          const auto enqueue = [&](auto packed) {
            launch<rowsKernel<makesLoss, makesGradient, packed(), T>>(
                blocksFor(call.rows, 1), lossThreadsFor<T>(call.classes), stream, logits, labels, scale,
                at<S>(operands, of.lses), losses, dlogits, call.rows, call.columns, call.classes, call.ignoreIndex,
                Refuser(context));
          };
          if (call.rows > 0)
            inPacks<T>(call.columns, {logits, dlogits}) ? enqueue(std::true_type{}) : enqueue(std::false_type{});
          if constexpr (makesLoss)
            launch<lossKernel<S>>(1, allRowsThreads, stream, losses, labels, at<S>(operands, of.loss), call.rows,
                                  call.ignoreIndex, call.mean);
        },
        refusal);
  });
}

} // namespace ds::kernels::cuda
