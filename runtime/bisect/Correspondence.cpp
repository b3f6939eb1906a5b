//===- Correspondence.cpp - which ops of two plans are the same -----------===//
#include "runtime/bisect/Correspondence.h"

#include "core/DType.h"
#include "core/Error.h"
#include "core/Shape.h"
#include "runtime/plan/plan.pb.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace ds::runtime {
namespace {

using plan::proto::Plan;
using plan::proto::ReferenceOp;
using plan::proto::Variable;

[[noreturn]] void refuse(const std::string &why) {
  throw Error("plans A and B do not correspond: " + why +
              "; --bisect takes two plans of one model, batch and configuration that divide the work differently");
}

std::string titleOf(const ReferenceOp &op) { return op.op() + (op.name().empty() ? "" : " " + op.name()); }

/// "w float32[4, 16]" of everything with a type, by name.
template <typename Message> std::string typed(const Message &message) {
  return message.name() + " " + std::string(name(DType(message.dtype()))) +
         toString({message.shape().data(), size_t(message.shape_size())});
}

void requireEqual(const std::string &what, uint64_t a, uint64_t b) {
  if (a != b)
    refuse(what + " is " + std::to_string(a) + " in A and " + std::to_string(b) + " in B");
}

/// The first text that one list has and the other lacks.
void requireSame(const std::string &what, std::vector<std::string> a, std::vector<std::string> b) {
  std::ranges::sort(a);
  std::ranges::sort(b);
  std::vector<std::string> missing;
  std::ranges::set_difference(a, b, std::back_inserter(missing));
  if (!missing.empty())
    refuse(what + " " + missing[0] + " of A is not in B");
  std::ranges::set_difference(b, a, std::back_inserter(missing));
  if (!missing.empty())
    refuse(what + " " + missing[0] + " of B is not in A");
}

std::vector<std::string> parametersOf(const Plan &plan) {
  std::vector<std::string> parameters;
  for (const Variable &variable : plan.variables())
    if (variable.kind() == Variable::PARAMETER)
      parameters.push_back(typed(variable));
  return parameters;
}

std::vector<std::string> inputsOf(const Plan &plan) {
  std::vector<std::string> inputs;
  for (const plan::proto::Input &input : plan.inputs())
    inputs.push_back(typed(input));
  return inputs;
}

/// What an attribute is, without where its value came from.
std::string textOf(plan::proto::Attribute attribute) {
  attribute.clear_setting();
  return attribute.SerializeAsString();
}

void requireSameAttributes(const ReferenceOp &a, const ReferenceOp &b) {
  std::map<std::string, std::string> attributes[2];
  for (const auto &attribute : a.attributes())
    attributes[0][attribute.name()] = textOf(attribute);
  for (const auto &attribute : b.attributes())
    attributes[1][attribute.name()] = textOf(attribute);
  for (int side : {0, 1})
    for (const auto &[name, text] : attributes[side])
      if (const auto other = attributes[1 - side].find(name);
          other == attributes[1 - side].end() || other->second != text)
        refuse(titleOf(a) + " has another " + name + " in A's reference program than in B's");
}

/// Ops that a step runs, by what they pair up by.
std::map<std::tuple<std::string, std::string, std::string>, std::vector<int>> opsByName(const Plan &plan) {
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<int>> ops;
  for (int i = 0; i < plan.reference().ops_size(); ++i)
    if (const ReferenceOp &op = plan.reference().ops(i); op.function() != "evaluate")
      ops[{op.function(), op.op(), op.name()}].push_back(i);
  return ops;
}

} // namespace

Correspondence::Correspondence(const Plan &a, const Plan &b) : a_(a), b_(b) {
  requireSame("parameter", parametersOf(a), parametersOf(b));
  requireEqual("the micro-batch of a rank", a.training().micro_batch_size(), b.training().micro_batch_size());
  requireEqual("the batch of a step", a.training().train_batch_size(), b.training().train_batch_size());
  requireSame("input", inputsOf(a), inputsOf(b));
  pairOps();
  pairVariables();
}

void Correspondence::pairOps() {
  for (int i = 0; i < b_.reference().ops_size(); ++i)
    ops_.push_back(a_.reference().ops_size() + i);
  auto theirs = opsByName(b_);
  size_t alone = 0;
  std::string first;
  const auto count = [&](const Plan &plan, const std::vector<int> &ops, const char *side) {
    alone += ops.size();
    if (first.empty() && !ops.empty())
      first = titleOf(plan.reference().ops(ops[0])) + " of " + side;
  };
  for (const auto &[name, ops] : opsByName(a_)) {
    const std::vector<int> others = theirs[name];
    theirs.erase(name);
    if (ops.size() != others.size()) {
      count(a_, ops, "A");
      count(b_, others, "B");
      continue;
    }
    for (size_t i = 0; i < ops.size(); ++i) {
      requireSameAttributes(a_.reference().ops(ops[i]), b_.reference().ops(others[i]));
      ops_[size_t(others[i])] = ops[i];
    }
  }
  for (const auto &[name, ops] : theirs)
    count(b_, ops, "B");
  if (alone > 0)
    note_ = "the reference programs differ: " + std::to_string(alone) +
            " ops have no counterpart in the other plan, among them " + first +
            "; what they compute is not compared, and what follows from them may differ rightly";
}

void Correspondence::pairVariables() {
  std::map<std::string, uint32_t> numbers;
  for (int i = 0; i < a_.variables_size(); ++i)
    numbers[a_.variables(i).name()] = uint32_t(i);
  for (int i = 0; i < b_.variables_size(); ++i) {
    const auto found = numbers.find(b_.variables(i).name());
    variables_.push_back(found == numbers.end() ? uint32_t(a_.variables_size() + i) : found->second);
  }
}

} // namespace ds::runtime
