//===- ConformanceTest.cpp - ONNX's conformance suite on the CPU --------------===//
//
// Runs every case of libonnx-testdata, and our own of newer opsets (make_cases.py), through importer, passes, export,
// runtime and CPU kernels, and prints one line a case: passed, refused with the product's sentence, failed (a wrong
// result) or skipped. expected.txt says how many cases pass and how many are refused for which reason; no case may
// fail.
//
//===----------------------------------------------------------------------===//
#include "test/conformance/onnx/Case.h"
#include "test/conformance/onnx/RunCase.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

namespace ds::test {
namespace {

namespace fs = std::filesystem;

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
  int counts[4] = {};
  for (const std::string &name : caseNames(folder)) {
    const std::string full = kind + "/" + name;
    const Outcome outcome = runCase(folder / name);
    std::cout << outcome.line(full) << "\n";
    ++counts[int(outcome.kind)];
    if (outcome.kind == Outcome::Kind::Skipped)
      continue;
    if (Expectation *expectation = find(expectations, outcome))
      ++expectation->seen;
    else
      ADD_FAILURE() << full << (outcome.kind == Outcome::Kind::Failed ? " gives a wrong result: " : " is refused: ")
                    << outcome.reason;
  }
  std::cout << kind << ": " << counts[0] << " passed, " << counts[2] << " failed, " << counts[1] << " refused, "
            << counts[3] << " skipped\n";
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
