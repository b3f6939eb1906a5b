// global_norm: norm = sqrt(sum of all partials). Partials of blocks of less than 1024 elements are first added to those
// of 1024, and these as integers (FixedSum.h): the norm depends neither on the blocks nor on how tensors are cut into
// operands. One block of threads; a partial stands for 1024 elements.
#include "kernels/clip/global_norm_call.h"
#include "kernels/cuda/FixedSum.h"
#include "kernels/cuda/Launch.cuh"
#include "kernels/cuda/Reduce.cuh"

namespace ds::kernels::cuda {

namespace {

constexpr int mostOperands = 1024, normThreads = 512, mostParts = sumSquaresBlock / sumSquaresLeaf;

struct Partials {
  int operands;
  const double *data[mostOperands];
  int64_t blocks[mostOperands]; ///< of 1024 elements
  int8_t parts[mostOperands];   ///< partials of one
};
static_assert(sizeof(Partials) < 32764 - 64);

/// The sum of one block of 1024 elements, neighbours first.
__device__ double blockOf(const Partials &partials, int operand, int64_t block) {
  const int parts = partials.parts[operand];
  double values[mostParts];
  for (int i = 0; i < parts; ++i)
    values[i] = partials.data[operand][block * parts + i];
  for (int step = 1; step < parts; step *= 2)
    for (int i = 0; i < parts; i += 2 * step)
      values[i] += values[i + step];
  return values[0];
}

/// f(sum) for every block that falls to this thread.
template <typename F> __device__ void forEachBlock(const Partials &partials, F f) {
  for (int operand = 0; operand < partials.operands; ++operand)
    for (int64_t block = threadIdx.x; block < partials.blocks[operand]; block += blockDim.x)
      f(blockOf(partials, operand, block));
}

__global__ void __launch_bounds__(normThreads)
    globalNormKernel(const __grid_constant__ Partials partials, double *norm) {
  __shared__ Fixed sums[normThreads];
  double largest = 0;
  forEachBlock(partials, [&](double x) { largest = Larger{}(largest, x); });
  largest = blockReduce(largest, Larger{}, 0.0);
  if (!(largest > 0) || largest - largest != 0) { // nothing to add, or infinite, or NaN; the same for all threads
    if (threadIdx.x == 0)
      *norm = sqrt(largest);
    return;
  }
  Fixed sum = 0;
  forEachBlock(partials, [&](double x) { sum += toFixed(x, largest); });
  sums[threadIdx.x] = sum;
  for (int half = normThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (int(threadIdx.x) < half)
      sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  if (threadIdx.x == 0)
    *norm = sqrt(fromFixed(sums[0], largest));
}

} // namespace

std::unique_ptr<Kernel> makeGlobalNorm(const Invocation &invocation, const BuildOptions &) {
  const Call checked(invocation);
  const GlobalNormCall call(checked);
  checked.require(call.counts.size() <= size_t(mostOperands), "has " + std::to_string(call.counts.size()) +
                                                                  " tensors of partials; a GPU takes " +
                                                                  std::to_string(mostOperands));
  return launching(invocation, [call](const CallContext &context, std::span<void *const> operands) {
    Partials partials{};
    partials.operands = int(call.counts.size());
    for (size_t i = 0; i < call.counts.size(); ++i) {
      partials.data[i] = at<const double>(operands, i);
      partials.blocks[i] = call.counts[i] / call.parts[i];
      partials.parts[i] = int8_t(call.parts[i]);
    }
    launch<globalNormKernel>(1, normThreads, streamOf(context), partials, at<double>(operands, call.counts.size()));
  });
}

} // namespace ds::kernels::cuda
