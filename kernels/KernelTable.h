//===- KernelTable.h - what the rows of Kernels.inc say of a call ----------===//
//
// Compiler, checker, report and runtime ask here: which operand of a call is which of its kernel's row, how many bytes
// of workspace a plan reserves for it, and how many operations it is.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "kernels/Device.h"
#include "kernels/KernelRegistry.h"
#include "kernels/KernelRow.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ds::kernels {

/// The row of a kernel, or nullptr.
const KernelRow *findKernel(std::string_view name);
/// All rows, in the order of Kernels.inc.
std::span<const KernelRow> allKernels();

/// A size in the shape of an operand, as its row names it.
struct SizeName {
  std::string_view name; ///< without the mark
  bool isRest = false;   ///< "...", "name...": any number of sizes
  bool isWhole = false;  ///< "name!"

  /// A size that is no name, such as ceil(n / block), is the kernel's to check.
  bool isName() const;
};

/// The sizes in "[rows, cols]".
std::vector<SizeName> sizeNames(std::string_view shape);

/// Which operand of a call is which of its row, and whether a workspace follows them.
class CallLayout {
public:
  /// Throws Error where the kernel is unknown, an attribute is missing, unknown or of another kind, or the number of
  /// operands is not that of the row.
  explicit CallLayout(const Invocation &invocation);

  const KernelRow &row() const { return *row_; }
  /// Operands without the workspace.
  size_t size() const { return rows_.size(); }
  /// What the row says of operand `operand`.
  const OperandRow &operator[](size_t operand) const { return row_->operands[rows_[operand]]; }
  /// The first operand of that name, if the call has it.
  std::optional<size_t> find(std::string_view name) const;
  bool hasWorkspace() const { return hasWorkspace_; }
  /// Whether the row has `operand` among those that `result` may lie over.
  bool isOver(size_t result, size_t operand) const { return ((*this)[result].over >> rows_[operand] & 1) != 0; }

private:
  const KernelRow *row_;
  std::vector<uint8_t> rows_; ///< by operand: its index in the row
  bool hasWorkspace_ = false;
};

/// Whether operand `result` of a call may be the same memory as operand `operand`, which it reads: the row says so, and
/// shapes and bytes of an element are the same. On every device, and in the reference, each element of the operand is
/// then read for the last time before the same element of the result is written. None of the call's other operands may
/// touch that memory. Of a call that is none of its row's: false.
bool mayOverwrite(const Invocation &invocation, size_t operand, size_t result);

/// The operands of a call, or of the op that it computes, by name.
class CallTypes {
public:
  /// `invocation` outlives it.
  explicit CallTypes(const Invocation &invocation);
  /// An op by what it reads and writes: of the operands that a row leaves open, the first are there. For rows that read
  /// and write no operand both.
  CallTypes(const KernelRow &row, std::span<const TensorType> reads, std::span<const TensorType> writes,
            bool isCausal = false);

  /// An operand that the call does not have is empty.
  const TensorType &operator[](std::string_view name) const;
  int64_t elements(std::string_view name) const { return elementCount((*this)[name].shape); }
  /// Dimension `d` of an operand, from the end if it is negative; 0 where there is none.
  int64_t dim(std::string_view name, int d) const;
  /// Whether some operand has no elements.
  bool isEmpty() const;
  /// Of attention: key j is hidden from query i where j > i.
  bool isCausal() const { return isCausal_; }
  CallTypes withoutCausal() const;
  /// Of a call, not of an op.
  const Invocation &invocation() const { return *invocation_; }

private:
  void add(std::string_view name, const TensorType &type) { operands_.emplace_back(name, &type); }

  std::vector<std::pair<std::string_view, const TensorType *>> operands_;
  const Invocation *invocation_ = nullptr;
  bool isCausal_ = false;
};

/// Checks a call as its kernel does before it runs: what the row says, and what it cannot say. Throws Error.
void requireCall(const Invocation &invocation, Device device);

/// What of a machine file decides workspaces.
struct WorkspaceLimits {
  int workers = 1;                  ///< compute workers of one rank
  int64_t bytesPerWorker = 4 << 20; ///< cap a worker, machine file `workspace_bytes_per_thread`
  Device device = Device::Cpu;      ///< a GPU counts as one worker
};

/// Bytes of workspace that a plan reserves for a call, behind its operands; `invocation` has none yet. 0: no operand.
int64_t workspaceBytes(const Invocation &invocation, const WorkspaceLimits &limits);

/// Floating-point operations of the products in a call, with what a gradient computes again; 0 for other kernels and
/// names that are none.
double flopsOf(std::string_view kernel, const CallTypes &call);

/// Whether it is a matrix product, with all that goes with it: what cuBLASLt does on a GPU.
bool isProduct(std::string_view kernel);

/// Whether its products are attention's or those of attention's gradient.
bool isAttention(std::string_view kernel);

/// Of a call's operations, those that a gradient computes again: attention's scores.
double repeatedFlopsOf(std::string_view kernel, const CallTypes &call);

/// Bytes of its operands that a call does not touch: a slice or a lookup of few rows reads what it writes, not all that
/// it could.
double untouchedBytes(std::string_view kernel, const CallTypes &call);

class Call;

/// What a row's column of checks names: throws Error.
using CheckOf = void(const Call &call, Device device);

class FactorWriter;

/// What a row's column of factors names (Factors.h).
using FactorsOf = void(FactorWriter &to);

/// What a row's columns of costs name. `call` has float32 where a CPU computes bfloat16 by it.
using WorkspaceOf = int64_t(const CallTypes &call, const WorkspaceLimits &limits);
using FlopsOf = double(const CallTypes &call);

} // namespace ds::kernels
