//===- FoldMovement.cpp - moving, joining and reducing constants -------------===//
#include "compiler/import/Fold.h"

#include <algorithm>

namespace ds::import {
namespace {

/// Calls f with a value of an unsigned type as wide as the elements: enough to move them.
template <typename F> auto byWidth(DType dtype, F f) {
  switch (byteSize(dtype)) {
  case 1:
    return f(uint8_t());
  case 2:
    return f(uint16_t());
  case 4:
    return f(uint32_t());
  default:
    return f(uint64_t());
  }
}

/// Calls f with a value of the elements' own type; nothing for bool.
template <typename F> std::optional<Constant> byNumber(DType dtype, F f) {
  switch (dtype) {
  case DType::F32:
    return f(float());
  case DType::F64:
    return f(double());
  case DType::I32:
    return f(int32_t());
  case DType::I64:
    return f(int64_t());
  case DType::U8:
    return f(uint8_t());
  case DType::U16:
    return f(uint16_t());
  case DType::U32:
    return f(uint32_t());
  default:
    return std::nullopt;
  }
}

/// Room for a tensor, charged before it is taken.
std::vector<char> allocate(const Shape &shape, DType dtype, FoldBudget &budget) {
  budget.charge(elementCount(shape));
  return std::vector<char>(size_t(elementCount(shape) * byteSize(dtype)));
}

/// Copies `from` into a window of a tensor: element at index x goes to offset + sum(x * strides).
template <typename T> void copyInto(const Constant &from, T *into, const Shape &strides, int64_t offset) {
  const T *data = from.data<T>();
  forEachElement<2>(from.shape(), {from.strides(), strides}, {from.offset(), offset},
                    [&](const std::array<int64_t, 2> &at) { into[at[1]] = data[at[0]]; });
}

/// Strides that also move along dimensions of size 1, for windows.
Shape fullStrides(const Shape &shape) {
  Shape strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0; stride *= shape[i])
    strides[i] = stride;
  return strides;
}

} // namespace

Constant foldReshape(const Constant &input, const Shape &shape, FoldBudget &budget) {
  if (input.isUniform())
    return input.view(shape, Shape(shape.size(), 0), input.offset());
  // Where only dimensions of size 1 come and go, the strides stay.
  Shape strides(shape.size(), 0);
  size_t from = 0;
  bool sameView = true;
  auto skipOnes = [&] {
    while (from < input.shape().size() && input.shape()[from] == 1)
      ++from;
  };
  for (size_t i = 0; i < shape.size() && sameView; ++i) {
    if (shape[i] == 1)
      continue;
    skipOnes();
    sameView = from < input.shape().size() && input.shape()[from] == shape[i];
    if (sameView)
      strides[i] = input.strides()[from++];
  }
  if (sameView)
    return input.view(shape, std::move(strides), input.offset());
  budget.charge(elementCount(shape));
  return Constant::dense(input.dtype(), shape, input.bytes(input.shape()));
}

Constant foldTranspose(const Constant &input, const std::vector<int64_t> &permutation) {
  Shape shape, strides;
  for (int64_t dim : permutation) {
    shape.push_back(input.shape()[size_t(dim)]);
    strides.push_back(input.strides()[size_t(dim)]);
  }
  return input.view(std::move(shape), std::move(strides), input.offset());
}

Constant foldSlice(const Constant &input, const Shape &starts, const Shape &sizes, const Shape &steps) {
  Shape strides = input.strides();
  int64_t offset = input.offset();
  if (elementCount(sizes) > 0)
    for (size_t i = 0; i < strides.size(); ++i) {
      offset += starts[i] * strides[i];
      strides[i] = sizes[i] == 1 ? 0 : strides[i] * steps[i];
    }
  return input.view(sizes, std::move(strides), offset);
}

