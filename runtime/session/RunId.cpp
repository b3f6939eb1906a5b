//===- RunId.cpp - tells runs apart, whoever reads what they wrote --------===//
#include "runtime/session/RunId.h"

#include <array>
#include <cstdio>
#include <random>

namespace ds::runtime {

std::string newRunId() {
  std::random_device random;
  std::array<char, 17> id{};
  std::snprintf(id.data(), id.size(), "%08x%08x", random(), random());
  return id.data();
}

} // namespace ds::runtime
