//===- RunCase.cpp - what a conformance case comes to --------------------------===//
#include "test/conformance/onnx/RunCase.h"

#include "core/Error.h"
#include "test/conformance/onnx/Case.h"
#include "test/conformance/onnx/RunModel.h"

#include <set>

namespace ds::test {
namespace fs = std::filesystem;
namespace {

/// Whether a case's outputs do not follow from its model: numpy's random generator has drawn them.
bool isDrawn(const std::string &name) {
  static const std::set<std::string> masks = {"test_training_dropout", "test_training_dropout_default",
                                              "test_training_dropout_default_mask", "test_training_dropout_mask"};
  return masks.count(name) != 0 || name.starts_with("test_bernoulli");
}

/// Completes the one case whose node does not say by which epsilon its outputs were made: 0.01, not the operator's 0.
void complete(const std::string &name, onnx::ModelProto &model) {
  if (name != "test_adam_multiple")
    return;
  onnx::AttributeProto *epsilon = model.mutable_graph()->mutable_node(0)->add_attribute();
  epsilon->set_name("epsilon");
  epsilon->set_f(0.01F);
}

} // namespace

std::string Outcome::line(const std::string &name) const {
  const char *words[] = {"passed ", "refused ", "failed ", "skipped "};
  return words[int(kind)] + name + (reason.empty() ? "" : ": ") + reason;
}

Outcome runCase(const fs::path &folder) {
  const std::string name = folder.filename();
  if (isDrawn(name))
    return {Outcome::Kind::Skipped, "its numbers come from numpy's random generator"};
  Case test;
  std::vector<HostTensor> outputs;
  try {
    test = loadCase(folder);
    complete(name, test.model);
    outputs = runModel(test);
  } catch (const Error &error) {
    return {Outcome::Kind::Refused, error.what()};
  }
  for (size_t i = 0; i < outputs.size(); ++i)
    if (const std::string how = difference(outputs[i], test.outputs[i]); !how.empty())
      return {Outcome::Kind::Failed, "output " + std::to_string(i) + ": " + how};
  return {};
}

} // namespace ds::test
