#include "kernels/KernelTable.h"
#include "kernels/conv/ConvBlocks.h"
#include "kernels/conv/conv_widened.h"

#include <algorithm>

namespace ds::kernels {

/// With room for alignment; the kernel takes fewer workers where the cap leaves no room for all.
static int64_t workspaceOf(int64_t shared, int64_t worker, const WorkspaceLimits &limits) {
  const int64_t bytes = shared + limits.workers * worker;
  return bytes == 0 ? 0 : std::min(limits.workers * limits.bytesPerWorker, bytes + 63);
}

int64_t convWorkspace(const CallTypes &call, const WorkspaceLimits &limits) {
  const ConvBlocks blocks(call["x"], call["w"], call["y"]);
  return workspaceOf(0, blocks.forwardBytes() + blocks.forwardTileBytes(), limits);
}

int64_t convInputGradWorkspace(const CallTypes &call, const WorkspaceLimits &limits) {
  const ConvBlocks blocks(call["dx"], call["w"], call["dy"]);
  return workspaceOf(0, blocks.inputBytes() + blocks.inputTileBytes(), limits);
}

int64_t convWeightGradWorkspace(const CallTypes &call, const WorkspaceLimits &limits) {
  const ConvBlocks blocks(call["x"], call["dw"], call["dy"]);
  return workspaceOf(blocks.sharedBytes(), blocks.weightBytes() + blocks.weightTileBytes(), limits);
}

WorkspaceOf libraryWorkspace;

/// What cuDNN may use, and where the gradient has another type than its factors, float32 copies of these.
int64_t cudaConvWeightGradWorkspace(const CallTypes &call, const WorkspaceLimits &limits) {
  const int64_t library = libraryWorkspace(call, limits);
  if (library == 0 || call["dw"].dtype == call["x"].dtype)
    return library;
  return widenedBytes(call.elements("dy")) + widenedBytes(call.elements("x")) + library;
}

/// Each element of a convolution's result is as many products as the weight has elements for one output channel.
static double flopsOf(const CallTypes &call, std::string_view result, std::string_view weight) {
  const auto channels = double(call.dim(weight, 0));
  return channels == 0 ? 0 : 2 * double(call.elements(result)) * (double(call.elements(weight)) / channels);
}

double convFlops(const CallTypes &call) { return flopsOf(call, "y", "w"); }
double convInputGradFlops(const CallTypes &call) { return flopsOf(call, "dy", "w"); }
double convWeightGradFlops(const CallTypes &call) { return flopsOf(call, "dy", "dw"); }

} // namespace ds::kernels
