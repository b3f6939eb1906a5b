//===- Meaning.h - whether commands do what their reference ops say --------===//
#pragma once

#include "compiler/check/Values.h"
#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace ds::check {

/// Why a command does not do what it is said to.
struct Mismatch {
  std::string sentence;
};

/// Follows values through commands. A command names reference ops; that it is they is verified, not trusted: the
/// kernel, its attributes, and that each operand holds the value that the op has there.
class Meaning {
public:
  explicit Meaning(const proto::Plan &plan);

  Values &values() { return values_; }

  /// What an operand holds when a kernel has run, and what was added to what it held before, if it was (Values).
  struct Result {
    uint32_t value = Values::unknown, added = Values::unknown;
  };
  /// Whether a kernel does nothing but copy its first operand, or add its first two.
  static bool isCopy(const proto::KernelCommand &kernel);
  static bool isAddition(const proto::KernelCommand &kernel);
  /// By operand; `held` says what each of them held, unknown for those that are only written. Throws Mismatch.
  std::vector<Result> resultsOf(const proto::Command &command, std::span<const uint32_t> held);

  /// An update of a parameter in the reference program.
  struct Update {
    uint32_t added = Values::unknown; ///< what each micro-batch adds to the gradient
    std::vector<uint32_t> state;      ///< variables, in the order of the kernel's operands from KernelRow::state on
  };
  /// What each micro-batch adds to the gradient of a parameter; unknown where nothing updates it.
  uint32_t gradientOf(uint32_t parameter) const;
  /// Throws Mismatch unless an optimizer's update of a parameter has the settings and scalars of its reference op.
  Update requireUpdate(const proto::Command &command, uint32_t parameter, std::span<const uint32_t> held) const;

private:
  /// Whether an elementwise program is this one instruction.
  static bool isOnly(const proto::KernelCommand &kernel, int64_t opcode, int operands);
  /// What one micro-batch adds to (or stores in) a variable; unknown where the reference program does not say.
  uint32_t contributionTo(uint32_t variable) const;
  void requireOp(const proto::Command &command, const proto::ReferenceOp &op, std::span<const uint32_t> held) const;
  void requireAttributes(const proto::KernelCommand &kernel, const proto::ReferenceOp &op) const;
  std::vector<Result> elementwise(const proto::Command &command, std::span<const uint32_t> held);
  const proto::ReferenceOp &opOf(const proto::Command &command, int reference) const {
    return plan_.reference().ops(int(command.reference(reference)));
  }

  const proto::Plan &plan_;
  Values values_;
  std::map<uint32_t, std::vector<const proto::ReferenceOp *>> updates_; ///< by variable, those that name it
  std::map<uint32_t, uint32_t> contributions_;                          ///< by variable, see contributionTo()
};

/// Whether what an operand holds may be what is expected of it.
inline bool mayBe(uint32_t held, uint32_t expected) {
  return held == expected || held == Values::unknown || expected == Values::unknown;
}

} // namespace ds::check
