// cross_entropy_grad: dlogits = (softmax(logits) - one_hot(label)) * dloss / (labels that count); ignored rows are 0.
// One pass over the logits, in place if dlogits are their memory; what the rows are multiplied with is made first, by
// one block.
#include "kernels/loss/cross_entropy.cuh"

namespace ds::kernels::cuda {

namespace {

template <typename T, bool packed>
__global__ void __launch_bounds__(lossThreads)
    rowsKernel(const T *logits, const int64_t *labels, const Sum<T> *lses, const Sum<T> *scale, T *dlogits,
               int64_t rows, int64_t columns, int64_t classes, int64_t ignored) {
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    gradientOfRow<packed>(logits + row * columns, lses[row], labels[row], *scale, dlogits + row * columns, columns,
                          classes, ignored);
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
          launch<scaleKernel<S>>(1, allRowsThreads, stream, labels, at<const S>(operands, 3), scale, call.rows,
                                 call.classes, call.ignoreIndex, call.mean, Refuser(context));
          const auto *logits = at<const T>(operands, 0);
          auto *dlogits = at<T>(operands, 4);
          const auto enqueue = [&](auto packed) {
            launch<rowsKernel<T, packed()>>(blocksFor(call.rows, 1), lossThreadsFor<T>(call.columns), stream, logits,
                                            labels, at<const S>(operands, 2), scale, dlogits, call.rows, call.columns,
                                            call.classes, call.ignoreIndex);
          };
          if (call.rows > 0)
            inPacks<T>(call.columns, {logits, dlogits}) ? enqueue(std::true_type{}) : enqueue(std::false_type{});
        },
        labelRefusal("cross_entropy_grad", call));
  });
}

} // namespace ds::kernels::cuda