Constant foldConcat(const std::vector<Constant> &inputs, size_t axis, FoldBudget &budget) {
  Shape shape = inputs.front().shape(), whole = shape;
  whole[axis] = 0;
  for (size_t dim = 0; dim < shape.size(); ++dim) { // dimensions along which no input changes are made once
    if (dim == axis || shape[dim] == 0)
      continue;
    if (std::all_of(inputs.begin(), inputs.end(), [&](const Constant &input) { return input.strides()[dim] == 0; }))
      shape[dim] = 1;
  }
  shape[axis] = 0;
  for (const Constant &input : inputs)
    shape[axis] += input.shape()[axis];
  whole[axis] = shape[axis];
  std::vector<char> bytes = allocate(shape, inputs.front().dtype(), budget);
  const Shape strides = fullStrides(shape);
  int64_t at = 0;
  for (const Constant &input : inputs) {
    Shape part = shape;
    part[axis] = input.shape()[axis];
    const Constant view = input.view(part, input.strides(), input.offset());
    byWidth(input.dtype(), [&]<typename T>(T) {
      copyInto<T>(view, reinterpret_cast<T *>(bytes.data()), strides, at * strides[axis]);
    });
    at += part[axis];
  }
  return Constant::dense(inputs.front().dtype(), shape, std::move(bytes)).broadcast(whole);
}

Constant foldGather(const Constant &data, const std::vector<int64_t> &indices, const Shape &indexShape, size_t axis,
                    FoldBudget &budget) {
  Shape shape(data.shape().begin(), data.shape().begin() + long(axis));
  shape.insert(shape.end(), indexShape.begin(), indexShape.end());
  shape.insert(shape.end(), data.shape().begin() + long(axis) + 1, data.shape().end());
  std::vector<char> bytes = allocate(shape, data.dtype(), budget);
  // As a tensor [outer.., indices, inner..]: one window per index.
  Shape flat = data.shape();
  flat[axis] = int64_t(indices.size());
  const Shape strides = fullStrides(flat);
  Shape window = data.shape();
  window[axis] = 1;
  for (size_t i = 0; i < indices.size(); ++i) {
    const Constant slice = data.view(window, data.strides(),
                                     data.offset() + (elementCount(window) ? indices[i] * data.strides()[axis] : 0));
    byWidth(data.dtype(), [&]<typename T>(T) {
      copyInto<T>(slice, reinterpret_cast<T *>(bytes.data()), strides, int64_t(i) * strides[axis]);
    });
  }
  return Constant::dense(data.dtype(), shape, std::move(bytes));
}

Constant foldGatherElements(const Constant &data, const std::vector<int64_t> &indices, const Shape &indexShape,
                            size_t axis, FoldBudget &budget) {
  std::vector<char> bytes = allocate(indexShape, data.dtype(), budget);
  Shape strides = data.strides();
  const int64_t along = strides[axis];
  strides[axis] = 0;
  byWidth(data.dtype(), [&]<typename T>(T) {
    T *next = reinterpret_cast<T *>(bytes.data());
    size_t i = 0;
    forEachElement<1>(indexShape, {strides}, {data.offset()}, [&](const std::array<int64_t, 1> &at) {
      *next++ = data.data<T>()[at[0] + indices[i++] * along];
    });
  });
  return Constant::dense(data.dtype(), indexShape, std::move(bytes));
}

Constant foldPad(const Constant &input, const Shape &low, const Shape &high, const Constant &value,
                 FoldBudget &budget) {
  Shape shape = input.shape();
  for (size_t i = 0; i < shape.size(); ++i)
    shape[i] += low[i] + high[i];
  std::vector<char> bytes = allocate(shape, input.dtype(), budget);
  const Shape strides = fullStrides(shape);
  int64_t offset = 0;
  for (size_t i = 0; i < shape.size(); ++i)
    offset += low[i] * strides[i];
  byWidth(input.dtype(), [&]<typename T>(T) {
    T *into = reinterpret_cast<T *>(bytes.data());
    std::fill_n(into, elementCount(shape), value.data<T>()[value.offset()]);
    copyInto<T>(input, into, strides, offset);
  });
  return Constant::dense(input.dtype(), shape, std::move(bytes));
}

