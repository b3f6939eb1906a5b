//===- CommandPlace.h - where a command stands in a run -------------------===//
#pragma once

#include <cstdint>
#include <string>

namespace ds::plan {

/// One command of one call of a program. A command that stands in several calls has several places.
struct CommandPlace {
  uint32_t role = 0;
  std::string program = {};
  uint32_t call = 0;    ///< of the program
  uint32_t command = 0; ///< of the call's routine
};

} // namespace ds::plan
