//===- Call.h - reading and checking one Invocation -----------------------===//
//
// Plans come from files and may be corrupted, so a factory trusts nothing: it asks a Call for operands and attributes,
// and every answer is checked. All failures are ds::Error and name the kernel.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/Error.h"
#include "kernels/KernelRegistry.h"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ds::kernels {

/// Most dimensions of an operand; lets kernels keep indices on the stack.
inline constexpr size_t maxRank = 8;

/// A shape seen along one axis: [outer, length, inner].
struct AxisView {
  int64_t outer, length, inner;
};

class Call {
public:
  /// Checks what holds for all kernels: known dtypes, rank at most maxRank, sizes that fit 62 bits even with the zero
  /// dimensions left out (so that any partial product of dimensions is safe).
  explicit Call(const Invocation &invocation);

  [[noreturn]] void fail(const std::string &why) const;
  void require(bool holds, const std::string &why) const {
    if (!holds)
      fail(why);
  }

  size_t operandCount() const { return invocation_.operands.size(); }
  void expectOperands(size_t count) const;
  const Shape &shape(size_t operand) const { return invocation_.operands.at(operand).shape; }
  DType dtype(size_t operand) const { return invocation_.operands.at(operand).dtype; }
  int64_t elements(size_t operand) const { return elementCount(shape(operand)); }
  int64_t bytes(size_t operand) const { return elements(operand) * byteSize(dtype(operand)); }

  void expectShape(size_t operand, const Shape &expected) const;
  void expectDType(size_t operand, DType expected) const;
  /// Shape [] and the given type.
  void expectScalar(size_t operand, DType expected) const;
  /// float32 or float64.
  void expectFloat(size_t operand) const;
  /// int32 or int64.
  void expectIndex(size_t operand) const;
  void expectLike(size_t operand, size_t other) const;

  bool has(std::string_view name) const { return invocation_.attributes.contains(name); }
  int64_t integer(std::string_view name) const;
  int64_t integerIn(std::string_view name, int64_t low, int64_t high) const;
  bool flag(std::string_view name) const { return integerIn(name, 0, 1) != 0; }
  /// A finite number; integers are accepted.
  double number(std::string_view name) const;
  double numberIn(std::string_view name, double low, double high) const;
  const std::string &text(std::string_view name) const;
  std::vector<int64_t> integers(std::string_view name) const;
  std::vector<double> numbers(std::string_view name) const;
  /// Attribute `axis`, an axis of `shape`; negative ones count from the end.
  size_t axis(const Shape &shape) const;

private:
  const AttributeValue &attribute(std::string_view name) const;

  const Invocation &invocation_;
};

/// `axis` of a tensor of rank `rank` as an index, or a failure of `call`.
size_t normalizedAxis(const Call &call, int64_t axis, size_t rank);

/// The view of `shape` along `axis` (below its rank).
AxisView viewAlong(const Shape &shape, size_t axis);

/// Row-major strides in elements.
std::array<int64_t, maxRank> rowMajorStrides(const Shape &shape);

/// The multi-index of row-major position `linear`; every dimension must be positive.
inline std::array<int64_t, maxRank> unravel(int64_t linear, const Shape &shape) {
  std::array<int64_t, maxRank> index{};
  for (size_t d = shape.size(); d-- > 0;) {
    index[d] = linear % shape[d];
    linear /= shape[d];
  }
  return index;
}

/// ceil(count / grain); counts are far from overflow.
constexpr int64_t piecesOf(int64_t count, int64_t grain) { return (count + grain - 1) / grain; }

/// Makes KernelT<float> or KernelT<double>, by a dtype that is known to be one of the two.
template <template <typename> class KernelT, typename... Args>
std::unique_ptr<Kernel> makeByFloat(DType dtype, Args &&...args) {
  if (dtype == DType::F32)
    return std::make_unique<KernelT<float>>(std::forward<Args>(args)...);
  return std::make_unique<KernelT<double>>(std::forward<Args>(args)...);
}

/// Index i of an operand that holds int32 or int64.
inline int64_t indexAt(const void *data, DType dtype, int64_t i) {
  return dtype == DType::I32 ? static_cast<const int32_t *>(data)[i] : static_cast<const int64_t *>(data)[i];
}

/// Optimizer steps count from 0.
inline Status checkStep(const char *kernel, int64_t step) noexcept {
  if (step >= 0)
    return Status::success();
  return Status::failure("kernel '%s': step is %lld; it counts from 0", kernel, static_cast<long long>(step));
}

} // namespace ds::kernels
