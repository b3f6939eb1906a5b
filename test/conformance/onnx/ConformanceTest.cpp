//===- ConformanceTest.cpp - ONNX's conformance suite on the CPU --------------===//
//
// Runs every case of libonnx-testdata, and our own of newer opsets (make_cases.py), through importer, passes, export,
// runtime and CPU kernels, and prints one line a case: passed, refused with the product's sentence, failed (a wrong
// result) or skipped. expected.txt says how many cases pass and how many are refused for which reason; no case may
// fail.
//
//===----------------------------------------------------------------------===//
#include "core/Error.h"
#include "test/conformance/onnx/Case.h"
#include "test/conformance/onnx/RunModel.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>

namespace ds::test {
namespace {

namespace fs = std::filesystem;

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

/// A line of expected.txt: so many cases of a kind pass, or are refused by a sentence that holds `reason`.
struct Expectation {
  int count = 0;
  std::string reason; // empty: passed
  int seen = 0;
};

std::vector<Expectation> expectationsOf(const std::string &kind) {
  std::ifstream file(DS_SOURCE_DIR "/test/conformance/onnx/expected.txt");
  std::vector<Expectation> expectations;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    Expectation expectation;
    std::string of, what;
    if (line.starts_with("#") || !(words >> expectation.count >> of >> what) || of != kind)
      continue;
    std::getline(words >> std::ws, expectation.reason);
    expectations.push_back(expectation);
  }
  return expectations;
}

struct Outcome {
  enum class Kind { Passed, Refused, Failed } kind = Kind::Passed;
  std::string reason;
};

Outcome runCase(const fs::path &folder) {
  Case test;
  std::vector<HostTensor> outputs;
  try {
    test = loadCase(folder);
    complete(folder.filename(), test.model);
    outputs = runModel(test);
  } catch (const Error &error) {
    return {Outcome::Kind::Refused, error.what()};
  }
  for (size_t i = 0; i < outputs.size(); ++i)
    if (const std::string how = difference(outputs[i], test.outputs[i]); !how.empty())
      return {Outcome::Kind::Failed, "output " + std::to_string(i) + ": " + how};
  return {};
}

/// The first expectation that an outcome meets, or null.
Expectation *find(std::vector<Expectation> &expectations, const Outcome &outcome) {
  for (Expectation &expectation : expectations)
    if (expectation.reason.empty()
            ? outcome.kind == Outcome::Kind::Passed
            : outcome.kind == Outcome::Kind::Refused && outcome.reason.find(expectation.reason) != std::string::npos)
      return &expectation;
  return nullptr;
}

/// Runs the cases of a folder.
void runKind(const fs::path &folder, const std::string &kind) {
  if (!fs::exists(folder))
    GTEST_SKIP() << "libonnx-testdata is not installed";
  std::vector<Expectation> expectations = expectationsOf(kind);
  int counts[3] = {}, left = 0;
  for (const std::string &name : caseNames(folder)) {
    const std::string full = kind + "/" + name;
    if (auto why = skipped.find(name); why != skipped.end()) {
      std::cout << "skipped " << full << ": " << why->second << "\n";
      ++left;
      continue;
    }
    const Outcome outcome = runCase(folder / name);
    const char *words[] = {"passed ", "refused ", "failed "};
    std::cout << words[int(outcome.kind)] << full << (outcome.reason.empty() ? "" : ": ") << outcome.reason << "\n";
    ++counts[int(outcome.kind)];
    if (Expectation *expectation = find(expectations, outcome))
      ++expectation->seen;
    else
      ADD_FAILURE() << full << (outcome.kind == Outcome::Kind::Failed ? " gives a wrong result: " : " is refused: ")
                    << outcome.reason;
  }
  std::cout << kind << ": " << counts[0] << " passed, " << counts[2] << " failed, " << counts[1] << " refused, " << left
            << " skipped\n";
  for (const Expectation &expectation : expectations)
    EXPECT_EQ(expectation.seen, expectation.count)
        << "cases of " << kind << (expectation.reason.empty() ? " that pass" : " refused with " + expectation.reason)
        << "; for the better, write it into expected.txt";
}

TEST(Conformance, Node) { runKind(DS_ONNX_TESTDATA "/node", "node"); }
TEST(Conformance, PytorchConverted) { runKind(DS_ONNX_TESTDATA "/pytorch-converted", "pytorch-converted"); }
TEST(Conformance, PytorchOperator) { runKind(DS_ONNX_TESTDATA "/pytorch-operator", "pytorch-operator"); }
TEST(Conformance, Simple) { runKind(DS_ONNX_TESTDATA "/simple", "simple"); }
TEST(Conformance, NewerOpsets) { runKind(DS_SOURCE_DIR "/test/conformance/onnx/cases", "newer"); }

} // namespace
} // namespace ds::test
