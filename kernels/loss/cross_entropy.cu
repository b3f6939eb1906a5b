// cross_entropy: loss = sum or mean of lse[row] - logits[row, label[row]]. A block reads a row once (online_softmax.h);
// the rows' losses lie in the workspace and are added by one block. torch.nn.functional.cross_entropy.
#include "kernels/loss/cross_entropy.cuh"

#include "kernels/reduce/online_softmax.h"

namespace ds::kernels::cuda {

namespace {

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

template <typename T, bool packed>
__global__ void __launch_bounds__(lossThreads)
    rowsKernel(const T *logits, const int64_t *labels, Sum<T> *lses, Sum<T> *losses, int64_t rows, int64_t columns,
               int64_t classes, int64_t ignored, Refuser refuse) {
  using S = Sum<T>;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T *x = logits + row * columns;
    MaxSum<S> own = ownMaxSum<packed>(x, classes);
    const auto combine = [](MaxSum<S> a, MaxSum<S> b) { return MaxSum<S>::combined(a, b); };
    const S largest = blockReduce(own.largest, Larger{}, S(-HUGE_VAL));
    own = combine(own, {largest, S(0)});
    const S lse = MaxSum<S>{largest, blockSum(own.sum)}.logSum();
    if (threadIdx.x != 0)
      continue;
    const int64_t label = labels[row];
    lses[row] = lse;
    S loss = 0;
    if (label != ignored) {
      if (label < 0 || label >= classes)
        refuse(label);
      else
        loss = lse - wide(x[label]);
    }
    losses[row] = loss;
  }
}

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

} // namespace

std::unique_ptr<Kernel> makeCrossEntropy(const Invocation &invocation, const BuildOptions &) {
  const Call checked(invocation);
  checked.requireWorkspace(Device::Cuda);
  const CrossEntropyCall call(checked);
  return withFloat(call.dtype, [&](auto zero) {
    using T = decltype(zero);
    using S = Sum<T>;
    return launching(
        invocation,
        [call, workspace = checked.workspace()](const CallContext &context, std::span<void *const> operands) {
          const cudaStream_t stream = streamOf(context);
          const auto *labels = at<const int64_t>(operands, 1);
          auto *losses = static_cast<S *>(workspace.at(operands));
          const auto *logits = at<const T>(operands, 0);
          const auto enqueue = [&](auto packed) {
            launch<rowsKernel<T, packed()>>(blocksFor(call.rows, 1), lossThreadsFor<T>(call.classes), stream, logits,
                                            labels, at<S>(operands, 3), losses, call.rows, call.columns, call.classes,
                                            call.ignoreIndex, Refuser(context));
          };
          if (call.rows > 0)
            inPacks<T>(call.columns, {logits}) ? enqueue(std::true_type{}) : enqueue(std::false_type{});
          launch<lossKernel<S>>(1, allRowsThreads, stream, losses, labels, at<S>(operands, 2), call.rows,
                                call.ignoreIndex, call.mean);
        },
        labelRefusal("cross_entropy", call));
  });
}

} // namespace ds::kernels::cuda
