//===- RunId.h - tells runs apart, whoever reads what they wrote ----------===//
#pragma once

#include <string>

namespace ds::runtime {

/// 16 hexadecimal digits, drawn by the system.
std::string newRunId();

} // namespace ds::runtime
