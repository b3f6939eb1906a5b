//===- OffloadSettings.cpp - what lies elsewhere than in device memory ----===//
#include "compiler/config/Config.h"
#include "compiler/config/Hjson.h"
#include "compiler/config/Resolver.h"
#include "core/FilePage.h"
#include "core/NearestName.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ds::config {
namespace {

constexpr std::string_view activations = "deepstatic.offload", delayed = "deepstatic.delayed_update",
                           anyFolder = "deepstatic.nvme_path", optimizer = "zero_optimization.offload_optimizer.device",
                           optimizerRatio = "zero_optimization.offload_optimizer.ratio",
                           optimizerFolder = "zero_optimization.offload_optimizer.nvme_path",
                           parameters = "zero_optimization.offload_param.device",
                           parametersFolder = "zero_optimization.offload_param.nvme_path", blockSize = "aio.block_size",
                           queueDepth = "aio.queue_depth";
constexpr size_t longestRule = 1000;

/// {"REGEX of module scopes": "none", "cpu" or "nvme"}.
void readRules(Resolver &resolver, const Node &object, std::vector<OffloadRule> &rules) {
  static constexpr std::string_view words[] = {"none", "cpu", "nvme"};
  for (const Member &rule : object.members) {
    const std::string device = rule.value.kind == Node::Kind::String ? rule.value.text : "";
    if (rule.key.empty() || rule.key.size() > longestRule)
      return resolver.refuse(activations, rule.key.empty() ? "an empty expression names no module"
                                                           : "an expression has at most 1000 characters");
    if (std::ranges::find(words, device) == std::end(words))
      return resolver.refuse(
          activations,
          "the rule " + printable(rule.key) + " is " + shortJson(rule.value) + R"(; it takes "none", "cpu" or "nvme")" +
              (device.empty() ? "" : ", the nearest is \"" + std::string(nearestName(device, words)) + "\""));
    rules.push_back({rule.key, device});
  }
}

/// In the order in which they decide: rules of deepstatic.recompute, which may say what becomes of the same tensors,
/// those of deepstatic.offload, and what moves all.
void resolveActivations(Resolver &resolver, Config &config) {
  for (const Recompute::Rule &rule : config.recompute.rules)
    config.offload.push_back({rule.modules, rule.away ? "cpu" : "none"});
  if (const Node *value = resolver.find(activations)) {
    if (value->kind == Node::Kind::Object)
      readRules(resolver, *value, config.offload);
    else if (resolver.string(activations) == "auto")
      config.offloadAuto = true;
    else if (resolver.string(activations) != "none")
      resolver.refuse(activations, R"(it takes "none", "auto" or an object of {"REGEX": "cpu" or "nvme"})",
                      "--set deepstatic.offload=none");
  }
  if (config.cpuCheckpointing)
    config.offload.push_back({".*", "cpu"});
  const auto moves = [](const OffloadRule &rule) { return rule.device != "none"; };
  if (std::ranges::none_of(config.offload, moves))
    config.offload.clear();
}

NvmeFiles readNvme(Resolver &resolver) {
  NvmeFiles files{.folder = resolver.stringOrDefault(anyFolder),
                  .blockBytes = resolver.integerOrDefault(blockSize),
                  .queueDepth = resolver.integerOrDefault(queueDepth)};
  for (const std::string_view path : {optimizerFolder, parametersFolder})
    if (const std::string folder = resolver.stringOrDefault(path); files.folder.empty())
      files.folder = folder;
    else if (!folder.empty() && folder != files.folder)
      resolver.refuse(path, "a rank has one file, and that is in " + files.folder,
                      "--set " + std::string(anyFolder) + "=" + files.folder);
  if (std::ranges::any_of(files.folder, [](unsigned char c) { return c < ' '; }))
    resolver.refuse(resolver.find(anyFolder)         ? anyFolder
                    : resolver.find(optimizerFolder) ? optimizerFolder
                                                     : parametersFolder,
                    "no folder of a plan has a control character in its name", "--set deepstatic.nvme_path=/tmp");
  if (files.folder.empty())
    resolver.refuseWhole("something is to lie on NVMe, but no key nvme_path names a folder of a local drive",
                         "--set " + std::string(anyFolder) + "=/tmp");
  if (files.blockBytes < 0 || !isFileBlock(uint64_t(files.blockBytes)))
    resolver.refuse(blockSize, "it is the bytes of one read or write and must be a multiple of " +
                                   std::to_string(filePage) + ", at most 2^30");
  if (files.queueDepth < 1 || files.queueDepth > mostFileDepth)
    resolver.refuse(queueDepth, "so many reads or writes are under way at once; it takes 1 to 1024");
  return files;
}

void resolveRatio(Resolver &resolver, Config &config) {
  if (config.offloadOptimizer == "none")
    return resolver.subsume(optimizerRatio, "optimizer state lies in device memory");
  config.offloadRatio = resolver.numberOrDefault(optimizerRatio);
  if (!(config.offloadRatio >= 0 && config.offloadRatio <= 1))
    resolver.refuse(optimizerRatio, "it is the share of the optimizer state that leaves device memory; it takes 0 to 1",
                    "--set " + std::string(optimizerRatio) + "=1.0");
  config.offloadRatioAuto = resolver.wasAuto(optimizerRatio);
}

/// It gives the host a step's time for an update, at the price of other results: of no use where the device updates.
void resolveDelay(Resolver &resolver, Config &config) {
  config.delayedUpdate = resolver.booleanOrDefault(delayed);
  if (config.delayedUpdate && config.offloadOptimizer == "none")
    resolver.refuse(delayed,
                    "updates of the step before hide what the host computes, and without " + std::string(optimizer) +
                        " the device makes them; set that to \"cpu\" or \"nvme\"",
                    "--set " + std::string(optimizer) + "=cpu");
}

} // namespace

void resolveOffload(Resolver &resolver, Config &config) {
  resolveActivations(resolver, config);
  config.offloadOptimizer = resolver.stringOrDefault(optimizer);
  config.offloadParameters = resolver.stringOrDefault(parameters);
  resolveDelay(resolver, config);
  resolveRatio(resolver, config);
  if (config.offloadOptimizer == "nvme" || config.offloadParameters == "nvme" ||
      std::ranges::count(config.offload, "nvme", &OffloadRule::device) > 0) {
    config.nvme = readNvme(resolver);
    return;
  }
  for (const std::string_view path : {anyFolder, optimizerFolder, parametersFolder, blockSize, queueDepth})
    resolver.subsume(path, "nothing is kept on NVMe");
}

} // namespace ds::config
