// cross_entropy_grad: dlogits = (softmax(logits) - one_hot(label)) * dloss / (labels that count); ignored rows are 0.
// One pass over the logits, in place if dlogits are their memory; what the rows are multiplied with is made first, by
// one block.
#include "kernels/loss/cross_entropy.cuh"

namespace ds::kernels::cuda {

namespace {

template <typename S>
__global__ void __launch_bounds__(allRowsThreads)
    scaleKernel(const int64_t *labels, const S *dloss, S *scale, int64_t rows, int64_t classes, int64_t ignored,
                bool mean, Refuser refuse) {
  for (int64_t row = threadIdx.x; row < rows; row += blockDim.x)
    if (labels[row] != ignored && (labels[row] < 0 || labels[row] >= classes))
      refuse(labels[row]);
  const int64_t count = countLabels(labels, rows, ignored);
  if (threadIdx.x == 0)
    *scale = mean ? *dloss / S(count) : *dloss;
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

/// `logits` and `dlogits` may be the same memory: a thread reads an element before it writes that one.
template <typename T, bool packed>
__global__ void __launch_bounds__(lossThreads)
    rowsKernel(const T *logits, const int64_t *labels, const Sum<T> *lses, const Sum<T> *scale, T *dlogits,
               int64_t rows, int64_t columns, int64_t classes, int64_t ignored) {
  using S = Sum<T>;
  constexpr int width = packOf<T>;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const int64_t label = labels[row], counted = label == ignored ? 0 : classes; // the others are 0
    const S lse = lses[row], factor = *scale;
    for (int64_t c = int64_t(threadIdx.x) * width; c < columns; c += int64_t(blockDim.x) * packsAtOnce * width) {
      Pack<T, width> packs[packsAtOnce];
#pragma unroll
      for (int k = 0; k < packsAtOnce; ++k)
        packs[k] = rowPack<packed>(logits + row * columns, c + int64_t(k) * blockDim.x * width, columns);
#pragma unroll
      for (int k = 0; k < packsAtOnce; ++k) {
        const int64_t first = c + int64_t(k) * blockDim.x * width;
        for (int j = 0; j < width; ++j) {
          const S probability = std::exp(wide(packs[k].values[j]) - lse);
          packs[k].values[j] = narrow<T>(first + j < counted ? (probability - S(first + j == label)) * factor : S(0));
        }
        storeRowPack<packed>(dlogits + row * columns, first, columns, packs[k]);
      }
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
