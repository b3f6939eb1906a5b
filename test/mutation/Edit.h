//===- Edit.h - finding and changing parts of a plan -----------------------===//
#pragma once

#include "runtime/plan/plan.pb.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace ds::mutation {

namespace proto = plan::proto;

/// Where a command stands.
struct Place {
  int role = 0, routine = 0, command = 0;
};

/// The same choices for the same seed everywhere.
class Random {
public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  size_t below(size_t count) { return size_t(engine_() % count); }
  template <typename T> std::optional<T> pick(const std::vector<T> &from) {
    if (from.empty())
      return std::nullopt;
    return from[below(from.size())];
  }

private:
  std::mt19937_64 engine_;
};

proto::Routine &routineAt(proto::Plan &plan, const Place &place);
proto::Command &at(proto::Plan &plan, const Place &place);
const proto::Command &at(const proto::Plan &plan, const Place &place);

using IsWanted = std::function<bool(const proto::Command &)>;
/// Commands of routines that the program `step` calls.
std::vector<Place> find(const proto::Plan &plan, const IsWanted &isWanted);
std::vector<Place> findWhere(const proto::Plan &plan, const IsWanted &isWanted,
                             const std::function<bool(const Place &)> &isPlace);

/// Every operand, in the order of the command.
std::vector<proto::Operand *> operandsOf(proto::Command &command);
std::vector<const proto::Operand *> operandsOf(const proto::Command &command);
bool reads(const proto::Operand &operand);
bool writes(const proto::Operand &operand);
uint64_t bytesOf(const proto::Operand &operand);

bool isKernel(const proto::Command &command, const char *name);
/// Whether it writes the gradient of the logits.
bool makesLossGradient(const proto::Command &command);
bool isOptimizer(const proto::Command &command);
/// AdamW's or Lamb's update: p, g, both moments, the rate, the step and the factor of gradients.
bool keepsTwoMoments(const proto::Command &command);
bool isCollective(const proto::Command &command, proto::CollectiveCommand::Kind kind);
/// Whether any operand lies in a buffer of gradients or of what is sent.
bool touchesGradients(const proto::Plan &plan, const Place &place);
const proto::Buffer &bufferOf(const proto::Plan &plan, const Place &place, const proto::Operand &operand);
proto::Program *program(proto::Role &role, const char *name);
proto::Attribute *attribute(proto::Command &command, const char *name);
/// Whether the program's last call runs the routine, which is then the update of the parameters.
bool isUpdate(const proto::Plan &plan, const Place &place);

/// The command does nothing any more, at the same place of its queue, with the same waits and signals.
void makeIdle(proto::Plan &plan, const Place &place);
/// Puts a copy of `command` before place.command (which may be the end); lives keep naming the commands that they
/// named.
void insert(proto::Plan &plan, const Place &place, const proto::Command &command);
/// Ranks 0 to n - 2 and the last one become two roles that run the same; the index of the second, if there are two.
std::optional<int> splitRole(proto::Plan &plan);

/// Puts nothing where one of the commands was, or clears its waits; "" where there is none.
std::string leaveOut(proto::Plan &plan, Random &random, const std::vector<Place> &places);
std::string dropWaits(proto::Plan &plan, Random &random, const std::vector<Place> &places);

/// "routine forward, command 3 (matmul)".
std::string describe(const proto::Plan &plan, const Place &place);

} // namespace ds::mutation
