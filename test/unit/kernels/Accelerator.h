//===- Accelerator.h - kernels that run elsewhere than on the host --------===//
#pragma once

#include "test/unit/kernels/Harness.h"

namespace ds::kernels::test {

/// A device with kernels of its own. Where a test binary sets one, Harness.h compares its kernels, not the CPU's, with
/// the references: the same cases judge every device.
class Accelerator {
public:
  virtual ~Accelerator() = default;
  virtual const KernelRegistry &kernels() const = 0;
  virtual Device device() const = 0;
  /// Copies the operands to the device, runs the kernel to its end and copies all of them back, guard bytes included.
  virtual Status run(const Invocation &invocation, std::vector<Buffer> &operands, CallContext context) = 0;

  /// The one of this binary; null: the kernels for CPUs are tested.
  static Accelerator *&instance();
};

} // namespace ds::kernels::test
