//===- Json.h - JSON from files that are not trusted --------------------------===//
#pragma once

#include "llvm/Support/JSON.h"

#include <string>

namespace ds::import {

/// Parses `text`; throws Failure, naming `what`, where it is no JSON or nests deeper than 32 (LLVM's parser recurses).
llvm::json::Value parseJson(llvm::StringRef text, const std::string &what);

} // namespace ds::import
