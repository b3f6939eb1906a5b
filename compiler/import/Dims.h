//===- Dims.h - symbolic dimensions ----------------------------------------===//
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace ds::import {

/// The value of a dimension such as "batch", "32*batch", "seq + 1" or "(seq + 3)//4" under `dims`. Throws Failure where
/// a name is unbound (naming it and `--dim`), the text is no such expression, or the result is negative or overflows.
int64_t evaluateDim(const std::string &expression, const std::map<std::string, int64_t> &dims,
                    const std::string &where);

/// Adds the names that an expression uses; adds nothing for a malformed one.
void collectDimNames(const std::string &expression, std::set<std::string> &names);

} // namespace ds::import
