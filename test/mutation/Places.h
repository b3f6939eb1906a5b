//===- Places.h - where a defect lies, and whether a refusal says so -------===//
#pragma once

#include "runtime/plan/plan.pb.h"

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ds::mutation {

/// What differs between a plan and a broken copy of it: commands, buffers that these use, and what has a name.
class Places {
public:
  Places(const plan::proto::Plan &whole, const plan::proto::Plan &broken);

  /// Whether a sentence names one of them, or a command that uses one of these buffers: the defect itself, or the
  /// first command that meets its consequence.
  bool areNamedIn(const std::string &sentence) const;

private:
  using CommandName = std::pair<std::string, size_t>; // its routine's name, its number there

  void addRole(const plan::proto::Plan &plan, const plan::proto::Role &whole, const plan::proto::Role &broken);
  void addCommands(const plan::proto::Plan &plan, const plan::proto::Role &role, const plan::proto::Routine *whole,
                   const plan::proto::Routine &broken);
  void addPrograms(const plan::proto::Role &whole, const plan::proto::Role &broken);
  void addBuffers(const plan::proto::Role &whole, const plan::proto::Role &broken);
  /// Buffers of a variable that differs.
  void addVariables(const plan::proto::Plan &whole, const plan::proto::Plan &broken);
  void addUsers(const plan::proto::Role &broken);
  /// The plan's and its roles' other fields.
  void addFields(plan::proto::Plan whole, plan::proto::Plan broken);

  std::set<CommandName> commands_;
  std::set<uint32_t> buffers_; ///< of any role
  std::set<std::string> names_;
};

} // namespace ds::mutation
