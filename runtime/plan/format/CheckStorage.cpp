//===- CheckStorage.cpp - arenas and the buffers in them ------------------===//
#include "core/DType.h"
#include "core/FilePage.h"
#include "runtime/plan/format/PlanChecks.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Placement.h"
#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace ds::plan {
namespace {

void checkArenas(const proto::Plan &plan, const proto::Role &role) {
  std::set<std::string> spaces;
  for (int i = 0; i < role.arenas_size(); ++i) {
    const proto::Arena &arena = role.arenas(i);
    const std::string place = describe("arena", i, "");
    if (arena.space() != "device" && arena.space() != "host" && arena.space() != "nvme")
      refuse(place, "its space is none of device, host, nvme");
    if (!spaces.insert(arena.space()).second)
      refuse(place, "it is the second in space " + arena.space() + ", of which a rank has one");
    if (arena.bytes() > (uint64_t(1) << 46))
      refuse(place, "it has " + std::to_string(arena.bytes()) + " bytes, more than 2^46");
    if (arena.peak_live_bytes() > arena.bytes())
      refuse(place, "its peak_live_bytes pass its bytes");
    if (arena.space() == "nvme" && !plan.has_nvme())
      refuse(place, "it is in space nvme, but the plan does not say where its files lie");
  }
}

/// A slot lies at a multiple of the alignment, and its last byte within the arena, without a sum that overflows.
void checkOffset(const proto::Plan &plan, const proto::Buffer &buffer, uint64_t offset, const proto::Arena &arena,
                 const std::string &place) {
  const uint64_t alignment = plan.machine().alignment();
  if (offset % alignment != 0)
    refuse(place, "offset " + std::to_string(offset) + " is no multiple of the machine's alignment " +
                      std::to_string(alignment));
  if (arena.space() == "nvme" && offset % filePage != 0)
    refuse(place, "offset " + std::to_string(offset) + " is no multiple of " + std::to_string(filePage) +
                      ", the page of a file: two buffers of space nvme must not share one");
  if (offset > arena.bytes() || buffer.bytes() > arena.bytes() - offset)
    refuse(place, "offset " + std::to_string(offset) + " + " + std::to_string(buffer.bytes()) +
                      " bytes pass the end of arena " + std::to_string(buffer.arena()) + " (" + arena.space() +
                      ") of " + std::to_string(arena.bytes()));
}

void checkSlots(const proto::Buffer &buffer, const std::string &place) {
  if (buffer.slots() == 0 || (buffer.slots() > 1 && buffer.scope() != proto::Buffer::SLOT))
    refuse(place,
           "it has " + std::to_string(buffer.slots()) + " slots, but only scope SLOT has several and none has 0");
  if (uint64_t(buffer.slot_offsets_size()) + 1 != buffer.slots())
    refuse(place, "it has " + std::to_string(buffer.slots()) + " slots and offsets for " +
                      std::to_string(buffer.slot_offsets_size() + 1));
}

void checkHeldBytes(const proto::Plan &plan, const proto::Buffer &buffer, proto::DType dtype, const std::string &what,
                    const std::string &place) {
  const uint64_t bytes = heldElements(plan, buffer) * uint64_t(byteSize(checkDType(dtype, place)));
  if (buffer.bytes() != bytes)
    refuse(place, "it has " + std::to_string(buffer.bytes()) + " bytes, but of " + what + " a rank holds " +
                      std::to_string(bytes) + ", by its placement");
}

void checkVariablePart(const proto::Plan &plan, const proto::Buffer &buffer, const std::string &place) {
  if (buffer.scope() != proto::Buffer::PLAN)
    refuse(place, "it holds a variable, so its scope must be PLAN");
  checkIndex(buffer.variable(), plan.variables_size(), "variable", place);
  const proto::Variable &variable = plan.variables(int(buffer.variable()));
  checkHeldBytes(plan, buffer, variable.dtype(), "variable " + variable.name(), place);
}

void checkBucketPart(const proto::Plan &plan, const proto::Buffer &buffer, const std::string &place) {
  if (buffer.has_variable() || buffer.scope() != proto::Buffer::PLAN)
    refuse(place, "it holds a bucket, so its scope must be PLAN and it cannot hold a variable too");
  checkIndex(buffer.bucket(), plan.buckets_size(), "bucket", place);
  const proto::Bucket &bucket = plan.buckets(int(buffer.bucket()));
  checkHeldBytes(plan, buffer, bucket.dtype(), "bucket " + bucket.name(), place);
}

/// The two must be places of one kind in one file, and one of them must say what both are for.
void checkNext(const proto::Role &role, const proto::Buffer &buffer, const std::string &place) {
  checkIndex(buffer.next_of(), role.buffers_size(), "buffer", place);
  const proto::Buffer &other = role.buffers(int(buffer.next_of()));
  const std::string of = "the next of " + describe("buffer", buffer.next_of(), other.name());
  if (buffer.scope() != proto::Buffer::PLAN || role.arenas(int(buffer.arena())).space() != "nvme")
    refuse(place, "it is " + of + ", so its scope must be PLAN and its space nvme, but they are " +
                      proto::Buffer::Scope_Name(buffer.scope()) + " and " + role.arenas(int(buffer.arena())).space());
  if (buffer.has_variable() || buffer.has_bucket())
    refuse(place, "it is " + of + ", and takes over what that holds, so it cannot hold a variable or bucket itself");
  if (!other.has_variable() && !other.has_bucket())
    refuse(place, "it is " + of + ", which holds no variable or bucket that it could take over");
  if (other.arena() != buffer.arena() || other.bytes() != buffer.bytes())
    refuse(place, "it is " + of + ", but has " + std::to_string(buffer.bytes()) + " bytes in arena " +
                      std::to_string(buffer.arena()) + ", and that " + std::to_string(other.bytes()) + " in arena " +
                      std::to_string(other.arena()) + "; to exchange what they hold they must agree");
}

/// A run that wrote two next states would not know which of them it left.
void checkNexts(const proto::Role &role) {
  std::map<uint32_t, int> first; // by buffer: its next
  for (int i = 0; i < role.buffers_size(); ++i)
    if (const proto::Buffer &buffer = role.buffers(i); buffer.has_next_of())
      if (const auto [known, isNew] = first.try_emplace(buffer.next_of(), i); !isNew)
        refuse(describe("buffer", i, buffer.name()),
               "it is the next of " + describe("buffer", buffer.next_of(), role.buffers(int(buffer.next_of())).name()) +
                   ", but " + describe("buffer", known->second, role.buffers(known->second).name()) +
                   " is that already");
}

void checkBuffer(const proto::Plan &plan, const proto::Role &role, int index) {
  const proto::Buffer &buffer = role.buffers(index);
  const std::string place = describe("buffer", index, buffer.name());
  checkName(buffer.name(), describe("buffer", index, ""));
  checkIndex(buffer.arena(), role.arenas_size(), "arena", place);
  if (buffer.scope() < proto::Buffer::PLAN || buffer.scope() > proto::Buffer::CALL)
    refuse(place, "there is no scope " + std::to_string(buffer.scope()));
  if (buffer.category() < proto::Buffer::WEIGHTS || buffer.category() > proto::Buffer::CONSTANTS)
    refuse(place, "there is no category " + std::to_string(buffer.category()));
  checkSlots(buffer, place);
  checkOffset(plan, buffer, buffer.offset(), role.arenas(int(buffer.arena())), place);
  for (uint64_t offset : buffer.slot_offsets())
    checkOffset(plan, buffer, offset, role.arenas(int(buffer.arena())), place);
  if (buffer.has_variable())
    checkVariablePart(plan, buffer, place);
  if (buffer.has_bucket())
    checkBucketPart(plan, buffer, place);
  if (buffer.has_next_of())
    checkNext(role, buffer, place);
  if (buffer.scope() == proto::Buffer::PLAN && buffer.lives_size() > 0)
    refuse(place, "its scope is PLAN, so it lives always and has no list of lives");
}

} // namespace

void checkStorage(const proto::Plan &plan, const proto::Role &role) {
  checkArenas(plan, role);
  for (int i = 0; i < role.buffers_size(); ++i)
    checkBuffer(plan, role, i);
  checkNexts(role);
}

} // namespace ds::plan
