//===- Meaning.h - whether commands do what their reference ops say --------===//
#pragma once

#include "compiler/check/meaning/Delays.h"
#include "compiler/check/meaning/Mismatch.h"
#include "compiler/check/meaning/Values.h"
#include "kernels/Expansion.h"
#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace ds::check {

/// Follows values through commands. A command names reference ops; that it is they is verified, not trusted: the
/// kernel, its attributes, types and shapes, and that each operand holds the value that the op has there. A fused
/// kernel is the ops that its row says (FusedMeaning.cpp). A kernel that names none is refused, unless its numbers are
/// followed by a rule of their own: elementwise programs (ElementwiseMeaning.cpp), updates (requireUpdate), sums of
/// squares of slices (NormRules.h), and what lays out parts (MovedMeaning.cpp). What ranks hold parts of is as if they
/// held the whole (SplitMeaning.cpp).
class Meaning {
public:
  /// If not `closed`, kernels that no rule speaks of pass (Check.h).
  explicit Meaning(const proto::Plan &plan, bool closed = true);

  Values &values() { return values_; }
  bool isClosed() const { return closed_; }
  const Delays &delays() const { return delays_; }
  /// A command has written bytes of which nothing is known.
  void addUnknown(const proto::Command &command, uint64_t bytes) {
    unknownBytes_ += unknown_.insert(&command).second ? bytes : 0;
  }
  uint64_t unknownCommands() const { return unknown_.size(); }
  uint64_t unknownBytes() const { return unknownBytes_; }

  /// What an operand holds when a kernel has run, and what was added to what it held before, if it was (Values).
  struct Result {
    uint32_t value = Values::unknown, added = Values::unknown;
  };
  /// Whether a kernel does nothing but copy its first operand, convert it, or add its first two.
  static bool isCopy(const proto::KernelCommand &kernel);
  static bool isConversion(const proto::KernelCommand &kernel);
  static bool isAddition(const proto::KernelCommand &kernel);
  /// Whether a kernel makes terms of its result of terms of its operands: it adds, subtracts or moves elements alone.
  static bool isLinear(const proto::KernelCommand &kernel);
  /// Whether a kernel sums squares of what a rank has of a gradient, which NormRules.h follows byte by byte.
  static bool isPartOfNorm(const proto::Command &command);
  /// By operand; `held` says what each of them held, unknown for those that are only written. Throws Mismatch.
  std::vector<Result> resultsOf(const proto::Command &command, std::span<const uint32_t> held);

  /// An update of a parameter in the reference program.
  struct Update {
    uint32_t added = Values::unknown; ///< what each micro-batch adds to the gradient
    std::optional<uint32_t> pending;  ///< the variable with the gradient of the step before, if it is of that
    std::vector<uint32_t> state;      ///< variables, in the order of the kernel's operands from KernelRow::state on
    std::optional<uint32_t> oneFor;   ///< the factor of its gradient in whose place it takes the constant 1
  };
  /// What each micro-batch adds to a gradient, or to that of a parameter; unknown where nothing updates by it.
  uint32_t gradientOf(uint32_t variable) const;
  /// Whether `value` is what is `added` to a gradient or, where the parameter may be used in several stages, a part.
  bool isPartOf(uint32_t value, uint32_t added) const;
  /// What one micro-batch adds to (or stores in) a variable; unknown where the reference program does not say.
  uint32_t contributionTo(uint32_t variable) const;
  /// Throws Mismatch unless an optimizer's update of a parameter has the settings and scalars of its reference op.
  /// `mayTakeOne`: or the constant 1 for the factor of its gradient.
  Update requireUpdate(const proto::Command &command, uint32_t parameter, std::span<const uint32_t> held,
                       bool mayTakeOne);
  /// Whether an update multiplies its gradient by a value.
  bool isFactor(uint32_t value) const;

private:
  void requireOp(const proto::KernelCommand &kernel, const proto::ReferenceOp &op,
                 std::span<const uint32_t> held) const;
  void requireHeld(const proto::ReferenceOp &op, std::span<const uint32_t> held, size_t first,
                   const std::string &title) const;
  Update updateOf(const proto::Command &command, uint32_t parameter, const proto::ReferenceOp &op,
                  std::span<const uint32_t> held, bool mayTakeOne);
  std::optional<uint32_t> splitAxis(const proto::KernelCommand &kernel, std::span<const uint32_t> held) const;
  std::vector<Result> resultsOfParts(const proto::Command &command, std::span<const uint32_t> held, uint32_t axis);
  std::vector<Result> resultsOfTerms(const proto::Command &command, std::span<const uint32_t> held,
                                     const Spread &spread);
  static bool isExchange(const proto::Command &command);
  std::optional<uint32_t> moved(const proto::Command &command, std::span<const uint32_t> held);
  std::vector<Result> resultsOfWhole(const proto::Command &command, std::span<const uint32_t> held);
  std::vector<Result> fused(const proto::Command &command, const kernels::Expansion &expansion,
                            std::span<const uint32_t> held);
  std::vector<uint32_t> resultsOfStep(const proto::Command &command, const proto::KernelCommand &step,
                                      std::vector<uint32_t> operands, std::vector<uint32_t> &made);
  const proto::ReferenceOp &opNamed(const proto::Command &command, std::string_view kind) const;
  void requireNamed(const proto::Command &command, std::span<const uint32_t> made) const;
  std::vector<Result> elementwise(const proto::Command &command, std::span<const uint32_t> held);
  std::vector<Result> runProgram(const proto::Command &command, std::span<const uint32_t> held);
  Result accumulated(const proto::KernelCommand &kernel, const proto::ReferenceOp &op, std::span<const uint32_t> held);
  Result averaged(const proto::KernelCommand &kernel, const proto::ReferenceOp &op, uint32_t result);
  const proto::ReferenceOp &opOf(const proto::Command &command, int reference) const {
    return plan_.reference().ops(int(command.reference(reference)));
  }

  const proto::Plan &plan_;
  const bool closed_;
  const Delays delays_;
  Values values_;
  std::map<uint32_t, std::vector<const proto::ReferenceOp *>> updates_; ///< by variable, those that name it
  std::map<uint32_t, uint32_t> contributions_;                          ///< by variable, see contributionTo()
  /// By command and what its operands hold: in every micro-batch these are the same. Never iterated.
  std::unordered_map<std::string, std::vector<Result>> results_;
  std::set<const proto::Command *> unknown_; ///< counted, never iterated
  uint64_t unknownBytes_ = 0;
};

/// Whether what an operand holds may be what is expected of it.
inline bool mayBe(uint32_t held, uint32_t expected) {
  return held == expected || held == Values::unknown || expected == Values::unknown;
}

} // namespace ds::check
