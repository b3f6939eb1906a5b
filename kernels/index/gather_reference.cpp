// gather, element by element.
#include "kernels/index/gather_call.h"

#include <cstring>

namespace ds::kernels {

namespace {

class GatherReference : public Kernel {
public:
  explicit GatherReference(const Call &call) : call_(call, "data", "y"), elementBytes_(byteSize(call.dtype())) {}

  Status execute(const CallContext &, std::span<void *const> operands) noexcept override {
    if (Status status = call_.check("gather", operands[1]); !status.ok())
      return status;
    const auto *data = static_cast<const char *>(operands[0]);
    auto *y = static_cast<char *>(operands[2]);
    const auto [outer, length, inner] = call_.data;
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t k = 0; k < call_.count; ++k)
        for (int64_t i = 0; i < inner; ++i) {
          const int64_t row = call_.row(operands[1], k);
          char *to = y + ((o * call_.count + k) * inner + i) * elementBytes_;
          if (call_.has(row))
            std::memcpy(to, data + ((o * length + row) * inner + i) * elementBytes_, size_t(elementBytes_));
          else
            std::memset(to, 0, size_t(elementBytes_));
        }
    return Status::success();
  }

private:
  GatherCall call_;
  int64_t elementBytes_;
};

} // namespace

std::unique_ptr<Kernel> makeGatherReference(const Invocation &invocation, const BuildOptions &) {
  return std::make_unique<GatherReference>(Call(invocation));
}

} // namespace ds::kernels
