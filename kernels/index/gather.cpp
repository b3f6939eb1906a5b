// gather: y = numpy.take(data, indices, axis). Rows of `inner` elements are copied whole; all indices are checked
// before anything is written.
#include "kernels/index/gather_call.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace ds::kernels {

namespace {

/// Bytes of one piece, roughly.
constexpr int64_t grainBytes = 64 << 10;

class Gather : public Kernel {
public:
  explicit Gather(const Call &call)
      : call_(call, "data", "y"), rowBytes_(call_.data.inner * byteSize(call.dtype())),
        rows_(std::max<int64_t>(1, grainBytes / std::max<int64_t>(rowBytes_, 1))) {}

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    if (Status status = call_.check("gather", operands[1]); !status.ok() || rowBytes_ == 0)
      return status;
    const auto *data = static_cast<const std::byte *>(operands[0]);
    auto *y = static_cast<std::byte *>(operands[2]);
    const int64_t total = call_.data.outer * call_.count;
    parallelFor(context, piecesOf(total, rows_), [&](int64_t piece, int) {
      for (int64_t row = piece * rows_; row < std::min((piece + 1) * rows_, total); ++row) {
        const int64_t from = call_.row(operands[1], row % call_.count);
        if (call_.has(from))
          std::memcpy(y + row * rowBytes_, data + (row / call_.count * call_.data.length + from) * rowBytes_,
                      size_t(rowBytes_));
        else
          std::memset(y + row * rowBytes_, 0, size_t(rowBytes_));
      }
    });
    return Status::success();
  }

private:
  GatherCall call_;
  int64_t rowBytes_, rows_;
};

} // namespace

std::unique_ptr<Kernel> makeGather(const Invocation &invocation, const BuildOptions &) {
  return std::make_unique<Gather>(Call(invocation));
}

} // namespace ds::kernels
