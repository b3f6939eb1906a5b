//===- OverflowRules.cpp - float16 steps that overflow change nothing -----===//
//
// An update does nothing where its operand `clip` is 0. So that must be
//   select(flag, ..., 0) with flag = less_equal(norm, a finite constant)
// where the norm is of the squares of every gradient that an update reads: a NaN or an infinity in one of them, of
// whatever rank, makes the flag false. The count of updates that the learning rate follows from grows by cast(flag).
//
//===----------------------------------------------------------------------===//
#include "compiler/check/OverflowRules.h"

#include "compiler/check/meaning/Delays.h"
#include "compiler/check/meaning/Mismatch.h"
#include "compiler/check/meaning/ReferenceOps.h"
#include "compiler/check/schedule/Effects.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace ds::check {

namespace {

class Guards {
public:
  explicit Guards(const proto::Plan &plan) : plan_(plan) {
    const Delays delays(plan);
    for (const proto::ReferenceOp &op : plan.reference().ops()) {
      for (const uint32_t result : op.results())
        makers_[result] = &op;
      if (op.function() != "update" || !isOptimizer(op))
        continue;
      for (const uint32_t variable : op.variables())
        if (plan.variables(int(variable)).kind() == proto::Variable::GRADIENT)
          gradients_.insert(variable);
        else if (const std::optional<uint32_t> gradient = delays.gradientIn(variable))
          gradients_.insert(*gradient);
    }
  }

  void require(const proto::ReferenceOp &op) {
    if (op.function() != "update")
      return;
    if (isOptimizer(op))
      requireUpdate(op);
    if (op.op() == "train.learning_rate")
      requireCount(op);
    if (op.op() == "train.increment")
      throw Mismatch{titleOf(op) + " counts a step of float16 that may be left out, as its gradients overflow"};
  }

private:
  /// The op named `name` that makes an operand of `op`, or null.
  const proto::ReferenceOp *maker(const proto::ReferenceOp &op, int operand, std::string_view name) const {
    if (operand >= op.operands_size())
      return nullptr;
    const auto found = makers_.find(op.operands(operand));
    return found != makers_.end() && found->second->op() == name ? found->second : nullptr;
  }

  bool isConstant(const proto::ReferenceOp &op, int operand, auto &&holds) const {
    const proto::ReferenceOp *constant = maker(op, operand, "train.constant");
    const proto::Attribute *value = constant ? attributeOf(*constant, "value") : nullptr;
    return value && holds(value->number());
  }

  /// The select that makes an update's factor, if it is not that of the step before: the one whose result this step
  /// stores for the next.
  const proto::ReferenceOp *factorOf(const proto::ReferenceOp &update) const {
    const proto::ReferenceOp *read = maker(update, clipOperandOf(update), "train.read");
    if (!read)
      return maker(update, clipOperandOf(update), "train.select");
    for (const proto::ReferenceOp &store : plan_.reference().ops())
      if (store.function() == "update" && store.op() == "train.store" && store.variables(0) == read->variables(0))
        return maker(store, 0, "train.select");
    return nullptr;
  }

  void requireUpdate(const proto::ReferenceOp &update) const {
    const proto::ReferenceOp *select = factorOf(update);
    if (!select || !isConstant(*select, 2, [](double value) { return value == 0; }) || !isFlag(*select))
      throw Mismatch{titleOf(update) + " is made in a step of float16 whatever its gradients are; it must be left out "
                                       "where one of any rank is infinite or NaN"};
  }

  /// Whether operand 0 says that all gradients are finite.
  bool isFlag(const proto::ReferenceOp &op) const {
    const proto::ReferenceOp *flag = maker(op, 0, "train.less_equal");
    const proto::ReferenceOp *norm = flag ? maker(*flag, 0, "train.global_norm") : nullptr;
    if (!norm || !isConstant(*flag, 1, [](double value) { return std::isfinite(value); }))
      return false;
    std::set<uint32_t> seen;
    for (int i = 0; i < norm->operands_size(); ++i)
      if (const proto::ReferenceOp *squares = maker(*norm, i, "train.block_sum_squares"))
        if (const proto::ReferenceOp *read = maker(*squares, 0, "train.read"))
          seen.insert(read->variables(0));
    return std::ranges::includes(seen, gradients_);
  }

  void requireCount(const proto::ReferenceOp &rate) const {
    const proto::ReferenceOp *read = maker(rate, 0, "train.read");
    for (const proto::ReferenceOp &store : plan_.reference().ops()) {
      if (!read || store.op() != "train.store" || store.variables(0) != read->variables(0))
        continue;
      const proto::ReferenceOp *sum = maker(store, 0, "train.add");
      const proto::ReferenceOp *before = sum ? maker(*sum, 0, "train.read") : nullptr;
      const proto::ReferenceOp *counted = sum ? maker(*sum, 1, "train.cast") : nullptr;
      if (before && counted && before->variables(0) == read->variables(0) && isFlag(*counted))
        return;
    }
    throw Mismatch{titleOf(rate) +
                   " follows a count of steps that does not leave out those of float16 whose gradients overflow"};
  }

  const proto::Plan &plan_;
  std::map<uint32_t, const proto::ReferenceOp *> makers_; // by value
  std::set<uint32_t> gradients_;                          // that updates read
};

} // namespace

void requireOverflowGuards(const proto::Plan &plan) {
  const auto isFloat16 = [](const proto::ReferenceValue &value) { return value.dtype() == proto::DTYPE_F16; };
  if (std::ranges::none_of(plan.reference().values(), isFloat16))
    return;
  Guards guards(plan);
  for (const proto::ReferenceOp &op : plan.reference().ops())
    guards.require(op);
}

} // namespace ds::check
