//===- Accelerator.h - kernels that run elsewhere than on the host --------===//
#pragma once

#include "test/unit/kernels/Harness.h"

#include <cstdlib>
#include <optional>
#include <string>

namespace ds::kernels::test {

/// Whether a kernel of our own in a library's place is an error (DS_CUDA_STRICT), as long as this lives.
class Strictly {
public:
  explicit Strictly(bool is) {
    if (const char *before = std::getenv(variable))
      before_ = before;
    ::setenv(variable, is ? "1" : "0", 1);
  }
  ~Strictly() { ::setenv(variable, before_.c_str(), 1); } // "" is as if it was not set
  Strictly(const Strictly &) = delete;

private:
  static constexpr const char *variable = "DS_CUDA_STRICT";
  std::string before_;
};

/// A device with kernels of its own. Where a test binary sets one, Harness.h compares its kernels, not the CPU's, with
/// the references: the same cases judge every device.
class Accelerator {
public:
  /// A result in the memory of an operand.
  struct Over {
    size_t result, operand;
  };

  virtual ~Accelerator() = default;
  virtual const KernelRegistry &kernels() const = 0;
  virtual Device device() const = 0;
  /// Runs of a call that must give the same bits; asked again after each.
  virtual int rounds() const { return 2; }
  /// Whether a thread costs as much as a function call of the host: the largest calls are left out.
  virtual bool isSimulated() const { return false; }
  /// Copies the operands to the device, runs the kernel to its end and copies all of them back, guard bytes included.
  virtual Status run(const Invocation &invocation, std::vector<Buffer> &operands, CallContext context,
                     std::optional<Over> over = {}) = 0;

  /// The one of this binary; null: the kernels for CPUs are tested.
  static Accelerator *&instance();
};

} // namespace ds::kernels::test
