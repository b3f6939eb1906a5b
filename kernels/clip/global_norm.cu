// global_norm: norm = sqrt(sum of all partials). Partials of blocks of less than 1024 elements are first added to those
// of 1024, and these as integers (FixedSum.h): the norm depends neither on the blocks nor on how tensors are cut into
// operands. Their unit is that of the largest, so there are three stages: the largest of each piece, then the sums of
// the pieces, then one block adds them. A partial stands for 1024 elements.
#include "kernels/clip/global_norm_call.h"
#include "kernels/clip/global_norm_pieces.h"
#include "kernels/cuda/FixedSum.h"
#include "kernels/cuda/Launch.cuh"
#include "kernels/cuda/Reduce.cuh"

#include <algorithm>

namespace ds::kernels::cuda {

namespace {

constexpr int normThreads = 512, mostParts = sumSquaresBlock / sumSquaresLeaf;

/// Tensors of partials.
struct Partials {
  int tensors = 0;
  const double *data[normTensors];
  int64_t first[normTensors + 1]; ///< the number of each tensor's first block of 1024 elements, and behind the last
  int8_t parts[normTensors];      ///< partials of one block
};
static_assert(sizeof(Partials) < 32764 - 64);

/// The sum of block `block` of 1024 elements, neighbours first.
__device__ double blockOf(const Partials &partials, int64_t block) {
  int low = 0;
  for (int high = partials.tensors; high - low > 1;) {
    const int middle = (low + high) / 2;
    (partials.first[middle] <= block ? low : high) = middle;
  }
  const int parts = partials.parts[low];
  const double *from = partials.data[low] + (block - partials.first[low]) * parts;
  double values[mostParts];
  for (int i = 0; i < parts; ++i)
    values[i] = from[i];
  for (int step = 1; step < parts; step *= 2)
    for (int i = 0; i < parts; i += 2 * step)
      values[i] += values[i + step];
  return values[0];
}

/// f(sum) for every block that falls to this thread.
template <typename F> __device__ void forEachBlock(const Partials &partials, F f) {
  const int64_t stride = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < partials.first[partials.tensors]; i += stride)
    f(blockOf(partials, i));
}

__global__ void __launch_bounds__(normThreads)
    largestKernel(const __grid_constant__ Partials partials, double *largestOfPieces) {
  double largest = 0;
  forEachBlock(partials, [&](double x) { largest = Larger{}(largest, x); });
  largest = blockReduce(largest, Larger{}, 0.0);
  if (threadIdx.x == 0)
    largestOfPieces[blockIdx.x] = largest;
}

/// The largest of all pieces, for every thread of a block.
__device__ double largestOf(const double *largestOfPieces, int64_t pieces) {
  double largest = 0;
  for (int64_t i = threadIdx.x; i < pieces; i += blockDim.x)
    largest = Larger{}(largest, largestOfPieces[i]);
  return blockReduce(largest, Larger{}, 0.0);
}

/// Whether there is something to add, which is neither infinite nor NaN.
__device__ bool hasSum(double largest) { return largest > 0 && largest - largest == 0; }

/// The sum of the threads' numbers, for thread 0.
__device__ Fixed fixedSum(Fixed own) {
  __shared__ Fixed sums[normThreads];
  sums[threadIdx.x] = own;
  for (int half = normThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (int(threadIdx.x) < half)
      sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  return sums[threadIdx.x];
}

__global__ void __launch_bounds__(normThreads)
    sumsKernel(const __grid_constant__ Partials partials, const double *largestOfPieces, int64_t pieces, Fixed *sums) {
  const double largest = largestOf(largestOfPieces, pieces);
  if (!hasSum(largest)) // the same for all threads
    return;
  Fixed sum = 0;
  forEachBlock(partials, [&](double x) { sum += toFixed(x, largest); });
  sum = fixedSum(sum);
  if (threadIdx.x == 0)
    sums[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(normThreads)
    normKernel(const Fixed *sums, const double *largestOfPieces, int64_t pieces, double *norm) {
  const double largest = largestOf(largestOfPieces, pieces);
  if (!hasSum(largest)) {
    if (threadIdx.x == 0)
      *norm = sqrt(largest);
    return;
  }
  Fixed sum = 0;
  for (int64_t i = threadIdx.x; i < pieces; i += blockDim.x)
    sum += sums[i];
  sum = fixedSum(sum);
  if (threadIdx.x == 0)
    *norm = sqrt(fromFixed(sum, largest));
}

/// Those of launch `launch`.
Partials partialsOf(const GlobalNormCall &call, std::span<void *const> operands, int64_t launch) {
  Partials partials;
  partials.first[0] = 0;
  const int64_t end = std::min<int64_t>((launch + 1) * normTensors, int64_t(call.counts.size()));
  for (int64_t i = launch * normTensors; i < end; ++i) {
    const int k = partials.tensors++;
    partials.data[k] = at<const double>(operands, size_t(i));
    partials.parts[k] = int8_t(call.parts[size_t(i)]);
    partials.first[k + 1] = partials.first[k] + call.counts[size_t(i)] / call.parts[size_t(i)];
  }
  return partials;
}

void enqueue(const GlobalNormCall &call, std::span<void *const> operands, void *workspace, cudaStream_t stream) {
  const auto tensors = int64_t(call.counts.size()), launches = normLaunches(tensors);
  auto *sums = static_cast<Fixed *>(workspace);
  auto *largest = reinterpret_cast<double *>(sums + normPieces(tensors));
  const auto forEachLaunch = [&](auto run) {
    int64_t pieces = 0;
    for (int64_t i = 0; i < launches; ++i) {
      const Partials partials = partialsOf(call, operands, i);
      const unsigned blocks = blocksFor(partials.first[partials.tensors], normThreads, normBlocks);
      run(partials, blocks, pieces);
      pieces += blocks;
    }
    return pieces;
  };
  const int64_t pieces = forEachLaunch([&](const Partials &partials, unsigned blocks, int64_t first) {
    launch<largestKernel>(blocks, normThreads, stream, partials, largest + first);
  });
  forEachLaunch([&](const Partials &partials, unsigned blocks, int64_t first) {
    launch<sumsKernel>(blocks, normThreads, stream, partials, largest, pieces, sums + first);
  });
  launch<normKernel>(1, normThreads, stream, sums, largest, pieces, at<double>(operands, size_t(tensors)));
}

} // namespace

std::unique_ptr<Kernel> makeGlobalNorm(const Invocation &invocation, const BuildOptions &) {
  const Call checked(invocation);
  checked.requireWorkspace(Device::Cuda);
  return launching(invocation, [call = GlobalNormCall(checked), workspace = checked.workspace()](
                                   const CallContext &context, std::span<void *const> operands) {
    enqueue(call, operands, workspace.at(operands), streamOf(context));
  });
}

} // namespace ds::kernels::cuda
