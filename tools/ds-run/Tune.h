//===- Tune.h - ds-run --tune ---------------------------------------------===//
#pragma once

#include <string>

namespace ds::run {

/// Prints a line for each product of the plan, and writes into the file which algorithms cuBLASLt is to run. Throws
/// ds::Error; the file is then as it was.
void tune(const std::string &planPath);

} // namespace ds::run
