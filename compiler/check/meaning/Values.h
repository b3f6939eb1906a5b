//===- Values.h - the values of the reference program, by what they are ----===//
#pragma once

#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ds::check {

namespace proto = plan::proto;

/// Numbers values so that two have one number exactly if they are the same op with the same attributes of the same
/// values: a forward pass has one set of values, whether it stands in a step or in an evaluation. Reshapes keep the
/// value, as they keep the bytes. Cf. value numbering (Alpern, Wegman, Zadeck, 1988).
class Values {
public:
  static constexpr uint32_t unknown = 0; ///< nothing is known: equals everything
  static constexpr uint32_t other = 1;   ///< parts of several values, or not from a value's first byte: equals nothing

  explicit Values(const proto::Plan &plan);

  uint32_t of(uint32_t referenceValue) const { return numbers_[referenceValue]; }
  uint32_t variable(uint32_t index);
  /// What a micro-batch stores in a variable; unknown where it stores nothing.
  uint32_t storedIn(uint32_t variable) const {
    const auto it = stored_.find(variable);
    return it == stored_.end() ? unknown : it->second;
  }
  uint32_t input(std::string_view name);
  uint32_t constant(double value);
  uint32_t padding(); ///< what of a bucket belongs to no variable
  uint32_t incremented(uint32_t value);
  /// An instruction of an elementwise program (kernels/ElementwiseProgram.h) other than a constant.
  uint32_t apply(int64_t opcode, int64_t dtype, std::span<const uint32_t> operands);

  /// Whether values are, each once, what `total` is the sum of (or it itself); if not `whole`, whether they are among
  /// that.
  bool addUp(std::span<const uint32_t> values, uint32_t total, bool whole) const;

  /// What people call it: "the result of h.0/attn", "lm_head.weight", "0.25".
  const std::string &name(uint32_t value) const { return names_[value]; }

private:
  uint32_t number(const std::string &key, const std::string &name);
  uint32_t numberResult(const proto::ReferenceOp &op, int result);
  uint32_t numberConstant(const proto::Variable &variable);
  std::string keyOf(const proto::ReferenceOp &op, int result) const;

  const proto::Plan &plan_;
  std::map<std::string, uint32_t> known_;                       // by what it is
  std::map<uint64_t, uint32_t> constants_;                      // by their bits
  std::map<uint32_t, uint32_t> stored_, variables_;             // by variable
  std::map<uint32_t, std::pair<uint32_t, uint32_t>> additions_; // by sum: its terms
  std::vector<std::string> names_;                              // by number
  std::vector<uint32_t> numbers_;                               // by reference value
};

/// `value` as an element of the type holds it.
double rounded(double value, int64_t dtype);

} // namespace ds::check
