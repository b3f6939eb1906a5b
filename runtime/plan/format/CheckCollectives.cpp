//===- CheckCollectives.cpp - collectives, and their order over roles -----===//
#include "core/DType.h"
#include "runtime/plan/format/PlanChecks.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Mesh.h"
#include "runtime/plan/world/Placement.h"
#include "runtime/plan/world/RolePeers.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace ds::plan {
namespace {

using Collective = proto::CollectiveCommand;

uint64_t bytesOf(const proto::Operand &operand, const std::string &place) {
  return checkTensorBytes(operand.dtype(), operand.shape(), place);
}

/// Where an operand begins in its buffer for coordinate 0, and how far that moves with each coordinate of
/// `communicator`.
std::pair<uint64_t, uint64_t> beginOf(const proto::Operand &operand) {
  return {operand.byte_offset(), operand.rank_stride()};
}

/// Source and target may be apart, or in place: `shared` is where the smaller of the two must then lie.
void checkPlaces(const proto::Operand &source, const proto::Operand &target, Collective::Kind kind,
                 const std::string &place) {
  const uint64_t sourceBytes = bytesOf(source, place), targetBytes = bytesOf(target, place);
  if (source.buffer() != target.buffer() || sourceBytes == 0 || targetBytes == 0)
    return;
  const uint64_t sliceBytes = std::min(sourceBytes, targetBytes);
  const bool gathers = kind == Collective::ALL_GATHER, scatters = kind == Collective::REDUCE_SCATTER;
  const auto [sourceBegin, sourceStride] = beginOf(source);
  const auto [targetBegin, targetStride] = beginOf(target);
  const bool inPlace = kind != Collective::ALL_TO_ALL && sourceBegin == targetBegin &&
                       sourceStride == (gathers ? sliceBytes : 0) && targetStride == (scatters ? sliceBytes : 0);
  const bool apart = sourceStride == targetStride &&
                     (sourceBegin + sourceBytes <= targetBegin || targetBegin + targetBytes <= sourceBegin);
  if (!inPlace && !apart)
    refuse(place, kind == Collective::ALL_TO_ALL
                      ? "source and target lie in one buffer and are not apart"
                      : "source and target lie in one buffer and are neither apart nor in place: the smaller must be "
                        "this rank's slice of the larger");
}

void checkCounts(Collective::Kind kind, uint64_t ranks, uint64_t sourceBytes, uint64_t targetBytes,
                 const std::string &place) {
  const uint64_t expected = kind == Collective::ALL_GATHER       ? sourceBytes * ranks
                            : kind == Collective::REDUCE_SCATTER ? sourceBytes / ranks
                                                                 : sourceBytes;
  const bool cuts = kind == Collective::REDUCE_SCATTER || kind == Collective::ALL_TO_ALL;
  if (targetBytes != expected || (cuts && sourceBytes % ranks != 0))
    refuse(place, Collective::Kind_Name(kind) + " over " + std::to_string(ranks) + " ranks makes of " +
                      std::to_string(sourceBytes) + " bytes no " + std::to_string(targetBytes));
}

void checkSum(const proto::CollectivePart &part, uint64_t ranks, const std::string &place) {
  const DType dtype = checkDType(part.source().dtype(), place);
  if (!isFloat(dtype) && dtype != DType::I64)
    refuse(place, "it sums " + std::string(name(dtype)) + ", but sums are of floats or int64");
  const uint64_t needed = ranks * uint64_t(byteSize(dtype));
  if (!part.has_scratch() || bytesOf(part.scratch(), place) < needed)
    refuse(place, "a sum over " + std::to_string(ranks) + " ranks needs scratch of at least " + std::to_string(needed) +
                      " bytes");
  const uint64_t elementBytes = uint64_t(byteSize(dtype));
  if (part.scratch().byte_offset() % elementBytes != 0 || part.scratch().rank_stride() != 0)
    refuse(place, "its scratch has a rank_stride, or begins at no multiple of the element size " +
                      std::to_string(elementBytes));
  if (part.accumulate() && part.source().buffer() == part.target().buffer() &&
      part.source().byte_offset() == part.target().byte_offset())
    refuse(place, "it accumulates onto its own source");
}

/// Slices are gathered and scattered over the ranks that they are counted over.
void checkSliceRanks(const proto::Plan &plan, const proto::Role &role, const Collective &collective,
                     const proto::CollectivePart &part, const std::string &place) {
  if (collective.kind() != Collective::ALL_GATHER && collective.kind() != Collective::REDUCE_SCATTER)
    return;
  const proto::Operand &slice = collective.kind() == Collective::ALL_GATHER ? part.source() : part.target();
  const proto::Buffer &buffer = role.buffers(int(slice.buffer()));
  if (!holdsWindow(plan, buffer))
    return;
  const proto::Bucket &bucket = plan.buckets(int(buffer.bucket()));
  const uint32_t communicator = bucket.placement().window().communicator();
  if (communicator != collective.communicator())
    refuse(place, "it goes over communicator " + plan.communicators(int(collective.communicator())).name() +
                      ", but the slices of bucket " + bucket.name() + " are counted over the ranks of " +
                      plan.communicators(int(communicator)).name());
}

void checkPart(const proto::Plan &plan, const proto::Role &role, const Collective &collective,
               const proto::CollectivePart &part, const std::string &place) {
  checkOperand(plan, role, part.source(), place + ", source");
  checkOperand(plan, role, part.target(), place + ", target");
  if (part.source().access() != proto::Operand::READ)
    refuse(place + ", source", "its access must be READ");
  const proto::Operand::Access access = part.accumulate() ? proto::Operand::READ_WRITE : proto::Operand::WRITE;
  if (part.target().access() != access)
    refuse(place + ", target", "its access must be " + proto::Operand::Access_Name(access));
  if (part.source().dtype() != part.target().dtype())
    refuse(place, "source and target have different dtypes");
  const uint64_t ranks = Group(plan, collective.communicator()).size();
  for (const proto::Operand *operand : {&part.source(), &part.target()})
    if (operand->rank_stride() != 0 && operand->communicator() != collective.communicator())
      refuse(place, "its rank_stride counts the ranks of another communicator");
  checkCounts(collective.kind(), ranks, bytesOf(part.source(), place), bytesOf(part.target(), place), place);
  checkPlaces(part.source(), part.target(), collective.kind(), place);
  checkSliceRanks(plan, role, collective, part, place);
  if (part.has_scratch()) {
    checkOperand(plan, role, part.scratch(), place + ", scratch");
    if (part.scratch().access() != proto::Operand::SCRATCH || part.scratch().dtype() != proto::DTYPE_U8)
      refuse(place + ", scratch", "it must be uint8 with access SCRATCH");
  }
  if (collective.kind() == Collective::REDUCE_SCATTER || collective.kind() == Collective::ALL_REDUCE)
    checkSum(part, ranks, place);
  else if (part.accumulate())
    refuse(place, Collective::Kind_Name(collective.kind()) + " does not accumulate");
}

/// What the ranks of a group must agree on, as a hash by kind of queue: kinds and sizes of collectives, in the order of
/// a run.
using Order = std::map<proto::Queue::Kind, uint64_t>;

uint64_t hashOf(const Collective &collective) {
  std::string text = std::to_string(collective.kind());
  for (const proto::CollectivePart &part : collective.parts())
    text += " " + std::to_string(part.source().dtype()) + shapeText(part.source().shape()) +
            shapeText(part.scratch().shape());
  return std::hash<std::string>()(text);
}

Order orderOf(const proto::Role &role, const std::string &program, uint32_t communicator) {
  std::vector<std::vector<std::pair<uint32_t, uint64_t>>> routines; // queue and hash of each collective
  for (const proto::Routine &routine : role.routines()) {
    routines.emplace_back();
    for (const proto::Command &command : routine.commands())
      if (command.has_collective() && command.collective().communicator() == communicator)
        routines.back().emplace_back(command.queue(), hashOf(command.collective()));
  }
  Order order;
  for (const proto::Program &candidate : role.programs())
    if (candidate.name() == program)
      for (const proto::Call &call : candidate.calls())
        for (const auto &[queue, hash] : routines[call.routine()]) {
          uint64_t &chain = order[role.queues(int(queue)).kind()];
          chain = (chain ^ hash) * 0x9E3779B97F4A7C15u + 1;
        }
  return order;
}

const proto::Program *programOf(const proto::Role &role, const std::string &name) {
  for (const proto::Program &program : role.programs())
    if (program.name() == name)
      return &program;
  return nullptr;
}

/// Where a role enters a communicator from queues of one kind, in the order of a run: what, and in which command.
std::vector<std::pair<uint64_t, std::string>> entriesOf(const proto::Plan &plan, const proto::Role &role,
                                                        const std::string &name, uint32_t communicator,
                                                        proto::Queue::Kind kind) {
  std::vector<std::pair<uint64_t, std::string>> entries;
  const proto::Program *program = programOf(role, name);
  for (int c = 0; program != nullptr && c < program->calls_size(); ++c) {
    const proto::Routine &routine = role.routines(int(program->calls(c).routine()));
    for (int i = 0; i < routine.commands_size(); ++i)
      if (const proto::Command &command = routine.commands(i); command.has_collective() &&
                                                               command.collective().communicator() == communicator &&
                                                               role.queues(int(command.queue())).kind() == kind)
        entries.emplace_back(hashOf(command.collective()), placeInRun(plan, role, *program, c, i) + " enters " +
                                                               Collective::Kind_Name(command.collective().kind()));
  }
  return entries;
}

/// Where two roles' orders first differ.
std::string firstDifference(const proto::Plan &plan, int a, int b, const std::string &program, uint32_t communicator) {
  Order kinds = orderOf(plan.roles(a), program, communicator);
  kinds.merge(orderOf(plan.roles(b), program, communicator));
  for (const auto &[kind, hash] : kinds) {
    const auto mine = entriesOf(plan, plan.roles(a), program, communicator, kind);
    const auto theirs = entriesOf(plan, plan.roles(b), program, communicator, kind);
    for (size_t k = 0; k < std::max(mine.size(), theirs.size()); ++k) {
      if (k >= mine.size() || k >= theirs.size())
        return note((k < mine.size() ? mine : theirs)[k].second + ", but role " +
                    plan.roles(k < mine.size() ? b : a).name() + " enters only " + std::to_string(k));
      if (mine[k].first != theirs[k].first)
        return note(mine[k].second + ", but " + theirs[k].second);
    }
  }
  return {};
}

} // namespace