Constant foldCumSum(const Constant &input, size_t axis, bool exclusive, bool reverse, FoldBudget &budget) {
  budget.charge(input.elements());
  std::vector<char> bytes = input.bytes(input.shape());
  Shape lines = input.shape();
  const int64_t count = lines[axis];
  lines[axis] = count ? 1 : 0;
  const Shape strides = fullStrides(input.shape());
  const int64_t step = strides[axis];
  (void)byNumber(input.dtype(), [&]<typename T>(T) -> std::optional<Constant> {
    using W = Wrapping<T>;
    T *data = reinterpret_cast<T *>(bytes.data());
    forEachElement<1>(lines, {strides}, {0}, [&](const std::array<int64_t, 1> &at) {
      W sum = 0;
      for (int64_t i = 0; i < count; ++i) {
        T &element = data[at[0] + (reverse ? count - 1 - i : i) * step];
        const W next = W(sum + W(element));
        element = T(exclusive ? sum : next);
        sum = next;
      }
    });
    return std::nullopt;
  });
  return Constant::dense(input.dtype(), input.shape(), std::move(bytes));
}

template <typename T> static void reduceInto(ReduceFold kind, T &sum, T value) {
  using W = Wrapping<T>;
  switch (kind) {
  case ReduceFold::Sum:
  case ReduceFold::Mean:
    sum = T(W(sum) + W(value));
    break;
  case ReduceFold::Prod:
    sum = T(W(sum) * W(value));
    break;
  case ReduceFold::Max:
    sum = value > sum || value != value ? value : sum;
    break;
  case ReduceFold::Min:
    sum = value < sum || value != value ? value : sum;
    break;
  }
}

std::optional<Constant> foldReduce(ReduceFold kind, const Constant &input, const std::vector<int64_t> &axes,
                                   FoldBudget &budget) {
  Shape shape = input.shape();
  for (int64_t axis : axes)
    shape[size_t(axis)] = 1;
  budget.charge(input.elements());
  std::vector<char> bytes = allocate(shape, input.dtype(), budget);
  const int64_t count = elementCount(shape) ? input.elements() / elementCount(shape) : 0; // reduced into one
  if (count == 0 && kind != ReduceFold::Sum && kind != ReduceFold::Prod)
    return std::nullopt;
  return byNumber(input.dtype(), [&]<typename T>(T) -> std::optional<Constant> {
    T *into = reinterpret_cast<T *>(bytes.data());
    const T *data = input.data<T>();
    std::fill_n(into, elementCount(shape), kind == ReduceFold::Prod ? T(1) : T(0));
    std::vector<char> seen(size_t(elementCount(shape)), 0);
    forEachElement<2>(input.shape(), {input.strides(), denseStrides(shape)}, {input.offset(), 0},
                      [&](const std::array<int64_t, 2> &at) {
                        const bool first = !seen[size_t(at[1])] && (kind == ReduceFold::Max || kind == ReduceFold::Min);
                        if (first)
                          into[at[1]] = data[at[0]];
                        else
                          reduceInto(kind, into[at[1]], data[at[0]]);
                        seen[size_t(at[1])] = 1;
                      });
    if (kind == ReduceFold::Mean)
      for (int64_t i = 0; i < elementCount(shape); ++i)
        into[i] = T(into[i] / T(count));
    return Constant::dense(input.dtype(), shape, std::move(bytes));
  });
}

Constant foldRange(const Constant &start, const Constant &delta, int64_t count, FoldBudget &budget) {
  std::vector<char> bytes = allocate({count}, start.dtype(), budget);
  (void)byNumber(start.dtype(), [&]<typename T>(T) -> std::optional<Constant> {
    using W = Wrapping<T>;
    T *into = reinterpret_cast<T *>(bytes.data());
    const W first = W(start.data<T>()[start.offset()]), step = W(delta.data<T>()[delta.offset()]);
    for (int64_t i = 0; i < count; ++i)
      into[i] = T(W(first + W(i) * step));
    return std::nullopt;
  });
  return Constant::dense(start.dtype(), {count}, std::move(bytes));
}

Constant triangle(int64_t rows, int64_t cols, int64_t k, bool upper, FoldBudget &budget) {
  std::vector<char> bytes = allocate({rows, cols}, DType::Bool, budget);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t col = 0; col < cols; ++col)
      bytes[size_t(row * cols + col)] = upper ? col - row >= k : col - row <= k;
  return Constant::dense(DType::Bool, {rows, cols}, std::move(bytes));
}

} // namespace ds::import
