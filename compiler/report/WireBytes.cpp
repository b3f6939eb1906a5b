//===- WireBytes.cpp - what a rank hands to the network in a step ----------===//
#include "compiler/report/WireBytes.h"

#include "compiler/report/Facts.h"
#include "core/DType.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/run/Tail.h"
#include "runtime/plan/world/Mesh.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ds::report {
namespace {

using plan::proto::CollectiveCommand;

/// Elements of slice r of `count` cut for n ranks, divisible or not; as communicators cut it.
uint64_t sliceSize(uint64_t count, uint64_t r, uint64_t n) {
  const auto cut = [&](uint64_t i) { return uint64_t(static_cast<unsigned __int128>(count) * i / n); };
  return cut(r + 1) - cut(r);
}

uint64_t bytesOf(const google::protobuf::RepeatedPtrField<plan::proto::Operand> &operands) {
  uint64_t bytes = 0;
  for (const plan::proto::Operand &operand : operands)
    if (const auto dtype = dtypeFromNumber(int(operand.dtype())))
      bytes += elements(operand.shape()) * uint64_t(byteSize(*dtype));
  return bytes;
}

void add(const plan::proto::Plan &plan, const CollectiveCommand &collective, uint64_t rank, WireBytes &sum) {
  const plan::Group group(plan, collective.communicator());
  const uint64_t n = group.size(), r = group.coordinate(rank);
  for (const plan::proto::CollectivePart &part : collective.parts()) {
    const auto dtype = dtypeFromNumber(int(part.source().dtype()));
    const uint64_t element = dtype ? uint64_t(byteSize(*dtype)) : 0;
    const uint64_t count = elements(part.source().shape()), bytes = count * element;
    switch (collective.kind()) {
    case CollectiveCommand::ALL_GATHER:
      sum.allGather += bytes * (n - 1);
      break;
    case CollectiveCommand::REDUCE_SCATTER:
      sum.reduceScatter += bytes - bytes / n;
      break;
    case CollectiveCommand::ALL_REDUCE: { // a scatter of the others' slices, then a gather of one's own
      const uint64_t own = sliceSize(count, r, n) * element;
      sum.allReduce += bytes - own + own * (n - 1);
      break;
    }
    case CollectiveCommand::BROADCAST:
      sum.broadcast += r == 0 ? bytes * (n - 1) : 0;
      break;
    case CollectiveCommand::ALL_TO_ALL:
      sum.allToAll += bytes - bytes / n;
      break;
    default:
      break;
    }
  }
}

/// "data", or "pipe x data".
std::string axesOf(const plan::proto::Plan &plan, const CollectiveCommand &collective) {
  std::string names;
  for (const uint32_t axis : plan.communicators(int(collective.communicator())).axes())
    names += (names.empty() ? "" : " x ") + plan.world().axes(int(axis)).name();
  return names;
}

void add(const plan::proto::Plan &plan, const plan::proto::Command &command, uint64_t rank, WireBytes &sum) {
  const uint64_t before = sum.sum();
  std::string axes;
  if (command.has_collective()) {
    add(plan, command.collective(), rank, sum);
    axes = axesOf(plan, command.collective());
  } else if (command.has_send()) {
    sum.send += bytesOf(command.send().sources());
    axes = plan.world().axes(int(plan.channels(int(command.send().channel())).axis())).name();
  } else if (command.has_receive()) {
    sum.receive += bytesOf(command.receive().targets());
  }
  if (sum.sum() > before)
    sum.byAxes[axes] += sum.sum() - before;
}

void addTimes(const WireBytes &once, uint64_t times, WireBytes &sum) {
  sum.allGather += once.allGather * times;
  sum.reduceScatter += once.reduceScatter * times;
  sum.allReduce += once.allReduce * times;
  sum.broadcast += once.broadcast * times;
  sum.allToAll += once.allToAll * times;
  sum.send += once.send * times;
  sum.receive += once.receive * times;
  for (const auto &[axes, bytes] : once.byAxes)
    sum.byAxes[axes] += bytes * times;
}

} // namespace

WireBytes wireBytesPerStep(const plan::proto::Plan &plan, const plan::proto::Role &role, uint64_t rank) {
  std::vector<uint64_t> calls(size_t(role.routines_size()));
  for (const plan::proto::Program &program : role.programs())
    for (const plan::proto::Call &call : plan::callsBeforeTail(program))
      calls[call.routine()] += program.name() == "step";
  WireBytes sum;
  for (int i = 0; i < role.routines_size(); ++i) {
    if (calls[size_t(i)] == 0)
      continue;
    WireBytes once;
    for (const plan::proto::Command &command : role.routines(i).commands())
      add(plan, command, rank, once);
    addTimes(once, calls[size_t(i)], sum);
  }
  return sum;
}

} // namespace ds::report
