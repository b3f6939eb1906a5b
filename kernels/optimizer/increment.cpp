// increment: step += 1.
#include "kernels/Call.h"

#include <cstdint>

namespace ds::kernels {

namespace {

class Increment : public Kernel {
public:
  Status execute(const CallContext &, std::span<void *const> operands) noexcept override {
    auto &step = *static_cast<int64_t *>(operands[0]);
    if (step == INT64_MAX)
      return Status::failure("kernel 'increment': step %lld is the largest int64", static_cast<long long>(step));
    ++step;
    return Status::success();
  }
};

} // namespace

std::unique_ptr<Kernel> makeIncrement(const Invocation &invocation, const BuildOptions &) {
  const Call checked(invocation);
  return std::make_unique<Increment>();
}

/// One number: there is nothing to make fast.
std::unique_ptr<Kernel> makeIncrementReference(const Invocation &invocation, const BuildOptions &options) {
  return makeIncrement(invocation, options);
}

} // namespace ds::kernels
