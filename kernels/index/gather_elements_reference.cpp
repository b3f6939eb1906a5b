// gather_elements, element by element.
#include "kernels/index/element_index_call.h"

#include <cstring>

namespace ds::kernels {

namespace {

class GatherElementsReference : public Kernel {
public:
  explicit GatherElementsReference(const Call &call)
      : index_(call), data_(call.shape("data")), taken_(call.shape("indices")), axis_(call.axis(data_)),
        type_(call.dtype("indices")), elementBytes_(byteSize(call.dtype())) {}

  Status execute(const CallContext &, std::span<void *const> operands) noexcept override {
    if (Status status = index_.check("gather_elements", operands[1]); !status.ok())
      return status;
    for (int64_t i = 0; i < elementCount(taken_); ++i) {
      auto at = unravel(i, taken_);
      const int64_t index = indexAt(operands[1], type_, i);
      at[axis_] = index < 0 ? index + data_[axis_] : index;
      int64_t from = 0;
      for (size_t d = 0; d < data_.size(); ++d)
        from = from * data_[d] + at[d];
      std::memcpy(static_cast<char *>(operands[2]) + i * elementBytes_,
                  static_cast<const char *>(operands[0]) + from * elementBytes_, size_t(elementBytes_));
    }
    return Status::success();
  }

private:
  ElementIndex index_; // for its check
  Shape data_, taken_;
  size_t axis_;
  DType type_;
  int64_t elementBytes_;
};

} // namespace

std::unique_ptr<Kernel> makeGatherElementsReference(const Invocation &invocation, const BuildOptions &) {
  return std::make_unique<GatherElementsReference>(Call(invocation));
}

} // namespace ds::kernels
