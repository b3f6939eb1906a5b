//===- RunCase.cpp - what a conformance case comes to --------------------------===//
#include "test/conformance/onnx/RunCase.h"

#include "core/Error.h"
#include "test/conformance/onnx/Case.h"
#include "test/conformance/onnx/RunModel.h"

#include <map>

namespace ds::test {
namespace fs = std::filesystem;
namespace {

/// Cases whose outputs do not follow from their model.
constexpr const char *mask = "its mask comes from numpy's random generator";
const std::map<std::string, std::string> skipped = {{"test_training_dropout", mask},
                                                    {"test_training_dropout_default", mask},
                                                    {"test_training_dropout_default_mask", mask},
                                                    {"test_training_dropout_mask", mask}};

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
  if (auto why = skipped.find(name); why != skipped.end())
    return {Outcome::Kind::Skipped, why->second};
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
