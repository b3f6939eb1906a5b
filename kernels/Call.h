//===- Call.h - reading and checking one Invocation -----------------------===//
//
// Plans come from files and may be corrupted, so a factory trusts nothing: it makes a Call, which checks what the
// kernel's row in Kernels.inc says, and then what the row cannot say. All failures are ds::Error and name the kernel.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/Error.h"
#include "kernels/KernelTable.h"

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

/// The bytes that a plan reserves behind the operands of a call; none where it leaves them out.
struct CallWorkspace {
  size_t operand = 0; ///< if there are bytes
  int64_t bytes = 0;

  void *at(std::span<void *const> operands) const { return bytes > 0 ? operands[operand] : nullptr; }
};

class Call {
public:
  /// Checks what holds for all kernels: known dtypes, rank at most maxRank, sizes that fit 62 bits even with the zero
  /// dimensions left out (so that any partial product of dimensions is safe); and what the kernel's row says: which
  /// operands and attributes there are, their types and shapes. `invocation` outlives the call.
  explicit Call(const Invocation &invocation);

  [[noreturn]] void fail(const std::string &why) const;
  void require(bool holds, const std::string &why) const {
    if (!holds)
      fail(why);
  }

  const KernelRow &row() const { return layout_.row(); }
  /// What the row says of an operand.
  const OperandRow &operandRow(size_t operand) const { return layout_[operand]; }
  /// Operands without the workspace.
  size_t operandCount() const { return layout_.size(); }
  /// The first operand that the row gives this name; a name that the call does not have is a mistake of ours.
  size_t operator[](std::string_view name) const;
  bool hasOperand(std::string_view name) const { return layout_.find(name).has_value(); }
  const Shape &shape(size_t operand) const { return invocation_.operands.at(operand).shape; }
  const Shape &shape(std::string_view name) const { return shape((*this)[name]); }
  DType dtype(size_t operand) const { return invocation_.operands.at(operand).dtype; }
  DType dtype(std::string_view name) const { return dtype((*this)[name]); }
  int64_t elements(size_t operand) const { return elementCount(shape(operand)); }
  int64_t elements(std::string_view name) const { return elements((*this)[name]); }

  /// The type of the operands that the row gives the call's own type; float32 where there are none.
  DType dtype() const { return own_; }

  void expectShape(size_t operand, const Shape &expected) const;
  void expectShape(std::string_view name, const Shape &expected) const { expectShape((*this)[name], expected); }

  CallWorkspace workspace() const { return {layout_.size(), layout_.hasWorkspace() ? elements(layout_.size()) : 0}; }
  /// For kernels that cannot do with less than what a plan reserves.
  void requireWorkspace(Device device) const;

  const std::optional<LibraryAlgorithm> &algorithm() const { return invocation_.algorithm; }

  bool has(std::string_view name) const { return invocation_.attributes.contains(name); }
  int64_t integer(std::string_view name) const;
  int64_t integerIn(std::string_view name, int64_t low, int64_t high) const;
  /// Left out: false.
  bool flag(std::string_view name) const { return has(name) && integer(name) != 0; }
  /// A finite number; integers are accepted.
  double number(std::string_view name) const;
  double numberIn(std::string_view name, double low, double high) const;
  /// Left out: "".
  const std::string &text(std::string_view name) const;
  std::vector<int64_t> integers(std::string_view name) const;
  std::vector<double> numbers(std::string_view name) const;
  /// Attribute `axis`, an axis of `shape`; negative ones count from the end.
  size_t axis(const Shape &shape) const;

private:
  const AttributeValue &attribute(std::string_view name) const;
  void checkSizes() const;
  void checkTypes();
  std::string titleOf(size_t operand) const;

  const Invocation &invocation_;
  const CallLayout layout_;
  DType own_ = DType::F32;
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
