//===- StateShares.cpp - which rank writes what of the state --------------===//
#include "runtime/checkpoint/StateShares.h"

#include "core/DType.h"
#include "core/Error.h"
#include "runtime/checkpoint/CheckpointFolder.h"
#include "runtime/checkpoint/Manifest.h"
#include "runtime/data/SafetensorsWriter.h"
#include "runtime/executor/HeldParts.h"
#include "runtime/executor/StateGate.h"
#include "runtime/plan/format/Lengths.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Mesh.h"
#include "runtime/plan/world/Placement.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace ds::runtime {
namespace {

using plan::proto::Operand;
using plan::proto::Variable;

bool isWhole(const plan::proto::Plan &plan, const HeldPart &part) {
  return part.first == 0 && part.count == plan::elementsOf(plan.variables(int(part.variable)));
}

/// Buffers whose first use in a step is a command that writes all of it without reading it: metrics.
std::set<uint32_t> madeAnew(const plan::proto::Role &role, const plan::proto::Program &step) {
  std::set<uint32_t> seen, anew;
  const auto use = [&](const Operand &operand, bool writes) {
    const uint32_t buffer = plan::stateOf(role, operand.buffer());
    if (seen.insert(buffer).second && writes)
      anew.insert(buffer);
  };
  for (const plan::proto::Call &call : step.calls())
    for (const plan::proto::Command &command : role.routines(int(call.routine())).commands()) {
      for (const Operand &operand : command.kernel().operands())
        use(operand, operand.access() == Operand::WRITE);
      if (command.has_fill())
        use(command.fill().target(), true);
      if (command.has_copy()) {
        use(command.copy().source(), false);
        use(command.copy().target(), true);
      }
      for (const plan::proto::CollectivePart &part : command.collective().parts()) {
        use(part.source(), false);
        use(part.target(), !part.accumulate());
      }
      for (const Operand &source : command.send().sources())
        use(source, false);
      for (const Operand &target : command.receive().targets())
        use(target, true);
    }
  return anew;
}

/// Scalars of the run that some role's step reads before it writes them, or does not touch.
std::set<uint32_t> carriedScalars(const plan::proto::Plan &plan) {
  std::set<uint32_t> carried;
  for (const plan::proto::Role &role : plan.roles())
    for (const plan::proto::Program &program : role.programs()) {
      if (!plan::isProgram(program.name(), "step"))
        continue;
      const std::set<uint32_t> anew = madeAnew(role, program);
      for (int i = 0; i < role.buffers_size(); ++i)
        if (role.buffers(i).has_variable() && !anew.contains(uint32_t(i)))
          carried.insert(role.buffers(i).variable());
    }
  return carried;
}

Manifest::Variable describe(const plan::proto::Plan &plan, uint32_t index) {
  const Variable &variable = plan.variables(int(index));
  Manifest::Variable described{.name = variable.name(),
                               .dtype = safetensorsName(DType(variable.dtype())),
                               .shape = {variable.shape().begin(), variable.shape().end()}};
  if (variable.kind() == Variable::BUFFER) {
    described.kind = Manifest::Kind::Buffer;
    described.persistent = variable.persistent();
  } else if (variable.kind() == Variable::OPTIMIZER) {
    described.kind = variable.has_of() ? Manifest::Kind::Optimizer : Manifest::Kind::Scalar;
  } else {
    described.aliases.assign(variable.aliases().begin(), variable.aliases().end());
  }
  if (described.kind == Manifest::Kind::Optimizer) { // the slot is for people, and for files of other programs
    described.of = plan.variables(int(variable.of())).name();
    described.slot = variable.name().starts_with(described.of) ? variable.name().substr(described.of.size()) : "";
    described.slot.erase(0, described.slot.find_first_not_of(':'));
  }
  return described;
}

class Sharing {
public:
  explicit Sharing(const plan::proto::Plan &plan) : plan_(plan), written_(plan::worldSize(plan)) {
    shares_.parts.resize(written_.size());
    for (uint32_t rank = 0; rank < written_.size(); ++rank)
      for (const HeldPart &part : heldParts(plan, rank)) {
        const uint64_t version = plan::versionOf(plan, plan.variables(int(part.variable)), rank);
        holders_[{part.variable, version, part.first, part.count}].push_back({rank, part});
      }
  }

