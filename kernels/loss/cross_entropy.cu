// cross_entropy: loss = sum or mean of lse[row] - logits[row, label[row]]. A block reads a row once (online_softmax.h);
// the rows' losses lie in the workspace and are added by one block. torch.nn.functional.cross_entropy.
#include "kernels/loss/cross_entropy.cuh"

#include "kernels/reduce/online_softmax.h"

namespace ds::kernels::cuda {

namespace {

template <typename T>
__global__ void __launch_bounds__(mostRowThreads)
    rowsKernel(const T *logits, const int64_t *labels, Sum<T> *lses, Sum<T> *losses, int64_t rows, int64_t columns,
               int64_t classes, int64_t ignored, Refuser refuse) {
  using S = Sum<T>;
  constexpr int atOnce = 8; // loads in flight
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T *x = logits + row * columns;
    MaxSum<S> own;
    for (int64_t c = threadIdx.x; c < classes; c += int64_t(blockDim.x) * atOnce) {
      S values[atOnce];
      for (int j = 0; j < atOnce; ++j) {
        const int64_t i = c + int64_t(j) * blockDim.x;
        values[j] = i < classes ? wide(x[i]) : S(-HUGE_VAL);
      }
      S largest = values[0];
      for (int j = 1; j < atOnce; ++j)
        largest = Larger{}(largest, values[j]);
      MaxSum<S> these{largest, S(0)};
      for (int j = 0; j < atOnce; ++j) // -inf less -inf only where all are: MaxSum::logSum looks for that
        these.sum += values[j] == largest ? S(1) : std::exp(values[j] - largest);
      own = MaxSum<S>::combined(own, these);
    }
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
__global__ void __launch_bounds__(mostRowThreads)
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
          if (call.rows > 0)
            launch<rowsKernel<T>>(blocksFor(call.rows, 1), rowThreads(call.classes, 8), stream,
                                  at<const T>(operands, 0), labels, at<S>(operands, 3), losses, call.rows, call.columns,
                                  call.classes, call.ignoreIndex, Refuser(context));
          launch<lossKernel<S>>(1, mostRowThreads, stream, losses, labels, at<S>(operands, 2), call.rows,
                                call.ignoreIndex, call.mean);
        },
        labelRefusal("cross_entropy", call));
  });
}

} // namespace ds::kernels::cuda
