//===- Constant.cpp - values known while importing --------------------------===//
#include "compiler/import/Constant.h"

#include "compiler/import/NarrowFloat.h"
#include "compiler/import/files/Failure.h"

#include "llvm/ADT/bit.h"

namespace ds::import {

void FoldBudget::charge(int64_t elements) {
  if (elements > perConstant_ || elements > left_)
    throw Failure("a value computed from shapes and constants has " + std::to_string(elements) +
                  " elements, more than may be folded");
  left_ -= elements;
}

Shape denseStrides(const Shape &shape) {
  Shape strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = shape[i] == 1 ? 0 : stride;
    stride *= shape[i];
  }
  return strides;
}

Constant Constant::dense(DType dtype, const Shape &shape, std::vector<char> bytes) {
  Constant result;
  result.dtype_ = dtype;
  result.shape_ = shape;
  result.strides_ = denseStrides(shape);
  result.data_ = std::make_shared<const std::vector<char>>(std::move(bytes));
  result.shrink();
  return result;
}

Constant Constant::integers(const std::vector<int64_t> &values) {
  std::vector<char> bytes(values.size() * sizeof(int64_t));
  if (!values.empty())
    std::memcpy(bytes.data(), values.data(), bytes.size());
  return dense(DType::I64, {int64_t(values.size())}, std::move(bytes));
}

Constant Constant::integer(int64_t value, DType dtype) {
  return dtype == DType::I32 ? scalar(dtype, int32_t(value)) : scalar(DType::I64, value);
}

bool Constant::isUniform() const {
  for (size_t i = 0; i < shape_.size(); ++i)
    if (shape_[i] == 0 || (shape_[i] > 1 && strides_[i] != 0))
      return false;
  return true;
}

Shape Constant::distinctShape() const {
  Shape shape = shape_;
  for (size_t i = 0; i < shape.size(); ++i)
    if (strides_[i] == 0 && shape[i] > 1)
      shape[i] = 1;
  return shape;
}

/// Gives stride 0 to each dimension of dense data whose slices are all equal, bit by bit, and keeps one slice.
void Constant::shrink() {
  const int64_t elements = elementCount(shape_);
  if (elements <= 1)
    return;
  const auto size = size_t(byteSize(dtype_));
  Shape physical = shape_;
  std::vector<char> kept;
  const std::vector<char> *from = data_.get();
  for (size_t dim = 0; dim < physical.size(); ++dim) {
    const auto count = size_t(physical[dim]);
    if (count <= 1)
      continue;
    size_t inner = size, outer = 1;
    for (size_t i = dim + 1; i < physical.size(); ++i)
      inner *= size_t(physical[i]);
    for (size_t i = 0; i < dim; ++i)
      outer *= size_t(physical[i]);
    bool equal = true;
    for (size_t o = 0; o < outer && equal; ++o) // slices k = 0 .. count-2 equal their successors
      equal = std::memcmp(from->data() + o * count * inner, from->data() + (o * count + 1) * inner,
                          (count - 1) * inner) == 0;
    if (!equal)
      continue;
    std::vector<char> next(outer * inner);
    for (size_t o = 0; o < outer; ++o)
      std::memcpy(next.data() + o * inner, from->data() + o * count * inner, inner);
    kept = std::move(next);
    from = &kept;
    physical[dim] = 1;
  }
  if (from == data_.get())
    return;
  data_ = std::make_shared<const std::vector<char>>(std::move(kept));
  strides_ = denseStrides(physical);
}

double Constant::firstAsDouble() const {
  switch (dtype_) {
  case DType::F32:
    return double(data<float>()[offset_]);
  case DType::F64:
    return data<double>()[offset_];
  case DType::I32:
    return double(data<int32_t>()[offset_]);
  case DType::I64:
    return double(data<int64_t>()[offset_]);
  case DType::F16:
  case DType::BF16:
    return llvm::bit_cast<double>(convertBits(data<uint16_t>()[offset_], dtype_, DType::F64));
  case DType::U16:
    return double(data<uint16_t>()[offset_]);
  case DType::U32:
    return double(data<uint32_t>()[offset_]);
  default:
    return double(data<uint8_t>()[offset_]);
  }
}

template <typename T> static void copyElements(const Constant &from, std::vector<char> &into) {
  T *next = reinterpret_cast<T *>(into.data());
  const T *data = from.data<T>();
  forEachElement<1>(from.shape(), {from.strides()}, {from.offset()},
                    [&](const std::array<int64_t, 1> &at) { *next++ = data[at[0]]; });
}

std::vector<char> Constant::bytes(const Shape &shape) const {
  const Constant whole = broadcast(shape);
  const int64_t size = byteSize(dtype_);
  std::vector<char> result(size_t(elementCount(shape) * size));
  if (size == 1)
    copyElements<uint8_t>(whole, result);
  else if (size == 2)
    copyElements<uint16_t>(whole, result);
  else if (size == 4)
    copyElements<uint32_t>(whole, result);
  else
    copyElements<uint64_t>(whole, result);
  return result;
}

std::string Constant::identity() const {
  return std::string(name(dtype_)) + toString(shape_) + toString(strides_) + "+" + std::to_string(offset_) + "@" +
         std::to_string(reinterpret_cast<uintptr_t>(data_.get()));
}

std::vector<int64_t> Constant::toIntegers(int64_t limit) const {
  if (elements() > limit)
    throw Failure("a list of " + std::to_string(elements()) + " integers is longer than " + std::to_string(limit));
  std::vector<int64_t> result;
  forEachElement<1>(shape_, {strides_}, {offset_}, [&](const std::array<int64_t, 1> &at) {
    result.push_back(dtype_ == DType::I64   ? data<int64_t>()[at[0]]
                     : dtype_ == DType::I32 ? int64_t(data<int32_t>()[at[0]])
                     : dtype_ == DType::U32 ? int64_t(data<uint32_t>()[at[0]])
                     : dtype_ == DType::U16 ? int64_t(data<uint16_t>()[at[0]])
                                            : int64_t(data<uint8_t>()[at[0]]));
  });
  return result;
}

Constant Constant::view(Shape shape, Shape strides, int64_t offset) const {
  Constant result = *this;
  result.shape_ = std::move(shape);
  result.strides_ = std::move(strides);
  result.offset_ = offset;
  return result;
}

Constant Constant::broadcast(const Shape &shape) const {
  Shape strides(shape.size(), 0);
  const size_t extra = shape.size() - shape_.size();
  for (size_t i = 0; i < shape_.size(); ++i)
    strides[extra + i] = shape_[i] == 1 ? 0 : strides_[i];
  return view(shape, std::move(strides), offset_);
}

} // namespace ds::import
