//===- Overwriting.cpp - results never overwrite what was read ------------===//
#include "core/Overwriting.h"

#include "core/Error.h"
#include "core/Files.h"

#include <filesystem>
#include <span>
#include <string>

namespace ds {
namespace {

namespace fs = std::filesystem;

/// A pipe or a terminal, which has no content to lose; behind /dev/stdout it has no path either.
bool isStream(const fs::path &path) { return isThere(path) && !fs::is_regular_file(path) && !fs::is_directory(path); }

bool sameFile(const fs::path &a, const fs::path &b) {
  if (isStream(a) || isStream(b))
    return false;
  if (isThere(a) && isThere(b))
    return fs::is_regular_file(a) && fs::equivalent(a, b);
  return fs::weakly_canonical(fs::absolute(a)) == fs::weakly_canonical(fs::absolute(b));
}

} // namespace

void refuseOverwriting(const NamedPath &output, std::span<const NamedPath> inputs) {
  if (output.path.empty() || output.path == "-")
    return;
  for (const NamedPath &input : inputs)
    if (!input.path.empty() && sameFile(output.path, input.path))
      throw Error(output.what + " " + output.path + " would overwrite " + input.what + " " + input.path +
                  "; give it another name");
}

} // namespace ds
