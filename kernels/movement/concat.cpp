// concat: the inputs side by side along one axis. numpy.concatenate, torch.cat.
#include "kernels/movement/movement_call.h"
#include "kernels/movement/strided_copy.h"

namespace ds::kernels {

namespace {

class Concat : public Kernel {
public:
  explicit Concat(const ConcatCall &call) {
    int64_t offset = 0;
    for (int64_t bytes : call.inner) {
      copies_.push_back({StridedCopy({{call.outer, bytes, call.innerTotal}, {bytes, 1, 1}}, 1), offset});
      offset += bytes;
    }
  }

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    auto *y = static_cast<std::byte *>(operands[copies_.size()]);
    for (size_t k = 0; k < copies_.size(); ++k)
      copies_[k].copy.run(context, static_cast<const std::byte *>(operands[k]), y + copies_[k].offset);
    return Status::success();
  }

private:
  struct Input {
    StridedCopy copy;
    int64_t offset; ///< bytes from the start of a row of y
  };

  std::vector<Input> copies_;
};

} // namespace

std::unique_ptr<Kernel> makeConcat(const Invocation &invocation, const BuildOptions &) {
  return std::make_unique<Concat>(ConcatCall(Call(invocation)));
}

} // namespace ds::kernels
