//===- conv_workspace.h - what of a workspace is whose --------------------===//
#pragma once

#include "kernels/ConvBlocks.h"

#include <cstddef>
#include <cstdint>

namespace ds::kernels {

/// A part for all workers, and behind it a slot for each of as many workers as there is room for.
class ConvWorkspace {
public:
  ConvWorkspace() = default;
  ConvWorkspace(int64_t bytes, int64_t sharedBytes, int64_t slotBytes, int maxWorkers)
      : sharedBytes_(sharedBytes), slotBytes_(slotBytes) {
    const int64_t left = bytes - 63 - sharedBytes; // the address may not be aligned
    if (sharedBytes == 0 && slotBytes == 0)
      concurrency_ = maxWorkers;
    else if (left >= 0)
      concurrency_ = slotBytes == 0 ? maxWorkers : int(std::min<int64_t>(left / slotBytes, maxWorkers));
  }

  bool fits() const { return concurrency_ > 0; }
  /// Workers that may take pieces.
  int concurrency() const { return concurrency_; }

  template <typename T> T *shared(void *workspace) const { return reinterpret_cast<T *>(aligned(workspace)); }
  template <typename T> T *slot(void *workspace, int worker) const {
    return reinterpret_cast<T *>(aligned(workspace) + sharedBytes_ + worker * slotBytes_);
  }

private:
  static std::byte *aligned(void *workspace) {
    return static_cast<std::byte *>(workspace) + (64 - reinterpret_cast<uintptr_t>(workspace) % 64) % 64;
  }

  int64_t sharedBytes_ = 0, slotBytes_ = 0;
  int concurrency_ = 0;
};

} // namespace ds::kernels
