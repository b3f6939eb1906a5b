// increment: step += 1.
#include "kernels/Call.h"
#include "kernels/cpu/Factories.h"

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
  const Call call(invocation);
  call.expectOperands(1);
  call.expectScalar(0, DType::I64);
  return std::make_unique<Increment>();
}

} // namespace ds::kernels
