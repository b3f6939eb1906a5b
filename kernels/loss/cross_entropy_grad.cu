// cross_entropy_grad: dlogits = (softmax(logits) - one_hot(label)) * dloss / (labels that count); ignored rows are 0.
// One pass over the logits, in place if dlogits are their memory; what the rows are multiplied with is made first, by
// one block.
#include "kernels/loss/cross_entropy.cuh"

namespace ds::kernels::cuda {

namespace {

template <typename S>
__global__ void __launch_bounds__(mostRowThreads)
    scaleKernel(const int64_t *labels, const S *dloss, S *scale, int64_t rows, int64_t classes, int64_t ignored,
                bool mean, Refuser refuse) {
  for (int64_t row = threadIdx.x; row < rows; row += blockDim.x)
    if (labels[row] != ignored && (labels[row] < 0 || labels[row] >= classes))
      refuse(labels[row]);
  const int64_t count = countLabels(labels, rows, ignored);
  if (threadIdx.x == 0)
    *scale = mean ? *dloss / S(count) : *dloss;
}

/// `logits` and `dlogits` may be the same memory: a thread reads an element before it writes that one.
template <typename T>
__global__ void __launch_bounds__(mostRowThreads)
    rowsKernel(const T *logits, const int64_t *labels, const Sum<T> *lses, const Sum<T> *scale, T *dlogits,
               int64_t rows, int64_t columns, int64_t classes, int64_t ignored) {
  using S = Sum<T>;
  constexpr int atOnce = 8; // loads in flight
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const int64_t label = labels[row];
    const S lse = lses[row], factor = *scale;
    for (int64_t c = threadIdx.x; c < columns; c += int64_t(blockDim.x) * atOnce) {
      S values[atOnce];
      for (int j = 0; j < atOnce; ++j)
        if (const int64_t i = c + int64_t(j) * blockDim.x; i < columns)
          values[j] = wide(logits[row * columns + i]);
      for (int j = 0; j < atOnce; ++j)
        if (const int64_t i = c + int64_t(j) * blockDim.x; i < columns)
          dlogits[row * columns + i] =
              narrow<T>(label == ignored || i >= classes ? S(0) : (std::exp(values[j] - lse) - S(label == i)) * factor);
    }
  }
}

} // namespace

std::unique_ptr<Kernel> makeCrossEntropyGrad(const Invocation &invocation, const BuildOptions &) {
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
          auto *scale = static_cast<S *>(workspace.at(operands));
          launch<scaleKernel<S>>(1, mostRowThreads, stream, labels, at<const S>(operands, 3), scale, call.rows,
                                 call.classes, call.ignoreIndex, call.mean, Refuser(context));
          if (call.rows > 0)
            launch<rowsKernel<T>>(blocksFor(call.rows, 1), rowThreads(call.classes, 8), stream,
                                  at<const T>(operands, 0), labels, at<const S>(operands, 2), scale, at<T>(operands, 4),
                                  call.rows, call.columns, call.classes, call.ignoreIndex);
        },
        labelRefusal("cross_entropy_grad", call));
  });
}

} // namespace ds::kernels::cuda
