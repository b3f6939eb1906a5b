//===- Advice.h - what would make a plan fit --------------------------------===//
#pragma once

#include "compiler/driver/Compile.h"

#include <string>

namespace ds::driver {

/// For a plan that lacks memory: changes of the request and the device memory that each needs, by compiling them.
struct Advice {
  std::string sentence; // empty where none needs less, or plans are too large to make several
  std::string tryLine;  // the flags of the first that fits
};
Advice adviceFor(const CompileRequest &request, const plan::proto::Plan &plan);

} // namespace ds::driver
