//===- Scripts.h - the Python scripts that come with the tools ------------===//
#pragma once

#include <string>

namespace ds {

/// How a user calls models/NAME.py: as a module of the wheel, by its path in an unpacked tarball, in a checkout by its
/// name from the root.
std::string scriptCommand(const std::string &name);

} // namespace ds
