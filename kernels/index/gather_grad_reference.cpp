// gather_grad: zero, then add in index order.
#include "kernels/index/gather_call.h"

#include <algorithm>

namespace ds::kernels {

namespace {

template <typename T> class GatherGradReference : public Kernel {
public:
  explicit GatherGradReference(const Call &call) : call_(call, "ddata", "dy") {}

  Status execute(const CallContext &, std::span<void *const> operands) noexcept override {
    if (Status status = call_.check("gather_grad", operands[1]); !status.ok())
      return status;
    const auto *dy = static_cast<const T *>(operands[0]);
    auto *ddata = static_cast<T *>(operands[2]);
    const auto [outer, length, inner] = call_.data;
    std::fill_n(ddata, outer * length * inner, T(0));
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t k = 0; k < call_.count; ++k)
        for (int64_t i = 0, row = call_.row(operands[1], k); call_.has(row) && i < inner; ++i)
          ddata[(o * length + row) * inner + i] += dy[(o * call_.count + k) * inner + i];
    return Status::success();
  }

private:
  GatherCall call_;
};

} // namespace

std::unique_ptr<Kernel> makeGatherGradReference(const Invocation &invocation, const BuildOptions &) {
  const Call call(invocation);
  return makeByFloat<GatherGradReference>(call.dtype(), call);
}

} // namespace ds::kernels
