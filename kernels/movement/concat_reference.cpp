// concat, row by row.
#include "kernels/movement/movement_call.h"

#include <cstring>

namespace ds::kernels {

namespace {

class ConcatReference : public Kernel {
public:
  explicit ConcatReference(const Call &call) : call_(call) {}

  Status execute(const CallContext &, std::span<void *const> operands) noexcept override {
    auto *y = static_cast<char *>(operands[call_.inner.size()]);
    int64_t offset = 0;
    for (size_t k = 0; k < call_.inner.size(); ++k) {
      const int64_t bytes = call_.inner[k];
      for (int64_t row = 0; bytes > 0 && row < call_.outer; ++row)
        std::memcpy(y + row * call_.innerTotal + offset, static_cast<const char *>(operands[k]) + row * bytes,
                    size_t(bytes));
      offset += bytes;
    }
    return Status::success();
  }

private:
  ConcatCall call_;
};

} // namespace

std::unique_ptr<Kernel> makeConcatReference(const Invocation &invocation, const BuildOptions &) {
  return std::make_unique<ConcatReference>(Call(invocation));
}

} // namespace ds::kernels
