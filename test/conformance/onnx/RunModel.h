//===- RunModel.h - a graph's outputs, by the product's own path --------------===//
#pragma once

#include "test/conformance/onnx/Case.h"

#include <string>
#include <vector>

namespace ds::test {

/// Imports the model, compiles it to a plan, checks the plan, runs it on the CPU and reads its outputs. Throws
/// ds::Error with the product's sentence where one of these refuses.
std::vector<HostTensor> runModel(const Case &test);

} // namespace ds::test