  StateShares share() {
    for (const uint32_t index : stateVariables(plan_)) {
      Manifest::Variable &described = shares_.variables.emplace_back(describe(plan_, index));
      const plan::AxisSet varying = plan::varyingAxes(plan_.world(), plan_.variables(int(index)).placement());
      for (int axis = 0; axis < plan_.world().axes_size(); ++axis)
        if (varying.contains(uint32_t(axis)))
          described.varies.push_back(plan_.world().axes(axis).name());
      const std::vector<Coverings> &versions = coveringsOf(varying);
      described.versions.clear();
      for (uint64_t version = 0; version < versions.size(); ++version)
        described.versions.push_back(assign(index, version, versions[version][index]));
    }
    for (uint32_t rank = 0; rank < shares_.parts.size(); ++rank)
      shares_.parts[rank] = inOrderOfWrites(plan_, rank, std::move(shares_.parts[rank]));
    return std::move(shares_);
  }

private:
  using Coverings = std::vector<std::vector<RankPart>>; // by variable

  /// By version of variables that vary along the axes: what the ranks that have it hold between them.
  const std::vector<Coverings> &coveringsOf(plan::AxisSet axes) {
    const auto [known, isNew] = coverings_.try_emplace(axes);
    if (isNew) {
      const plan::Group group(plan_.world(), axes);
      std::vector<std::vector<uint32_t>> ranks(group.size());
      for (uint32_t rank = 0; rank < written_.size(); ++rank)
        ranks[group.coordinate(rank)].push_back(rank);
      for (const std::vector<uint32_t> &alike : ranks)
        known->second.push_back(coverings(plan_, alike));
    }
    return known->second;
  }

  std::vector<Manifest::Piece> assign(uint32_t index, uint64_t version, const std::vector<RankPart> &covering) {
    const Variable &variable = plan_.variables(int(index));
    if (coveredElements(covering) < plan::elementsOf(variable))
      throw Error("variable " + variable.name() + " cannot be saved: no buffer of the plan holds " +
                  (covering.empty() ? "it" : "all of it"));
    std::vector<Manifest::Piece> pieces;
    for (RankPart part : covering) {
      const auto holders = holders_.find({index, version, part.part.first, part.part.count});
      if (holders != holders_.end())
        part = *std::ranges::min_element(holders->second, {}, [&](const RankPart &one) { return written_[one.rank]; });
      written_[part.rank] += part.part.count * uint64_t(byteSize(DType(variable.dtype())));
      shares_.parts[part.rank].push_back(part.part);
      pieces.push_back(
          {rankFileName(part.rank), tensorName(plan_, part.part), part.part.first, part.part.first + part.part.count});
    }
    return pieces;
  }

  const plan::proto::Plan &plan_;
  std::vector<uint64_t> written_; // bytes, by rank
  std::map<plan::AxisSet, std::vector<Coverings>> coverings_;
  std::map<std::tuple<uint32_t, uint64_t, uint64_t, uint64_t>, std::vector<RankPart>>
      holders_; // of a version's elements
  StateShares shares_;
};

} // namespace

std::vector<uint32_t> stateVariables(const plan::proto::Plan &plan) {
  const std::set<uint32_t> carried = carriedScalars(plan);
  std::vector<uint32_t> variables;
  for (uint32_t i = 0; i < uint32_t(plan.variables_size()); ++i) {
    const Variable &variable = plan.variables(int(i));
    const bool isScalar = variable.kind() == Variable::OPTIMIZER && !variable.has_of();
    if (isScalar ? carried.contains(i)
                 : variable.kind() == Variable::PARAMETER || variable.kind() == Variable::BUFFER ||
                       variable.kind() == Variable::OPTIMIZER)
      variables.push_back(i);
  }
  return variables;
}

StateShares shareState(const plan::proto::Plan &plan) { return Sharing(plan).share(); }

std::string tensorName(const plan::proto::Plan &plan, const HeldPart &part) {
  const std::string &name = plan.variables(int(part.variable)).name();
  return isWhole(plan, part) ? name : name + "@" + std::to_string(part.first);
}

} // namespace ds::runtime
