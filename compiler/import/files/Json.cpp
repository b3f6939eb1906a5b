//===- Json.cpp - JSON from files that are not trusted ------------------------===//
#include "compiler/import/files/Json.h"

#include "compiler/import/files/Failure.h"

namespace ds::import {

static bool nestsDeeperThan(llvm::StringRef text, int limit) {
  int depth = 0;
  bool inString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (inString) {
      i += c == '\\';
      inString = c != '"';
    } else if (c == '"') {
      inString = true;
    } else if (c == '[' || c == '{') {
      if (++depth > limit)
        return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

llvm::json::Value parseJson(llvm::StringRef text, const std::string &what) {
  if (nestsDeeperThan(text, 32))
    throw Failure(what + " nests deeper than 32 levels");
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(text);
  if (!value)
    throw Failure(what + " is not JSON: " + llvm::toString(value.takeError()));
  return std::move(*value);
}

} // namespace ds::import
