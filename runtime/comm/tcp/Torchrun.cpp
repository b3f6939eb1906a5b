//===- Torchrun.cpp - what torchrun tells a process -----------------------===//
#include "runtime/comm/tcp/Torchrun.h"

#include "core/Error.h"
#include "runtime/comm/tcp/Admission.h"
#include "runtime/comm/tcp/Frame.h"

#include <charconv>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

namespace ds::runtime {
namespace {

std::string need(const Environment &environment, const char *name) {
  const char *text = environment(name);
  if (text == nullptr || *text == '\0')
    throw Error("WORLD_SIZE is set, as by torchrun, but " + std::string(name) +
                " is not; MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE belong together");
  return text;
}

/// A number in [least, most].
uint32_t number(const Environment &environment, const char *name, uint32_t least, uint32_t most) {
  const std::string text = need(environment, name);
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most)
    throw Error(std::string(name) + " is \"" + text + "\", but must be a number from " + std::to_string(least) +
                " to " + std::to_string(most));
  return value;
}

std::string optional(const Environment &environment, const char *name) {
  const char *text = environment(name);
  return text != nullptr ? text : "";
}

std::string readSecret(const Environment &environment) {
  const std::string path = optional(environment, "DS_RUN_SECRET_FILE");
  if (path.empty())
    return optional(environment, "DS_RUN_SECRET");
  std::ifstream file(path);
  std::string secret;
  if (!std::getline(file, secret) || secret.empty())
    throw Error("DS_RUN_SECRET_FILE is " + path +
                ", whose first line cannot be read or is empty; it must be the run's "
                "secret, the same for all ranks");
  return secret;
}

RunKey readKey(const Environment &environment) {
  RunKey key{.id = optional(environment, "DS_RUN_ID"), .secret = readSecret(environment)};
  if (key.id.empty())
    key.id = optional(environment, "TORCHELASTIC_RUN_ID");
  if (key.id.size() > maxKeyBytes)
    throw Error("the run's id (DS_RUN_ID or TORCHELASTIC_RUN_ID) has " + std::to_string(key.id.size()) +
                " bytes, but may have " + std::to_string(maxKeyBytes) + "; shorten it");
  return key;
}

} // namespace

std::optional<Torchrun> readTorchrun(const Environment &environment) {
  if (environment("WORLD_SIZE") == nullptr)
    return std::nullopt;
  Torchrun torchrun;
  torchrun.ranks = number(environment, "WORLD_SIZE", 1, 1u << 20);
  torchrun.rank = number(environment, "RANK", 0, torchrun.ranks - 1);
  torchrun.address = {need(environment, "MASTER_ADDR"), uint16_t(number(environment, "MASTER_PORT", 1, 65534))};
  // torchrun itself listens on MASTER_PORT then, for its own store.
  const char *agent = environment("TORCHELASTIC_USE_AGENT_STORE");
  torchrun.address.port += agent != nullptr && std::string_view(agent) == "True" ? 1 : 0;
  torchrun.key = readKey(environment);
  return torchrun;
}

} // namespace ds::runtime
