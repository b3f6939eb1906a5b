//===- Targets.cpp - whether a plan weighs its loss by targets ------------===//
#include "compiler/sources/Targets.h"

#include "compiler/sources/ReferenceOps.h"
#include "core/Error.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

namespace ds::sources {
namespace {

namespace proto = plan::proto;

class Targets {
public:
  explicit Targets(const proto::Plan &plan) : plan_(plan) {}

  /// A function adds a sum of losses to the metric `loss`, and to `targets` how many labels it is of.
  void requireSums(std::string_view function) const {
    const proto::ReferenceOp &loss = made(added(function, "loss"), "train.cross_entropy");
    if (textOf(loss, "reduction") != "sum" || loss.operands_size() < 2)
      refuse("the loss of " + std::string(function) + " is no sum over labels");
    const proto::ReferenceOp &sum = made(cast(added(function, "targets")), "train.reduce_sum");
    const proto::ReferenceOp &counts = made(cast(sum.operands(0)), "train.not");
    const proto::ReferenceOp &ignored = made(counts.operands(0), "train.equal");
    const proto::ReferenceOp &label = made(ignored.operands(1), "train.constant");
    if (plan_.reference().values(int(sum.results(0))).shape_size() != 0 || ignored.operands(0) != loss.operands(1) ||
        numberOf(label, "value") != numberOf(loss, "ignore_index"))
      refuse("the targets of " + std::string(function) + " are not the labels of its loss that are not ignored");
  }

private:
  [[noreturn]] static void refuse(const std::string &why) {
    throw Error("the plan does not weigh its loss by targets, as deepstatic.loss_normalization \"tokens\" asks: " +
                why);
  }

  const proto::ReferenceOp &made(uint32_t value, std::string_view by) const {
    const proto::ReferenceOp *maker = makerOf(plan_, value);
    if (maker == nullptr || maker->op() != by)
      refuse(plan_.reference().values(int(value)).name() + " is made by " +
             (maker == nullptr ? "an input" : maker->op()) + ", not by " + std::string(by));
    return *maker;
  }

  uint32_t cast(uint32_t value) const { return made(value, "train.cast").operands(0); }

  bool isOf(const proto::ReferenceOp &op, std::string_view variable) const {
    return op.variables_size() == 1 && plan_.variables(int(op.variables(0))).name() == variable;
  }

  /// What a function adds to a metric; one of one micro-batch may store it.
  uint32_t added(std::string_view function, std::string_view metric) const {
    for (const char *kind : {"train.accumulate", "train.store"})
      for (const proto::ReferenceOp *op : opsOf(plan_, kind))
        if (op->function() == function && isOf(*op, metric))
          return op->operands(0);
    refuse(std::string(function) + " adds nothing to " + std::string(metric));
  }

  const proto::Plan &plan_;
};

} // namespace

std::string requireTargets(const proto::Plan &plan) {
  const Targets targets(plan);
  targets.requireSums("microbatch");
  targets.requireSums("evaluate");
  return "gradients and the loss are sums over labels that are not ignored, divided once by how many the whole batch "
         "has";
}

} // namespace ds::sources
