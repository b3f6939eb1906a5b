#include "kernels/index/element_index_call.h"

namespace ds::kernels {

ElementIndex::ElementIndex(const Call &call)
    : shape_(call.shape("indices")), dataStrides_(rowMajorStrides(call.shape("data"))),
      indexStrides_(rowMajorStrides(shape_)), elements_(call.elements("indices")), type_(call.dtype("indices")) {
  const Shape &data = call.shape("data");
  const size_t axis = call.axis(data);
  bool fits = shape_.size() == data.size();
  for (size_t d = 0; fits && d < data.size(); ++d)
    fits = d == axis || shape_[d] <= data[d];
  call.require(fits, "indices " + toString(shape_) + " do not fit data " + toString(data) + " along axis " +
                         std::to_string(axis));
  length_ = shape_[axis];
  dataLength_ = data[axis];
  dataStride_ = dataStrides_[axis];
  indexStride_ = indexStrides_[axis];
  shape_[axis] = 1;
  columns_ = elements_ == 0 ? 0 : elementCount(shape_);
}

ElementIndex::Column ElementIndex::column(int64_t c) const {
  Column result{0, 0};
  for (size_t d = shape_.size(); d-- > 0;) {
    const int64_t at = c % shape_[d];
    c /= shape_[d];
    result.data += at * dataStrides_[d];
    result.indices += at * indexStrides_[d];
  }
  return result;
}

Status ElementIndex::check(const char *kernel, const void *indices) const noexcept {
  for (int64_t i = 0; i < elements_; ++i) {
    const int64_t index = indexAt(indices, type_, i);
    if (index < -dataLength_ || index >= dataLength_)
      return Status::failure("kernel '%s': index %lld at position %lld is out of range [%lld, %lld)", kernel,
                             static_cast<long long>(index), static_cast<long long>(i),
                             static_cast<long long>(-dataLength_), static_cast<long long>(dataLength_));
  }
  return Status::success();
}

} // namespace ds::kernels
