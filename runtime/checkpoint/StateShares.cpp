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
                               .shape = {variable.shape().begin(), variable.shape().end()},
                               .placement = variable.placement()};
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
      for (const HeldPart &part : heldOfPieces(plan, rank)) {
        const Variable &variable = plan.variables(int(part.variable));
        held_[{part.variable, plan::versionOf(plan, variable, rank),
               plan::partOf(plan.world(), variable.placement(), rank)}]
            .push_back({rank, part});
      }
  }

  StateShares share() {
    for (const uint32_t index : stateVariables(plan_)) {
      const Variable &variable = plan_.variables(int(index));
      Manifest::Variable &described = shares_.variables.emplace_back(describe(plan_, index));
      described.versions.resize(plan::versionsOf(plan_, variable));
      for (uint64_t version = 0; version < described.versions.size(); ++version)
        for (uint64_t part = 0; part < plan::partsOf(plan_.world(), variable.placement()); ++part)
          assign(held_[{index, version, part}], variable, described.versions[version]);
    }
    for (uint32_t rank = 0; rank < shares_.parts.size(); ++rank)
      shares_.parts[rank] = inOrderOfWrites(plan_, rank, std::move(shares_.parts[rank]));
    return std::move(shares_);
  }

private:
  /// Adds the pieces of what `held` holds between them: one version of one part of the variable.
  void assign(const std::vector<RankPart> &held, const Variable &variable, std::vector<Manifest::Piece> &pieces) {
    const auto elementBytes = uint64_t(byteSize(DType(variable.dtype())));
    const std::vector<RankPart> all = covering(held, elementBytes);
    if (coveredElements(all) < plan::pieceElements(variable))
      throw Error("variable " + variable.name() + " cannot be saved: no buffer of the plan holds " +
                  (all.empty() ? "it" : "all of it"));
    std::map<std::pair<uint64_t, uint64_t>, std::vector<const RankPart *>> holders; // by first element and count
    for (const RankPart &one : held)
      holders[{one.part.first, one.part.count}].push_back(&one);
    for (RankPart part : all) {
      if (const auto found = holders.find({part.part.first, part.part.count}); found != holders.end())
        part = **std::ranges::min_element(found->second, {}, [&](const RankPart *one) { return written_[one->rank]; });
      written_[part.rank] += part.part.count * elementBytes;
      shares_.parts[part.rank].push_back(part.part);
      pieces.push_back({rankFileName(part.rank), tensorName(plan_, part.rank, part.part), part.part.first,
                        part.part.first + part.part.count, part.rank});
    }
  }

  const plan::proto::Plan &plan_;
  std::vector<uint64_t> written_; // bytes, by rank
  /// By variable, version and part: who holds what of it, counted in the piece.
  std::map<std::tuple<uint32_t, uint64_t, uint64_t>, std::vector<RankPart>> held_;
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

bool isWholePiece(const plan::proto::Plan &plan, const HeldPart &part) {
  return part.first == 0 && part.count == plan::pieceElements(plan.variables(int(part.variable)));
}

std::string tensorName(const plan::proto::Plan &plan, uint32_t rank, const HeldPart &part) {
  const Variable &variable = plan.variables(int(part.variable));
  return nameOfPart(variable.name(), plan.world(), variable.placement(), rank) +
         (isWholePiece(plan, part) ? "" : "@" + std::to_string(part.first));
}

} // namespace ds::runtime
