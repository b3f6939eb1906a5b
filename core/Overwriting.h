//===- Overwriting.h - results never overwrite what was read --------------===//
#pragma once

#include <span>
#include <string>

namespace ds {

/// A file by the user's name for it: "the plan", "--export". Without a path there is none; "-" is stdout.
struct NamedPath {
  std::string what, path;
};

/// Throws ds::Error if `output` is the same file as one of `inputs`. One file by two names counts, whether it exists
/// already or not.
void refuseOverwriting(const NamedPath &output, std::span<const NamedPath> inputs);

} // namespace ds
