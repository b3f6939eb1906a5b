// Kernels for bfloat16 and float16, which on a CPU are for checking plans and other devices' kernels: right before
// fast. Arithmetic in 16 bits is float32's with one rounding at the end (KernelRow.h), so the float32 kernel is run on
// copies.
//
// The copies lie at the start of the workspace, and the float32 kernel gets the rest. A call that brings less than the
// copies, as a plan by hand may, gets memory of the kernel's own when it is made.
#include "kernels/cpu/Widened.h"

#include "kernels/Call.h"
#include "kernels/Numbers.h"

#include <algorithm>

namespace ds::kernels {

namespace {

constexpr int64_t grain = 1 << 15;

class Widened : public Kernel {
public:
  Widened(const Call &call, WidenedCall widened, const BuildOptions &options, Factory wide)
      : widened_(std::move(widened)), workspace_(call.workspace()) {
    if (workspace_.bytes < widened_.bytes)
      own_.resize(size_t(widened_.bytes));
    widened_.leaveRestOf(workspace_.bytes);
    addresses_.resize(widened_.call.operands.size());
    wide_ = wide(widened_.call, options);
  }

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    std::byte *area = own_.empty() ? static_cast<std::byte *>(workspace_.at(operands)) : own_.data();
    std::copy_n(operands.begin(), workspace_.operand, addresses_.begin());
    if (addresses_.size() > workspace_.operand)
      addresses_[workspace_.operand] = area + widened_.bytes;
    const auto copyOf = [&](const WidenedCall::Copy &copy) { return reinterpret_cast<float *>(area + copy.offset); };
    for (const WidenedCall::Copy &copy : widened_.copies) {
      addresses_[copy.operand] = copyOf(copy);
      if (copy.read)
        withNarrowFloat(copy.dtype, [&](auto zero) {
          convert(context, static_cast<const decltype(zero) *>(operands[copy.operand]), copyOf(copy), copy.elements);
        });
    }
    if (Status status = wide_->execute(context, addresses_); !status.ok())
      return status;
    for (const WidenedCall::Copy &copy : widened_.copies)
      if (copy.written)
        withNarrowFloat(copy.dtype, [&](auto zero) {
          convert(context, copyOf(copy), static_cast<decltype(zero) *>(operands[copy.operand]), copy.elements);
        });
    return Status::success();
  }

private:
  template <typename From, typename To>
  static void convert(const CallContext &context, const From *from, To *to, int64_t count) noexcept {
    parallelFor(context, piecesOf(count, grain), [&](int64_t piece, int) {
      for (int64_t i = piece * grain, end = std::min(i + grain, count); i < end; ++i)
        to[i] = To(float(from[i]));
    });
  }

  WidenedCall widened_;
  CallWorkspace workspace_;
  std::vector<void *> addresses_;
  std::vector<std::byte> own_; ///< empty where the workspace has room for the copies
  std::unique_ptr<Kernel> wide_;
};

} // namespace

std::unique_ptr<Kernel> makeWidened(const Invocation &invocation, const BuildOptions &options, Factory wide) {
  const Call call(invocation);
  return std::make_unique<Widened>(call, WidenedCall(invocation), options, wide);
}

} // namespace ds::kernels
