//===- ShimAccelerator.h - kernels for GPUs, run on the host --------------===//
#pragma once

#include "test/unit/kernels/Accelerator.h"

#include <map>
#include <set>
#include <string>

namespace ds::kernels::test {

class ShimAccelerator : public Accelerator {
public:
  /// Operands begin `shift` of their elements behind a multiple of 256 bytes; workspaces at one.
  /// Operands, or the `only` one, begin `shift` elements behind a multiple of 256 bytes.
  explicit ShimAccelerator(const KernelRegistry &kernels, size_t shift = 0, std::optional<size_t> only = {})
      : kernels_(kernels), shift_(shift), only_(only) {}

  const KernelRegistry &kernels() const override { return kernels_; }
  Device device() const override { return Device::Cuda; }
  bool isSimulated() const override { return true; }
  /// A long call is run in one order alone: the shim sees races in any.
  int rounds() const override { return lastAccesses_ > 2'000'000 ? 1 : 3; }
  /// Runs with ascending, descending and random orders of threads in turn.
  Status run(const Invocation &invocation, std::vector<Buffer> &operands, CallContext context,
             std::optional<Over> over) override;

  struct Ran {
    std::set<std::string> types, calls;
  };
  std::map<std::string, Ran> ran, ranByCudnn; ///< by kernel, without those that failed; our own, and cuDNN's

private:
  const KernelRegistry &kernels_;
  size_t shift_;
  std::optional<size_t> only_;
  uint64_t runs_ = 0;
  int64_t lastAccesses_ = 0;
};

/// Whether cuDNN's stand-in has engines, as long as this lives.
class WithCudnn {
public:
  explicit WithCudnn(bool has);
  ~WithCudnn();
  WithCudnn(const WithCudnn &) = delete;

private:
  std::string before_;
};

} // namespace ds::kernels::test
