//===- conv_workspace.h - what of a workspace is whose -------------------===//
#pragma once

#include "kernels/conv/ConvBlocks.h"
#include "kernels/conv/conv_call.h"
#include "kernels/cpu/Scratch.h"

#include <memory>

namespace ds::kernels {

/// A part for all workers, and behind it a slot for each of as many workers as there is room for: what the worker
/// gathers, and room to pack products, which it can do without.
class ConvWorkspace {
public:
  ConvWorkspace(int64_t bytes, int64_t sharedBytes, int64_t gatherBytes, int64_t tileBytes, int maxWorkers)
      : sharedBytes_(sharedBytes), gatherBytes_(gatherBytes), tileBytes_(tileBytes) {
    const int64_t left = bytes - 63 - sharedBytes; // the address may not be aligned
    if (left < maxWorkers * (gatherBytes_ + tileBytes_))
      tileBytes_ = 0;
    if (sharedBytes == 0 && gatherBytes == 0)
      concurrency_ = maxWorkers;
    else if (left >= 0)
      concurrency_ = gatherBytes == 0 ? maxWorkers : int(std::min<int64_t>(left / gatherBytes, maxWorkers));
  }

  bool fits() const { return concurrency_ > 0; }
  /// Workers that may take pieces.
  int concurrency() const { return concurrency_; }

  template <typename T> T *shared(void *workspace) const {
    return reinterpret_cast<T *>(WorkerScratch::aligned(workspace));
  }
  template <typename T> T *gathered(void *workspace, int worker) const {
    return gatherBytes_ == 0 ? nullptr : reinterpret_cast<T *>(slot(workspace, worker));
  }
  Scratch scratch(void *workspace, int worker) const {
    return tileBytes_ == 0 ? Scratch{} : Scratch{slot(workspace, worker) + gatherBytes_, tileBytes_};
  }

private:
  std::byte *slot(void *workspace, int worker) const {
    return WorkerScratch::aligned(workspace) + sharedBytes_ + worker * (gatherBytes_ + tileBytes_);
  }

  int64_t sharedBytes_, gatherBytes_, tileBytes_; ///< of a worker, but the shared ones
  int concurrency_ = 0;
};

/// What a convolution wants of its workspace: for all workers, and of each to gather windows and to pack products.
struct ConvNeeds {
  int64_t sharedBytes, gatherBytes, tileBytes;
};

/// The kernel by products of blocks, or `direct` where these are thin, where strides and pads only look like none, or
/// where the workspace is too small.
template <template <typename> class KernelT, typename CallT, typename Direct>
std::unique_ptr<Kernel> makeConvolution(const CallT &call, const ConvBlocks &blocks, const ConvNeeds &needs,
                                        const BuildOptions &options, Direct direct) {
  const bool pointwise = call.isPointwise();
  const ConvWorkspace workspace(call.workspace.bytes, needs.sharedBytes, pointwise ? 0 : needs.gatherBytes,
                                needs.tileBytes, std::max(1, options.maxWorkers));
  if (blocks.isDirect() || (blocks.pointwise && !pointwise) || !workspace.fits())
    return direct(call);
  return makeByFloat<KernelT>(call.dtype, call, blocks, workspace);
}

} // namespace ds::kernels
