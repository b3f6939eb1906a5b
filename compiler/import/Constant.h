//===- Constant.h - values known while importing ----------------------------===//
#pragma once

#include "core/DType.h"
#include "core/Shape.h"

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace ds::import {

/// What folding may still make, in elements; throws Failure when it is used up, before anything is allocated.
class FoldBudget {
public:
  explicit FoldBudget(int64_t perConstant) : perConstant_(perConstant), left_(perConstant * 8) {}
  void charge(int64_t elements);

private:
  int64_t perConstant_, left_;
};

/// A host tensor seen through strides: expanding, transposing and slicing copy nothing, and a dimension along which all
/// slices are equal has stride 0 and takes no space. So a causal mask [b, 1, S, S] that is the same for all of the
/// batch costs S * S elements while it is folded.
class Constant {
public:
  Constant() = default;
  /// From elements in row-major order; finds the dimensions along which they do not change.
  static Constant dense(DType dtype, const Shape &shape, std::vector<char> bytes);
  static Constant integers(const std::vector<int64_t> &values);
  static Constant integer(int64_t value, DType dtype = DType::I64);
  template <typename T> static Constant scalar(DType dtype, T value) {
    std::vector<char> bytes(sizeof(T));
    std::memcpy(bytes.data(), &value, sizeof(T));
    return dense(dtype, {}, std::move(bytes));
  }

  DType dtype() const { return dtype_; }
  const Shape &shape() const { return shape_; }
  const Shape &strides() const { return strides_; }
  int64_t offset() const { return offset_; }
  int64_t elements() const { return elementCount(shape_); }
  /// Whether all elements are one and the same.
  bool isUniform() const;
  /// `shape` with 1 where the stride is 0.
  Shape distinctShape() const;

  template <typename T> const T *data() const { return reinterpret_cast<const T *>(data_->data()); }
  /// The first element, converted; there must be one.
  double firstAsDouble() const;

  /// The elements of `shape`, to which this one broadcasts, in row-major order.
  std::vector<char> bytes(const Shape &shape) const;
  /// All elements of an integer constant; throws Failure where they pass `limit`.
  std::vector<int64_t> toIntegers(int64_t limit = 65536) const;

  /// Equal for views of the same elements; tells data apart by where it lies, so keep the constant while keeping the
  /// key.
  std::string identity() const;

  /// Another view of the same data. The caller has checked that every element lies inside.
  Constant view(Shape shape, Shape strides, int64_t offset) const;
  /// A view of `shape`, which this one broadcasts to.
  Constant broadcast(const Shape &shape) const;

private:
  void shrink();

  DType dtype_ = DType::I64;
  Shape shape_, strides_; // in elements
  int64_t offset_ = 0;    // in elements
  std::shared_ptr<const std::vector<char>> data_;
};

/// Row-major strides of a dense tensor, 0 for dimensions of size 1.
Shape denseStrides(const Shape &shape);

/// Calls body(offsets) for every index of `shape` in row-major order; offsets[i] moves by strides[i].
template <size_t N, typename Body>
void forEachElement(const Shape &shape, const std::array<Shape, N> &strides, std::array<int64_t, N> offsets,
                    Body body) {
  for (int64_t dim : shape)
    if (dim == 0)
      return;
  if (shape.empty()) {
    body(offsets);
    return;
  }
  const size_t last = shape.size() - 1;
  Shape index(shape.size(), 0);
  for (;;) {
    std::array<int64_t, N> inner = offsets;
    for (int64_t i = 0; i < shape[last]; ++i) {
      body(inner);
      for (size_t k = 0; k < N; ++k)
        inner[k] += strides[k][last];
    }
    size_t dim = last;
    for (;;) {
      if (dim == 0)
        return;
      --dim;
      for (size_t k = 0; k < N; ++k)
        offsets[k] += strides[k][dim];
      if (++index[dim] < shape[dim])
        break;
      for (size_t k = 0; k < N; ++k)
        offsets[k] -= strides[k][dim] * shape[dim];
      index[dim] = 0;
    }
  }
}

} // namespace ds::import
