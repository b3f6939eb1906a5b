//===- ConfigFuzzer.cpp - any bytes as a configuration --------------------===//
//
// The first line is taken as a `--set` where it is short, the rest as ds_config.json; the whole also as a machine file.
// Every input is either accepted or refused by ds::Error; what is accepted resolves to itself.
//
//===----------------------------------------------------------------------===//
#include "compiler/config/Config.h"
#include "compiler/config/Machine.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

using namespace ds::config;

namespace {

void resolveTwice(std::string_view file, const ConfigOverrides &overrides) {
  std::string once;
  try {
    once = resolvedJson(resolveConfig(file, overrides));
  } catch (const ds::Error &) {
    return;
  }
  if (resolvedJson(resolveConfig(once, ConfigOverrides())) != once)
    std::abort();
}

} // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer looks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string_view text(reinterpret_cast<const char *>(data), size);
  ConfigOverrides overrides;
  resolveTwice(text, overrides);
  if (const size_t line = text.find('\n'); line < 100) {
    overrides.sets.emplace_back(text.substr(0, line));
    resolveTwice(text.substr(line + 1), overrides);
  }
  try {
    parseMachine(text, "machine.json");
  } catch (const ds::Error &) {
  }
  return 0;
}