void checkCollective(const proto::Plan &plan, const proto::Role &role, const proto::CollectiveCommand &collective,
                     const std::string &place) {
  if (collective.kind() < Collective::ALL_GATHER || collective.kind() > Collective::ALL_TO_ALL)
    refuse(place, "there is no kind of collective " + std::to_string(collective.kind()));
  checkIndex(collective.communicator(), plan.communicators_size(), "communicator", place);
  if (collective.parts_size() == 0)
    refuse(place, "it has no parts");
  for (int i = 0; i < collective.parts_size(); ++i)
    checkPart(plan, role, collective, collective.parts(i),
              place + " (" + Collective::Kind_Name(collective.kind()) + "), part " + std::to_string(i));
}

/// Communicators belong to a kind of queue, since roles that share one may number their queues differently.
void checkCollectiveQueues(const proto::Plan &plan, const proto::Role &role) {
  std::map<std::pair<uint32_t, proto::Queue::Kind>, uint32_t> queues;
  for (int r = 0; r < role.routines_size(); ++r)
    for (int c = 0; c < role.routines(r).commands_size(); ++c) {
      const proto::Command &command = role.routines(r).commands(c);
      if (!command.has_collective())
        continue;
      const proto::Queue &queue = role.queues(int(command.queue()));
      const uint32_t communicator = command.collective().communicator();
      const uint32_t first = queues.emplace(std::pair(communicator, queue.kind()), command.queue()).first->second;
      if (first != command.queue())
        refuse(describe("routine", r, role.routines(r).name()) + ", command " + std::to_string(c),
               "queues " + role.queues(int(first)).name() + " and " + queue.name() + " both enter communicator " +
                   plan.communicators(int(communicator)).name() + ", but of the queues of kind " +
                   proto::Queue::Kind_Name(queue.kind()) + " only one may");
    }
}

/// Ranks of one role enter collectives in one order by themselves; roles that share a group must agree.
void checkCollectiveOrder(const proto::Plan &plan, RolePeers &peers) {
  for (int c = 0; c < plan.communicators_size(); ++c) {
    const RolePairs &pairs = peers.inCommunicator(uint32_t(c));
    for (const char *program : {"step", "evaluate"}) {
      std::map<int, Order> orders; // by role: a role stands in as many pairs as there are others
      const auto order = [&](int role) -> const Order & {
        const auto [known, isNew] = orders.try_emplace(role);
        if (isNew)
          known->second = orderOf(plan.roles(role), program, uint32_t(c));
        return known->second;
      };
      for (const auto &[a, b] : pairs)
        if (order(a) != order(b))
          refuse("program " + std::string(program),
                 "roles " + plan.roles(a).name() + " and " + plan.roles(b).name() +
                     " enter other collectives of communicator " + plan.communicators(c).name() +
                     ", or enter them in another order" + firstDifference(plan, a, b, program, uint32_t(c)));
    }
  }
}

} // namespace ds::plan
