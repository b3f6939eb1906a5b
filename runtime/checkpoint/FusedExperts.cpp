//===- FusedExperts.cpp - experts as transformers saves and computes them -===//
#include "runtime/checkpoint/FusedExperts.h"

#include <cstdint>
#include <optional>
#include <regex>
#include <string>

namespace ds::runtime {

std::optional<ExpertPart> expertPart(const std::string &folderName) {
  static const std::regex form(
      R"((.*)\.(?:block_sparse_moe\.experts\.([0-9]{1,6})\.(w[123])|mlp\.experts\.([0-9]{1,6})\.(gate_proj|up_proj|down_proj))\.weight)");
  std::smatch parts;
  if (folderName.size() > 1000 || !std::regex_match(folderName, parts, form)) // std::regex recurses by length
    return std::nullopt;
  const bool isMixtral = parts[2].matched;
  const uint64_t expert = std::stoull(parts[isMixtral ? 2 : 4]);
  const std::string matrix = parts[isMixtral ? 3 : 5], experts = parts[1].str() + ".mlp.experts.";
  if (matrix == "w2" || matrix == "down_proj")
    return ExpertPart{experts + "down_proj", expert};
  return ExpertPart{experts + "gate_up_proj", 2 * expert + uint64_t(matrix == "w3" || matrix == "up_proj")};
}

std::string moduleName(std::string folderName) {
  const std::string router = ".block_sparse_moe.gate.weight";
  if (folderName.ends_with(router))
    folderName.replace(folderName.size() - router.size(), router.size(), ".mlp.gate.weight");
  return folderName;
}

} // namespace ds::runtime
