// Kernels for bfloat16, which on a CPU are for checking plans and other devices' kernels: right before fast. Arithmetic
// in bfloat16 is float32's with one rounding at the end (KernelSignatures.h), so the float32 kernel is run on copies.
#include "kernels/cpu/Widened.h"

#include "kernels/BFloat16.h"
#include "kernels/Call.h"
#include "kernels/WidenedCall.h"

#include <algorithm>
#include <new>

namespace ds::kernels {

namespace {

constexpr int64_t grain = 1 << 15;
constexpr int64_t alignment = 64 / int64_t(sizeof(float));

/// Float32 copies of one call's operands. One area a thread, as large as its largest call: kernels of one rank follow
/// each other on one thread.
float *scratch(int64_t floats) {
  static thread_local std::vector<float> area;
  if (int64_t(area.size()) < floats)
    area.resize(size_t(floats));
  return area.data();
}

class Widened : public Kernel {
public:
  Widened(const Call &call, size_t reads, std::unique_ptr<Kernel> wide) : wide_(std::move(wide)) {
    for (size_t i = 0; i < call.operandCount(); ++i)
      if (call.dtype(i) == DType::BF16) {
        copies_.push_back({i, call.elements(i), floats_, i >= reads});
        floats_ += piecesOf(call.elements(i), alignment) * alignment;
      }
    addresses_.resize(call.operandCount());
  }

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    float *area = nullptr;
    try {
      area = scratch(floats_);
    } catch (const std::bad_alloc &) {
      return Status::failure("there is no memory for %lld float32 copies of a bfloat16 kernel's operands",
                             static_cast<long long>(floats_));
    }
    std::copy(operands.begin(), operands.end(), addresses_.begin());
    for (const Copy &copy : copies_) {
      addresses_[copy.operand] = area + copy.offset;
      if (!copy.written)
        convert(context, static_cast<const BFloat16 *>(operands[copy.operand]), area + copy.offset, copy.elements);
    }
    if (Status status = wide_->execute(context, addresses_); !status.ok())
      return status;
    for (const Copy &copy : copies_)
      if (copy.written)
        convert(context, area + copy.offset, static_cast<BFloat16 *>(operands[copy.operand]), copy.elements);
    return Status::success();
  }

private:
  struct Copy {
    size_t operand;
    int64_t elements, offset;
    bool written;
  };

  template <typename From, typename To>
  static void convert(const CallContext &context, const From *from, To *to, int64_t count) noexcept {
    parallelFor(context, piecesOf(count, grain), [&](int64_t piece, int) {
      for (int64_t i = piece * grain, end = std::min(i + grain, count); i < end; ++i)
        to[i] = To(float(from[i]));
    });
  }

  std::unique_ptr<Kernel> wide_;
  std::vector<Copy> copies_;
  std::vector<void *> addresses_;
  int64_t floats_ = 0;
};

} // namespace

std::unique_ptr<Kernel> makeWidened(const Invocation &invocation, const BuildOptions &options, Factory wide) {
  size_t reads = 0;
  const Invocation copy = float32Invocation(invocation, &reads);
  return std::make_unique<Widened>(Call(invocation), reads, wide(copy, options));
}

} // namespace ds::kernels
