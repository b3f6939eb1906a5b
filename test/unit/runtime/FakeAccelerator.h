//===- FakeAccelerator.h - a device whose memory is not the host's --------===//
#pragma once

#include "kernels/KernelRegistry.h"
#include "runtime/device/Device.h"

#include <cstdint>
#include <memory>

namespace ds::test {

/// What of a FakeAccelerator a test looks at.
struct FakeCounts {
  uint64_t enqueued = 0; ///< kernels, copies and fills that were done as they came
  uint64_t recordings = 0, launches = 0;
};

/// Behaves as a GPU does, on the host: a touch of its device arenas by the host faults, kernels get a stream and no
/// workers, and runs can be recorded. Addresses of its memory mean something to its own queues and kernels only.
/// `counts` outlives it.
std::unique_ptr<runtime::Device> fakeAccelerator(FakeCounts &counts, bool records = true);

/// Enqueues a kernel of the host on a fake stream; a kernel's failure there is value 7 refused.
std::unique_ptr<kernels::Kernel> enqueued(std::unique_ptr<kernels::Kernel> kernel);

/// The kernels of a registry of the host, for fake accelerators.
template <const kernels::KernelRegistry &(*host)()> const kernels::KernelRegistry &onAccelerator() {
  static const kernels::KernelRegistry registry = [] {
    kernels::KernelRegistry built;
    for (const auto &[name, factory] : host().all())
      built.add(name, [](const kernels::Invocation &invocation, const kernels::BuildOptions &options) {
        return enqueued(host().find(invocation.kernel)(invocation, options));
      });
    return built;
  }();
  return registry;
}

} // namespace ds::test
