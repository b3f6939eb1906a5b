//===- StoredState.cpp - a checkpoint that a run resumes ------------------===//
#include "runtime/checkpoint/StoredState.h"

#include "core/DType.h"
#include "core/Error.h"
#include "core/Shape.h"
#include "runtime/checkpoint/FileDamage.h"
#include "runtime/checkpoint/Manifest.h"
#include "runtime/checkpoint/StateShares.h"
#include "runtime/checkpoint/StoredRuns.h"
#include "runtime/data/SafetensorsFile.h"
#include "runtime/data/SafetensorsWriter.h"
#include "runtime/executor/HeldParts.h"
#include "runtime/executor/VariableSources.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Placement.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ds::runtime {
static bool isSmallFloat(const std::string &dtype) { return dtype == "F32" || dtype == "BF16" || dtype == "F16"; }

/// Whether a checkpoint may hold a variable in another type: what is frozen, in float32 or 16 bits. Whether the numbers
/// are the same is looked at as they are read.
static bool mayBeConverted(const plan::proto::Variable &variable, const std::string &there) {
  const std::string dtype = safetensorsName(DType(variable.dtype()));
  const bool isFrozen = variable.kind() == plan::proto::Variable::PARAMETER && !variable.trainable();
  return isFrozen && isSmallFloat(there) && isSmallFloat(dtype) && (there == "F32") != (dtype == "F32");
}

StoredState::StoredState(std::string folder, const Manifest &manifest, const plan::proto::Plan &plan,
                         std::span<const uint32_t> ranks)
    : folder_(std::move(folder)), plan_(plan) {
  const ByName byName = byPlanNames(manifest);
  requireSameVariables(byName);
  for (const uint32_t rank : ranks)
    for (const HeldPart &part : heldOfPieces(plan, rank)) {
      const plan::proto::Variable &variable = plan.variables(int(part.variable));
      if (const auto found = byName.find(variable.name()); found != byName.end())
        add(manifest, *found->second, part.variable, plan::versionOf(plan, variable, rank),
            plan::wholeElements(plan, variable, rank, part.first, part.count));
    }
}

/// A tied parameter may have the other of its names there: the first, where the plan has the last.
StoredState::ByName StoredState::byPlanNames(const Manifest &manifest) const {
  std::map<std::string, std::string> planNames; // of each name of a parameter
  for (const plan::proto::Variable &variable : plan_.variables())
    for (const std::string &alias : variable.aliases())
      planNames.emplace(alias, variable.name());
  const auto planName = [&](const std::string &name) {
    const auto found = planNames.find(name);
    return found != planNames.end() ? found->second : name;
  };
  ByName byName;
  for (const Manifest::Variable &variable : manifest.variables) {
    const bool ofOther = variable.kind == Manifest::Kind::Optimizer && planName(variable.of) != variable.of;
    byName.emplace(ofOther ? planName(variable.of) + "::" + variable.slot : planName(variable.name), &variable);
  }
  return byName;
}

void StoredState::requireSameVariables(const ByName &stored) const {
  const std::string other = "checkpoint " + folder_ + " is of another model or optimizer than the plan: ";
  const std::string newState = "; to go on from its weights with new optimizer state, write them with ds-run export " +
                               folder_ + " -o weights.safetensors, and begin with --weights weights.safetensors";
  std::set<std::string> wanted;
  for (const uint32_t index : stateVariables(plan_)) {
    const plan::proto::Variable &variable = plan_.variables(int(index));
    wanted.insert(variable.name());
    const auto found = stored.find(variable.name());
    if (found == stored.end())
      throw Error(other + "it has no " + variable.name() +
                  (variable.kind() == plan::proto::Variable::OPTIMIZER ? newState : ""));
    const Manifest::Variable &there = *found->second;
    const Shape shape(variable.shape().begin(), variable.shape().end());
    const char *dtype = safetensorsName(DType(variable.dtype()));
    const bool isSame = there.dtype == dtype || mayBeConverted(variable, there.dtype);
    if (!isSame && there.shape == shape && isSmallFloat(there.dtype) && isSmallFloat(dtype))
      throw Error("checkpoint " + folder_ + " holds " + variable.name() + " as " + there.dtype + ", the plan as " +
                  dtype +
                  "; compile with *_master_weights_and_grads and bf16_optimizer_states as the run had them, or begin "
                  "with its weights: ds-run export " +
                  folder_ + " -o weights.safetensors, and --weights weights.safetensors");
    if (!isSame || there.shape != shape)
      throw Error(other + variable.name() + " is " + there.dtype + " " + toString(there.shape) +
                  " there, the plan wants " + dtype + " " + toString(shape));
  }
  for (const auto &[name, variable] : stored) // of a module's buffers the exporter keeps those that are used
    if (!wanted.contains(name) && variable->kind != Manifest::Kind::Buffer)
      throw Error(other + "it has " + variable->name + ", which the plan has not" +
                  (variable->kind == Manifest::Kind::Optimizer ? newState : ""));
}

/// What is stored of the wanted elements of a version, unless it is there already. Where the checkpoint has no such
/// version, of its first.
void StoredState::add(const Manifest &manifest, const Manifest::Variable &there, uint32_t variable, uint64_t version,
                      std::vector<plan::Run> wanted) {
  using Piece = StoredVariables::Piece;
  std::ranges::sort(wanted, {}, &plan::Run::first);
  std::vector<Piece> &known = variables_.pieces[{variable, version}], added;
  const uint64_t elementBytes = safetensorsElementBytes(there.dtype);
  auto next = wanted.begin();
  for (const StoredRun &run : storedRuns(manifest, there, version < there.versions.size() ? version : 0)) {
    while (next != wanted.end() && next->first + next->count <= run.begin)
      ++next;
    if (next == wanted.end())
      break;
    if (next->first >= run.end || std::ranges::binary_search(known, run.begin, {}, &Piece::begin))
      continue;
    const SafetensorsFile &file = open(manifest, run.piece->file);
    const SafetensorsFile::Tensor *tensor = file.find(run.piece->tensor);
    const uint64_t elements = run.piece->end - run.piece->begin;
    if (tensor == nullptr || tensor->bytes != elements * elementBytes)
      throw Error(file.path() + " has no tensor " + run.piece->tensor + " of " + std::to_string(elements) +
                  " elements, which its checkpoint's manifest names");
    added.push_back({&file.file(), tensor->offset + run.first * elementBytes, run.begin, run.end, there.dtype});
  }
  const auto behind = known.insert(known.end(), added.begin(), added.end());
  std::ranges::inplace_merge(known, behind, {}, &Piece::begin);
}

const SafetensorsFile &StoredState::open(const Manifest &manifest, const std::string &name) {
  if (const auto found = files_.find(name); found != files_.end())
    return found->second;
  if (const auto found = damage(folder_, *std::ranges::find(manifest.files, name, &Manifest::File::name)))
    throw Error(*found + "; resume another checkpoint (--tag)");
  return files_.try_emplace(name, folder_ + "/" + name).first->second;
}

} // namespace ds::runtime
