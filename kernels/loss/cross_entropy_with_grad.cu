// cross_entropy_with_grad: cross_entropy and its gradient, with the bits of both. A block reads a row for the log of
// its sum and, while it is in the cache, again for the gradient, which may lie over it. What rows are multiplied with
// is made before by one block, the loss behind by one.
#include "kernels/loss/cross_entropy.cuh"

namespace ds::kernels::cuda {

namespace {

template <typename T, bool packed>
__global__ void __launch_bounds__(lossThreads)
    rowsKernel(const T *logits, const int64_t *labels, const Sum<T> *scale, Sum<T> *lses, Sum<T> *losses, T *dlogits,
               int64_t rows, int64_t columns, int64_t classes, int64_t ignored) {
  using S = Sum<T>;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    if (threadIdx.x == 0 && isClass(labels[row], classes, ignored))
      losses[row] = wide(logits[row * columns + labels[row]]); // now: some thread may write its gradient there
    const S lse = logSumOfRow<packed>(logits + row * columns, classes);
    if (threadIdx.x == 0) {
      lses[row] = lse;
      losses[row] = isClass(labels[row], classes, ignored) ? lse - losses[row] : S(0);
    }
    gradientOfRow<packed>(logits + row * columns, lse, labels[row], *scale, dlogits + row * columns, columns, classes,
                          ignored);
  }
}

} // namespace

std::unique_ptr<Kernel> makeCrossEntropyWithGrad(const Invocation &invocation, const BuildOptions &) {
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
          auto *scale = static_cast<S *>(workspace.at(operands)), *losses = scale + 1;
          launch<scaleKernel<S>>(1, allRowsThreads, stream, labels, at<const S>(operands, 2), scale, call.rows,
                                 call.classes, call.ignoreIndex, call.mean, Refuser(context));
          const auto *logits = at<const T>(operands, 0);
          auto *dlogits = at<T>(operands, 5);
          const auto enqueue = [&](auto packed) {
            launch<rowsKernel<T, packed()>>(blocksFor(call.rows, 1), lossThreadsFor<T>(call.classes), stream, logits,
                                            labels, scale, at<S>(operands, 4), losses, dlogits, call.rows, call.columns,
                                            call.classes, call.ignoreIndex);
          };
          if (call.rows > 0)
            inPacks<T>(call.columns, {logits, dlogits}) ? enqueue(std::true_type{}) : enqueue(std::false_type{});
          launch<lossKernel<S>>(1, allRowsThreads, stream, losses, labels, at<S>(operands, 3), call.rows,
                                call.ignoreIndex, call.mean);
        },
        labelRefusal("cross_entropy_with_grad", call));
  });
}

} // namespace ds::kernels::cuda
