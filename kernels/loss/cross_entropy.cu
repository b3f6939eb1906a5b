// cross_entropy: loss = sum or mean of lse[row] - logits[row, label[row]]. A block reads a row once (online_softmax.h);
// the rows' losses lie in the workspace and are added by one block. torch.nn.functional.cross_entropy.
#include "kernels/loss/cross_entropy.cuh"

namespace ds::kernels::cuda {

namespace {

template <typename T, bool packed>
__global__ void __launch_bounds__(lossThreads)
    rowsKernel(const T *logits, const int64_t *labels, Sum<T> *lses, Sum<T> *losses, int64_t rows, int64_t columns,
               int64_t classes, int64_t ignored, Refuser refuse) {
  using S = Sum<T>;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T *x = logits + row * columns;
    const S lse = logSumOfRow<packed>(x, classes);
    if (threadIdx.x != 0)
      continue;
    const int64_t label = labels[row];
    if (isNoLabel(label, classes, ignored))
      refuse(label);
    lses[row] = lse;
    losses[row] = isClass(label, classes, ignored) ? lse - wide(x[label]) : S(0);
  }
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
