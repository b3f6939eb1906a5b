//===- OverflowRules.cpp - float16 steps that overflow change nothing -----===//
//
// An update does nothing where its operand `clip` is 0. So that must be
//   select(flag, ..., 0) with flag = less_equal(norm, a finite constant)
// where the norm is of the squares of every gradient that an update reads: a NaN or an infinity in one of them, of
// whatever rank, makes the flag false. The count of updates that the learning rate follows from grows by cast(flag).
//
//===----------------------------------------------------------------------===//
#include "compiler/sources/OverflowRules.h"

#include "compiler/sources/ReferenceOps.h"
#include "core/Error.h"
#include "kernels/KernelTable.h"
#include "runtime/plan/format/Lengths.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace ds::sources {

namespace {

namespace proto = plan::proto;

/// The row of the kernel that runs an optimizer's update; null for other ops.
const kernels::KernelRow *updateRow(const proto::ReferenceOp &op) {
  constexpr std::string_view prefix = "train.";
  const std::string_view name = op.op();
  const kernels::KernelRow *row = name.starts_with(prefix) ? kernels::findKernel(name.substr(prefix.size())) : nullptr;
  return row && row->isOptimizer() ? row : nullptr;
}

/// For sentences.
std::string titleOf(const proto::ReferenceOp &op) { return op.op() + (op.name().empty() ? "" : " " + op.name()); }

class Guards {
public:
  explicit Guards(const proto::Plan &plan) : plan_(plan) {
    for (const proto::ReferenceOp &op : plan.reference().ops()) {
      for (const uint32_t result : op.results())
        makers_[result] = &op;
      if (op.function() == "update" && op.op() == "train.store")
        stores_.try_emplace(op.variables(0), &op);
    }
    for (const proto::ReferenceOp &op : plan.reference().ops())
      if (op.function() == "update" && updateRow(op))
        for (const uint32_t variable : op.variables())
          addGradient(variable);
  }

  void require(const proto::ReferenceOp &op) {
    if (op.function() != "update")
      return;
    if (updateRow(op))
      requireUpdate(op);
    if (op.op() == "train.learning_rate")
      requireCount(op);
    if (op.op() == "train.increment")
      throw Error(titleOf(op) + " counts a step of float16 that may be left out, as its gradients overflow");
  }

private:
  /// Takes a variable of an update for a gradient that it reads: this step's, or the one that the step before has
  /// stored there.
  void addGradient(uint32_t variable) {
    if (plan_.variables(int(variable)).kind() == proto::Variable::GRADIENT)
      gradients_.insert(variable);
    else if (const proto::ReferenceOp *store = storeIn(variable))
      if (const proto::ReferenceOp *read = maker(*store, 0, "train.read");
          read && plan_.variables(int(read->variables(0))).kind() == proto::Variable::GRADIENT)
        gradients_.insert(read->variables(0));
  }

  /// What @update stores in a variable for the next step, or null.
  const proto::ReferenceOp *storeIn(uint32_t variable) const {
    const auto found = stores_.find(variable);
    return found == stores_.end() ? nullptr : found->second;
  }

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
    const auto clip = int(updateRow(update)->clip());
    const proto::ReferenceOp *read = maker(update, clip, "train.read");
    if (!read)
      return maker(update, clip, "train.select");
    const proto::ReferenceOp *store = storeIn(read->variables(0));
    return store ? maker(*store, 0, "train.select") : nullptr;
  }

  void requireUpdate(const proto::ReferenceOp &update) {
    const proto::ReferenceOp *select = factorOf(update);
    if (!select || !isConstant(*select, 2, [](double value) { return value == 0; }) || !isFlag(*select))
      throw Error(titleOf(update) + " is made in a step of float16 whatever its gradients are; it must be left out "
                                    "where one of any rank is infinite or NaN");
  }

  /// Whether operand 0 says that all gradients are finite. All updates of a step share one flag.
  bool isFlag(const proto::ReferenceOp &op) {
    if (op.operands_size() == 0)
      return false;
    const auto [known, isNew] = flags_.try_emplace(op.operands(0), false);
    if (isNew)
      known->second = findFlag(op);
    return known->second;
  }

  bool findFlag(const proto::ReferenceOp &op) const {
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

  void requireCount(const proto::ReferenceOp &rate) {
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
    throw Error(titleOf(rate) +
                " follows a count of steps that does not leave out those of float16 whose gradients overflow");
  }

  const proto::Plan &plan_;
  std::map<uint32_t, const proto::ReferenceOp *> makers_; // by value
  std::map<uint32_t, const proto::ReferenceOp *> stores_; // by variable: the first of @update
  std::set<uint32_t> gradients_;                          // that updates read
  std::map<uint32_t, bool> flags_;                        // by value: isFlag's answers
};

void requireGuardsOfOne(const proto::Plan &plan) {
  const auto isFloat16 = [](const proto::ReferenceValue &value) { return value.dtype() == proto::DTYPE_F16; };
  if (std::ranges::none_of(plan.reference().values(), isFloat16))
    return;
  Guards guards(plan);
  for (const proto::ReferenceOp &op : plan.reference().ops())
    guards.require(op);
}

} // namespace

void requireOverflowGuards(const proto::Plan &plan) {
  requireGuardsOfOne(plan);
  for (const uint64_t size : plan::sizesOf(plan))
    requireGuardsOfOne(plan::planOfSize(plan, size));
}

} // namespace ds::sources
