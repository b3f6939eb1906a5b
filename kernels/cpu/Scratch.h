//===- Scratch.h - what each worker of a kernel has of its workspace -----===//
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace ds::kernels {

/// Memory of one worker, at a multiple of 64; none where a plan has left the workspace out.
struct Scratch {
  std::byte *data = nullptr;
  int64_t bytes = 0;
};

/// A workspace in equal parts, one for each worker that will ever call.
class WorkerScratch {
public:
  WorkerScratch() = default;
  WorkerScratch(int64_t bytes, int workers)
      : perWorker_(std::max<int64_t>(bytes - (alignment - 1), 0) / std::max(workers, 1) / alignment * alignment) {}

  /// Bytes of a workspace in which each of `workers` has `bytes`; the address may not be aligned.
  static constexpr int64_t bytesFor(int64_t bytes, int64_t workers) {
    return bytes == 0 ? 0 : workers * ((bytes + alignment - 1) / alignment * alignment) + alignment - 1;
  }

  Scratch of(void *workspace, int worker) const {
    return perWorker_ == 0 ? Scratch{} : Scratch{aligned(workspace) + worker * perWorker_, perWorker_};
  }
  static std::byte *aligned(void *address) {
    return static_cast<std::byte *>(address) +
           (alignment - reinterpret_cast<uintptr_t>(address) % alignment) % alignment;
  }

private:
  static constexpr int64_t alignment = 64;

  int64_t perWorker_ = 0;
};

} // namespace ds::kernels
