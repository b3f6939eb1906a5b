//===- Epsilon.h - what a norm adds to a variance ---------------------------===//
#pragma once

#include "compiler/import/Node.h"

#include <cmath>
#include <string>

namespace ds::import {

/// The attribute of a norm: 0 or more.
inline double epsilonOf(Node &node) {
  const double value = node.floatAttr("epsilon", 1e-5);
  if (!(value >= 0 && std::isfinite(value)))
    throw Failure("epsilon is " + std::to_string(value) +
                  ", which would be added to a variance; it must be 0 or more, such as 1e-5");
  return value;
}

} // namespace ds::import
