//===- Graph.cpp - whether a plan's reference program is its model's ------===//
#include "compiler/sources/Graph.h"

#include "core/Error.h"
#include "runtime/plan/plan.pb.h"

#include <algorithm>
#include <iomanip>
#include <sstream>
#include <string>

namespace ds::sources {
namespace {

namespace proto = plan::proto;

[[noreturn]] void refuse(const std::string &where, const std::string &has, const std::string &wanted) {
  throw Error(where + " has " + has + " in the plan's reference program, but " + wanted +
              " by the model and the configuration");
}

/// "op 12, train.layer_norm of ln_f".
std::string nameOf(int number, const proto::ReferenceOp &op) {
  return "op " + std::to_string(number) + ", " + op.op() + (op.name().empty() ? "" : " of " + op.name());
}

/// "epsilon 1e-05".
std::string textOf(const proto::Attribute &attribute) {
  std::ostringstream text;
  text << attribute.name() << ' ';
  const auto list = [&](const auto &values) {
    for (const auto &value : values)
      text << (&value == &values[0] ? "" : ", ") << value;
  };
  switch (attribute.value_case()) {
  case proto::Attribute::kInteger:
    text << attribute.integer();
    break;
  case proto::Attribute::kNumber:
    text << std::setprecision(17) << attribute.number();
    break;
  case proto::Attribute::kText:
    text << '"' << attribute.text() << '"';
    break;
  case proto::Attribute::kIntegers:
    list(attribute.integers().values());
    break;
  case proto::Attribute::kNumbers:
    list(attribute.numbers().values());
    break;
  case proto::Attribute::VALUE_NOT_SET:
    break;
  }
  return text.str() + (attribute.setting().empty() ? "" : " of " + attribute.setting());
}

/// The variables that an op names.
std::string variablesOf(const proto::Plan &plan, const proto::ReferenceOp &op) {
  std::string names;
  for (const uint32_t variable : op.variables())
    names += (names.empty() ? "" : ", ") + plan.variables(int(variable)).name();
  return names.empty() ? "no variable" : names;
}

std::string valuesOf(const proto::Plan &plan, const google::protobuf::RepeatedField<uint32_t> &values) {
  std::string names;
  for (const uint32_t value : values) {
    const std::string &name = plan.reference().values(int(value)).name();
    names += (names.empty() ? "" : ", ") + std::to_string(value) + (name.empty() ? "" : " (" + name + ")");
  }
  return names.empty() ? "none" : names;
}

void compareAttributes(const std::string &where, const proto::ReferenceOp &has, const proto::ReferenceOp &wanted) {
  for (int i = 0; i < std::max(has.attributes_size(), wanted.attributes_size()); ++i) {
    const std::string one = i < has.attributes_size() ? textOf(has.attributes(i)) : "nothing more";
    const std::string other = i < wanted.attributes_size() ? textOf(wanted.attributes(i)) : "nothing more";
    if (one != other)
      refuse(where, one, other);
  }
}

void compare(int number, const proto::Plan &plan, const proto::Plan &program) {
  const proto::ReferenceOp &has = plan.reference().ops(number), &wanted = program.reference().ops(number);
  const std::string where = nameOf(number, wanted);
  const auto require = [&](const std::string &one, const std::string &other) {
    if (one != other)
      refuse(where, one, other);
  };
  require("the name " + nameOf(number, has), "the name " + where);
  require("its place in @" + has.function(), "its place in @" + wanted.function());
  compareAttributes(where, has, wanted);
  require("the operands " + valuesOf(plan, has.operands()), "the operands " + valuesOf(program, wanted.operands()));
  require("the results " + valuesOf(plan, has.results()), "the results " + valuesOf(program, wanted.results()));
  require(variablesOf(plan, has), variablesOf(program, wanted));
}

} // namespace

Claim requireGraph(const proto::Plan &plan, const proto::Plan &program) {
  const proto::Reference &has = plan.reference(), &wanted = program.reference();
  for (int i = 0; i < std::min(has.ops_size(), wanted.ops_size()); ++i)
    compare(i, plan, program);
  if (has.ops_size() != wanted.ops_size())
    refuse("its end", std::to_string(has.ops_size()) + " ops", std::to_string(wanted.ops_size()));
  for (int i = 0; i < std::min(has.values_size(), wanted.values_size()); ++i)
    if (has.values(i).SerializeAsString() != wanted.values(i).SerializeAsString())
      refuse("value " + std::to_string(i), has.values(i).ShortDebugString(), wanted.values(i).ShortDebugString());
  if (has.values_size() != wanted.values_size())
    refuse("its end", std::to_string(has.values_size()) + " values", std::to_string(wanted.values_size()));
  return {"graph",
          "the " + std::to_string(has.ops_size()) +
              " ops of the reference program are those that this ds-opt makes of the model and the "
              "configuration, forward, backward and update",
          "the model and the configuration"};
}

} // namespace ds::sources
