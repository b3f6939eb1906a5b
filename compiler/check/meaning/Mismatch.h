//===- Mismatch.h - why a command does not do what it is said to ----------===//
#pragma once

#include <string>

namespace ds::check {

/// Thrown by rules that know a command and not when it runs; MeaningRules.cpp adds the place.
struct Mismatch {
  std::string sentence;
};

} // namespace ds::check
