//===- Sources.cpp - whether a plan is of its model and configuration -----===//
#include "compiler/sources/Sources.h"

#include "compiler/import/files/Files.h"
#include "compiler/sources/AttachedLoss.h"
#include "compiler/sources/ConfigFile.h"
#include "compiler/sources/ModelFile.h"
#include "compiler/sources/Settings.h"
#include "compiler/sources/State.h"
#include "compiler/sources/Weights.h"
#include "core/Error.h"
#include "core/Files.h"
#include "core/Sha256.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Mesh.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ds::sources {
namespace {

namespace fs = std::filesystem;
namespace proto = plan::proto;

void requireDigest(const std::string &file, const std::string &has, const std::string &wanted, const char *what) {
  if (wanted.empty())
    throw Error("the plan does not say which " + std::string(what) +
                " it was made from; compile it again with this ds-opt");
  if (has != wanted)
    throw Error(file + " is not the " + what + " that the plan was made from: its SHA-256 begins with " +
                hexOf(has).substr(0, 12) + ", the plan's with " + hexOf(wanted).substr(0, 12));
}

/// Of weight files that have one. Their elements are compared by ds-run when it loads them (crc32c).
Claim requireHeaders(const proto::Plan &plan, const std::string &planFolder) {
  size_t compared = 0;
  for (const proto::WeightFile &file : plan.weight_files()) {
    if (file.header_sha256().empty())
      continue;
    const std::string path = (fs::path(planFolder) / file.path()).lexically_normal().string();
    const std::string header = import::safetensorsHeader(*import::InputFile::open(path));
    requireDigest(path, sha256(std::as_bytes(std::span(header))), file.header_sha256(), "safetensors file");
    ++compared;
  }
  return {"weight_headers", std::to_string(compared) + " of " + std::to_string(plan.weight_files_size()) +
                                " weight files are safetensors, with the headers that the plan was made from"};
}

/// Makes inputs of the model of what a loss in a file of its own reads beside the model's values.
void addLossInputs(const proto::Plan &plan, const std::string &planFolder, ModelFile &model) {
  const std::optional<AttachedLoss> attached = attachedLossOf(plan);
  if (!attached || attached->file.empty())
    return;
  const std::string path = (fs::path(planFolder) / attached->file).lexically_normal().string();
  if (const std::string digest = hexOf(sha256OfFile(path)); digest != attached->sha256)
    throw Error(path + " is not the loss that the plan was made from: its SHA-256 begins with " + digest.substr(0, 12) +
                ", the plan's with " + attached->sha256.substr(0, 12));
  const ModelFile loss = readModel(path);
  for (const auto &[name, input] : loss.inputs)
    if (!model.outputs.contains(name))
      model.inputs.try_emplace(name, input);
}

std::vector<Claim> byModel(const proto::Plan &plan, const ModelFile &model, const Places &places,
                           const std::string &planFolder) {
  requireDigest(model.path, sha256OfFile(model.path), plan.sources().model_sha256(), "model");
  std::vector<Claim> claims = {{"model", "the plan was made from " + fs::path(model.path).filename().string() +
                                             ", SHA-256 " + hexOf(plan.sources().model_sha256())},
                               requireHeaders(plan, planFolder)};
  for (Claim &claim : requireWeights(plan, model, places, planFolder))
    claims.push_back(std::move(claim));
  if (std::optional<Claim> claim = model.bringsAlgorithm ? std::nullopt : requireState(plan, model))
    claims.push_back(*std::move(claim));
  return claims;
}

/// The hidden size is the side that most trained matrices have, the longest of those.
Trained trained(const proto::Plan &plan) {
  Trained result;
  std::map<uint64_t, int> sides;
  for (const proto::Variable &variable : plan.variables()) {
    if (!variable.trainable())
      continue;
    result.bf16 = variable.dtype() == proto::DTYPE_BF16;
    if (variable.shape_size() != 2)
      continue;
    ++sides[uint64_t(variable.shape(0))];
    if (variable.shape(1) != variable.shape(0))
      ++sides[uint64_t(variable.shape(1))];
  }
  const auto best = std::ranges::max_element(
      sides, [](const auto &a, const auto &b) { return std::pair(a.second, a.first) < std::pair(b.second, b.first); });
  result.hidden = best == sides.end() ? 0 : best->first;
  return result;
}

std::vector<Claim> byConfiguration(const proto::Plan &plan, const std::string &path, ConfigFile &config) {
  // ds-opt compiles none of over a MiB.
  const std::optional<std::string> text = readWhole(path, (size_t(1) << 20) + 1);
  if (!text)
    throw Error(path + ": cannot be read: " + std::strerror(errno) + "; --config takes a DeepSpeed ds_config.json");
  requireDigest(path, sha256(std::as_bytes(std::span(*text))), plan.sources().configuration_sha256(), "configuration");
  const std::vector<std::string> overrides(plan.sources().overrides().begin(), plan.sources().overrides().end());
  std::string by = "the plan was made from " + fs::path(path).filename().string() + ", SHA-256 " +
                   hexOf(plan.sources().configuration_sha256());
  for (const std::string &one : overrides)
    by += ", --set " + one;
  std::vector<Claim> claims = {{"configuration", by}};
  config = readConfig(*text, path, overrides, plan::batchRanks(plan), trained(plan));
  for (Claim &claim : requireSettings(plan, config))
    claims.push_back(std::move(claim));
  return claims;
}

} // namespace

std::vector<Claim> requireSources(const proto::Plan &plan, const Places &places) {
  std::string planFolder = fs::path(places.plan).parent_path().string();
  planFolder = planFolder.empty() ? "." : planFolder;
  std::vector<Claim> claims;
  const auto add = [&](std::vector<Claim> more, const char *restsOn) {
    for (Claim &claim : more) {
      claim.restsOn = restsOn;
      claims.push_back(std::move(claim));
    }
  };
  std::optional<ModelFile> model;
  std::optional<ConfigFile> config;
  if (!places.model.empty()) {
    addLossInputs(plan, planFolder, model.emplace(readModel(places.model)));
    add(byModel(plan, *model, places, planFolder), "the model");
  }
  if (!places.config.empty())
    add(byConfiguration(plan, places.config, config.emplace()), "the configuration");
  if (model || config)
    if (std::optional<Claim> loss = requireAttachedLoss(plan, model ? &*model : nullptr, config ? &*config : nullptr))
      add({*std::move(loss)}, config && config->loss ? "the configuration"
                              : model && config      ? "the model"
                                                     : "the plan");
  return claims;
}

std::vector<Claim> trustedWithout(const Places &places) {
  const bool derived = !places.model.empty() && !places.config.empty();
  std::vector<Claim> trusted = {
      derived ? Claim{"graph", "that ds-opt reads the model as ONNX means it, and that its derivatives are right",
                      "tests beside PyTorch, and ds-audit, for tiny models"}
              : Claim{"graph", "that the reference program is the model's graph and its derivative",
                      "--model with --config, and ds-audit, for tiny models"},
      {"kernels", "that kernels compute their ops, and the machine what it is told", "the tests of kernels"}};
  if (places.model.empty())
    trusted.push_back({"model", "names, ties, inputs and first values", "--model"});
  if (places.config.empty())
    trusted.push_back({"configuration", "batch, optimizer, scales and learning rates", "--config"});
  return trusted;
}

} // namespace ds::sources
