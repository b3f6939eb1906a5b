//===- run_onnx_cases.cpp - one line for each conformance case of a folder ------===//
//
// test/e2e/test_onnx_backend.py writes the cases of the onnx package and counts the lines.
//
//===----------------------------------------------------------------------===//
#include "test/conformance/onnx/Case.h"
#include "test/conformance/onnx/RunCase.h"

#include <iostream>

int main(int argc, char **argv) {
  if (argc != 2) {
    std::cerr << "usage: run_onnx_cases FOLDER\n";
    return 2;
  }
  for (const std::string &name : ds::test::caseNames(argv[1]))
    std::cout << ds::test::runCase(std::filesystem::path(argv[1]) / name).line(name) << std::endl;
}
