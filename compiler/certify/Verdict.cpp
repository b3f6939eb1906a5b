//===- Verdict.cpp - what is known of a plan before it runs ---------------===//
#include "compiler/certify/Verdict.h"

#include "compiler/certify/Refusal.h"
#include "compiler/sources/Graph.h"
#include "compiler/sources/Sources.h"
#include "core/Error.h"
#include "core/Sha256.h"
#include "runtime/plan/format/Lengths.h"
#include "runtime/plan/plan.pb.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ds::certify {
namespace {

using Json = nlohmann::ordered_json;
using sources::Claim;

constexpr const char *byPlan = "the plan";

/// What refusalOf proves, rule by rule (docs/checker.md).
std::vector<Claim> checkedClaims() {
  return {
      {"progress", "every queue of every role comes to the end of every program, whatever the timing", byPlan},
      {"race", "accesses of the same bytes, one of them a write, are ordered by queues and events", byPlan},
      {"value", "what is read was written before, for the same micro-batch, and is still there", byPlan},
      {"coverage", "every gradient holds each micro-batch of each rank once; every trained element is updated once",
       byPlan},
      {"meaning",
       "every kernel command computes what the reference op that it names says, or follows a rule of its own", byPlan},
      {"numerics", "gradients are summed in the order of one rank where the plan says that it is bit-equal", byPlan},
      {"memory", "no two live buffers share bytes; arenas and reserve fit the machine", byPlan}};
}

std::string sentences(const std::vector<Claim> &claims, const char *before) {
  std::string text;
  for (const Claim &claim : claims)
    text += std::string(before) + claim.sentence + "\n";
  return text;
}

Json jsonOf(const std::vector<Claim> &claims) {
  Json list = Json::array();
  for (const Claim &claim : claims)
    list.push_back({{"id", claim.id}, {"claim", claim.sentence}, {"rests_on", claim.restsOn}});
  return list;
}

Json trustedJson(const std::vector<Claim> &trusted) {
  Json list = Json::array();
  for (const Claim &claim : trusted)
    list.push_back({{"id", claim.id}, {"what", claim.sentence}, {"compared_by", claim.restsOn}});
  return list;
}

Json bodyOf(const Verdict &verdict) {
  if (!verdict.proven)
    return {{"verdict", "refused"}, {"rule", verdict.rule}, {"place", verdict.place}, {"sentence", verdict.sentence}};
  return {{"verdict", "proven"},
          {"claims", jsonOf(verdict.claims)},
          {"trusted", trustedJson(verdict.trusted)},
          {"unknown", {{"commands", verdict.unknown.commands}, {"bytes", verdict.unknown.bytes}}}};
}

/// What is known of kernels that the plan carries as PTX: they are run, not read.
std::optional<Claim> codesClaim(const plan::proto::Plan &plan) {
  if (plan.codes().empty())
    return std::nullopt;
  return Claim{"codes",
               std::to_string(plan.codes_size()) +
                   " kernels that the plan carries as PTX compute, on inputs that the plan's hash draws, what their "
                   "commands say: kernels of up to 16 blocks in all blocks, larger ones in 9 of them",
               byPlan};
}

Json digestsOf(const plan::proto::Plan &plan) {
  Json headers = Json::array();
  for (const plan::proto::WeightFile &file : plan.weight_files())
    if (!file.header_sha256().empty())
      headers.push_back(hexOf(file.header_sha256()));
  return {{"model_sha256", hexOf(plan.sources().model_sha256())},
          {"configuration_sha256", hexOf(plan.sources().configuration_sha256())},
          {"overrides", std::vector<std::string>(plan.sources().overrides().begin(), plan.sources().overrides().end())},
          {"weight_headers_sha256", headers}};
}

/// Of a plan for one size.
std::vector<Claim> compareOne(const plan::proto::Plan &plan, const sources::Places &places, const Derive &derive) {
  std::vector<Claim> claims = sources::requireSources(plan, places);
  if (!places.model.empty() && !places.config.empty())
    claims.push_back(sources::requireGraph(plan, derive(plan)));
  return claims;
}

/// The claims are those of the largest size; what is compared of another one must hold alike.
std::vector<Claim> compareSources(const plan::proto::Plan &plan, const sources::Places &places, const Derive &derive) {
  const std::vector<uint64_t> sizes = plan::sizesOf(plan);
  if (sizes.empty())
    return compareOne(plan, places, derive);
  std::vector<Claim> claims;
  std::string all;
  for (const uint64_t size : sizes) {
    all += (all.empty() ? "" : ", ") + std::to_string(size);
    try {
      claims = compareOne(plan::planOfSize(plan, size), places, derive);
    } catch (const Error &error) {
      throw Error(plan.dimension() + "=" + std::to_string(size) + ": " + error.what(), error.tryLine);
    }
  }
  claims.push_back({"sizes", "all of this holds for " + plan.dimension() + " " + all, byPlan});
  return claims;
}

} // namespace

Verdict judge(const plan::proto::Plan &plan, const sources::Places &places, const Derive &derive) {
  check::Unknown unknown;
  if (const std::optional<check::Finding> finding = refusalOf(plan, &unknown))
    return {.rule = finding->rule, .place = finding->place, .sentence = finding->sentence};
  Verdict verdict{
      .proven = true, .claims = checkedClaims(), .trusted = sources::trustedWithout(places), .unknown = unknown};
  if (std::optional<Claim> codes = codesClaim(plan))
    verdict.claims.push_back(*std::move(codes));
  for (Claim &claim : compareSources(plan, places, derive))
    verdict.claims.push_back(std::move(claim));
  return verdict;
}

std::string textOf(const Verdict &verdict, const plan::proto::Plan &plan, const std::string &name) {
  if (!verdict.proven)
    return "plan " + name + " is refused by the checker (" + verdict.rule + "): " + verdict.sentence;
  const std::string roles = std::to_string(plan.roles_size()) + " role" + (plan.roles_size() == 1 ? "" : "s");
  std::vector<Claim> byPlanAlone, bySources;
  for (const Claim &claim : verdict.claims)
    (claim.restsOn == byPlan ? byPlanAlone : bySources).push_back(claim);
  std::string text = name + ": proven for " + roles + ", relative to the reference program that the plan carries:\n" +
                     sentences(byPlanAlone, "  ");
  if (!bySources.empty())
    text += "compared with its sources:\n" + sentences(bySources, "  ");
  text += "not proven here:\n";
  for (const Claim &claim : verdict.trusted)
    text += "  " + claim.sentence + " (compared by " + claim.restsOn + ")\n";
  return text + "  of what commands compute: " + std::to_string(verdict.unknown.commands) + " commands write " +
         std::to_string(verdict.unknown.bytes) + " bytes of which nothing is known\n";
}

std::string jsonOf(const Verdict &verdict) { return bodyOf(verdict).dump(2) + "\n"; }

std::string certificateOf(const Verdict &verdict, const plan::proto::Plan &plan, const std::string &path) {
  Json certificate = {
      {"format", "deepstatic certificate"},
      {"version", 1},
      {"plan", {{"file", std::filesystem::path(path).filename().string()}, {"sha256", hexOf(sha256OfFile(path))}}},
      {"model", plan.model()},
      {"compiler", plan.compiler_revision()},
      {"checker", DS_VERSION},
      {"numerics", plan.numerics()},
      {"stale", plan.stale()},
      {"sources", digestsOf(plan)}};
  certificate.update(bodyOf(verdict));
  certificate["measured"] = Json::array();
  return certificate.dump(2) + "\n";
}

} // namespace ds::certify
