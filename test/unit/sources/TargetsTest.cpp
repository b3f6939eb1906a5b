//===- TargetsTest.cpp - reference programs that weigh labels wrongly -----===//
#include "compiler/sources/Targets.h"

#include "core/Error.h"

#include <gtest/gtest.h>

#include <functional>
#include <initializer_list>
#include <string>

namespace ds::sources {
namespace {

namespace proto = plan::proto;

/// A reference program as it is written for one parameter.
class Program {
public:
  Program() {
    for (const char *name : {"loss", "targets", "grad_norm", "w", "w::gradient"})
      plan.add_variables()->set_name(name);
    for (const char *function : {"microbatch", "evaluate"})
      addSums(function);
    const uint32_t gradient = add("update", "read", {}, "w::gradient");
    const uint32_t targets = add("update", "read", {}, "targets");
    norm = add("update", "global_norm", {add("update", "block_sum_squares", {gradient})});
    const uint32_t mean = add("update", "div", {norm, targets});
    clip = add("update", "clip_factor", {mean});
    const uint32_t factor = add("update", "div", {clip, targets});
    const uint32_t rate = add("update", "learning_rate", {});
    update = plan.reference().ops_size();
    add("update", "adamw", {rate, rate, factor}, "w");
    add("update", "store", {mean}, "grad_norm");
    const uint32_t sum = add("update", "read", {}, "loss"), count = add("update", "cast", {targets});
    add("update", "store", {add("update", "div", {sum, count})}, "loss");
  }

  /// The first op of that name, in that function.
  proto::ReferenceOp &op(const std::string &function, const std::string &name) {
    for (proto::ReferenceOp &one : *plan.mutable_reference()->mutable_ops())
      if (one.function() == function && one.op() == "train." + name)
        return one;
    throw Error("no " + name);
  }

  proto::Plan plan;
  uint32_t norm = 0, clip = 0; ///< values
  int update = 0;              ///< the optimizer's op

private:
  void addSums(const char *function) {
    const uint32_t labels = add(function, "input", {});
    const uint32_t loss = add(function, "cross_entropy", {labels, labels});
    attribute("reduction").set_text("sum");
    attribute("ignore_index").set_integer(-100);
    const uint32_t ignored = add(function, "constant", {});
    attribute("value").set_number(-100);
    const uint32_t counts = add(function, "not", {add(function, "equal", {labels, ignored})});
    const uint32_t sum = add(function, "reduce_sum", {add(function, "cast", {counts})});
    add(function, "accumulate", {add(function, "cast", {sum})}, "targets");
    add(function, "accumulate", {loss}, "loss");
  }

  uint32_t add(const char *function, const std::string &name, std::initializer_list<uint32_t> operands,
               const std::string &variable = "") {
    proto::ReferenceOp &made = *plan.mutable_reference()->add_ops();
    made.set_op("train." + name);
    made.set_function(function);
    for (const uint32_t operand : operands)
      made.add_operands(operand);
    for (int v = 0; v < plan.variables_size(); ++v)
      if (plan.variables(v).name() == variable)
        made.add_variables(uint32_t(v));
    const auto value = uint32_t(plan.reference().values_size());
    plan.mutable_reference()->add_values()->set_name(name + std::to_string(value));
    made.add_results(value);
    return value;
  }

  proto::Attribute &attribute(const char *name) {
    proto::ReferenceOp &last = *plan.mutable_reference()->mutable_ops()->rbegin();
    last.add_attributes()->set_name(name);
    return *last.mutable_attributes()->rbegin();
  }
};

/// What is said of a program that `edit` has changed.
std::string refused(const std::function<void(Program &)> &edit) {
  Program program;
  edit(program);
  try {
    requireTargets(program.plan);
  } catch (const Error &error) {
    return error.what();
  }
  return "nothing";
}

TEST(Targets, OfARightProgramNothingIsRefused) {
  EXPECT_EQ(refused([](Program &) {}), "nothing");
  EXPECT_EQ(refused([](Program &p) { // without clipping
              proto::ReferenceOp &one = p.op("update", "clip_factor");
              one.set_op("train.constant");
              one.clear_operands();
              one.add_attributes()->set_name("value");
              one.mutable_attributes(0)->set_number(1);
            }),
            "nothing");
}

TEST(Targets, LossesAndCountsAreOfTheSameLabels) {
  for (const char *function : {"microbatch", "evaluate"}) {
    const std::string other = std::string("the targets of ") + function + " are not the labels of its loss";
    EXPECT_NE(refused([&](Program &p) {
                p.op(function, "cross_entropy").mutable_attributes(0)->set_text("mean");
              }).find(std::string("the loss of ") + function + " is no sum over labels"),
              std::string::npos);
    EXPECT_NE(
        refused([&](Program &p) { p.op(function, "constant").mutable_attributes(0)->set_number(-1); }).find(other),
        std::string::npos);
    EXPECT_NE(refused([&](Program &p) { p.op(function, "equal").set_operands(0, 1); }).find(other), std::string::npos);
    EXPECT_NE(refused([&](Program &p) {
                p.plan.mutable_reference()->mutable_values(int(p.op(function, "reduce_sum").results(0)))->add_shape(2);
              }).find(other),
              std::string::npos);
    EXPECT_NE(refused([&](Program &p) { p.op(function, "not").set_op("train.cast"); }).find("not by train.not"),
              std::string::npos);
    EXPECT_NE(refused([&](Program &p) { p.op(function, "accumulate").set_function("update"); }).find("adds nothing to"),
              std::string::npos);
  }
}

} // namespace
} // namespace ds::sources
